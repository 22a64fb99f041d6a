#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workers/gw/model/empirical_crystal.hpp"
#include "workers/gw/model/perturbation_request.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// First orders at one k in the displacement of one atom, Ry/Bohr; matrices are [bra][ket].
struct ElementsAtK {
  std::vector<Cplx> mean_field;      ///< ⟨l|∂V|m⟩
  std::vector<Cplx> sigma_bra;       ///< ∂Σ_lm(E_l)
  std::vector<Cplx> sigma_ket;       ///< ∂Σ_lm(E_m)
  std::vector<Cplx> fixed_energies;  ///< mean at both energies without the shifts of energies
  /// Mean at both energies by finite displacements; empty: not wanted.
  std::vector<Cplx> difference;

  /// Mean of ∂Σ at the energies of bra and ket.
  Cplx sigma(std::size_t i) const { return 0.5 * (sigma_bra[i] + sigma_ket[i]); }
};

/// One displacement with p = 0.
struct Displacement {
  int atom = 1;          ///< counted from 1
  char direction = 'x';  ///< Cartesian
  std::string name() const { return "atom " + std::to_string(atom) + " " + direction; }
};

/// First orders between the outer states in displacements of atoms.
struct DisplacementElements {
  std::vector<Displacement> displacements;
  std::vector<int> k_index;                  ///< positions in the irreducible list
  int band_min = 1, band_max = 1;            ///< bands of bra and ket, counted from 1
  std::vector<std::vector<ElementsAtK>> at;  ///< [displacement][k]
  /// Largest diagonal element of the sum over all atoms, Ry/Bohr (docs/theory/gw.md 14.4). That of
  /// the mean field is 0. They are absent unless all atoms are displaced.
  std::optional<double> acoustic_mean_field_ry, acoustic_sigma_ry;
  std::map<std::string, double> seconds;  ///< of all devices, by step of sigma_derivatives()
};

/// Returns the largest deviation of ∂Σ from finite displacements, Ry/Bohr; 0 without them.
double largest_deviation_ry(const ElementsAtK& at);

/// Lists the displacements of a request, atom by atom.
std::vector<Displacement> displacements_of(const PerturbationRequest& request,
                                           const Crystal& crystal);

/// @throws InvalidInput if the crystal lacks an atom of the request, and as zero_point_modes() does
void check_displacements(const PerturbationRequest& request, const Crystal& crystal);

/// A built-in crystal and its displaced atoms.
struct DisplacedCrystal {
  const EmpiricalCrystal& crystal;
  const PerturbationRequest& request;
};

/// Calculates the first orders at every k of the options, at the energies of the outer states, on
/// the devices of the team. The checkpoint keeps finished parts. Collective.
/// @throws InvalidInput as sigma_derivatives() does
/// @throws NotConverged if the acoustic sum of the mean field exceeds 1e-6 eV/Bohr
DisplacementElements displacement_elements(const DisplacedCrystal& displaced,
                                           const MeanField& field,
                                           const std::vector<DielectricMatrix>& epsilon,
                                           SigmaOptions options, const StepContext& context);

}  // namespace quasi::gw
