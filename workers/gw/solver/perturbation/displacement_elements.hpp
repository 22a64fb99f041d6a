#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workers/gw/model/empirical_crystal.hpp"
#include "workers/gw/model/perturbation_request.hpp"
#include "workers/gw/solver/perturbation/finite_displacements/wave_difference.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Holds the first orders at one k in the displacement of one atom, Ry/Bohr. Matrices are
/// [bra][ket].
struct ElementsAtK {
  std::vector<Cplx> mean_field;      ///< ⟨l|∂V|m⟩
  std::vector<Cplx> sigma_bra;       ///< ∂Σ_lm(E_l)
  std::vector<Cplx> sigma_ket;       ///< ∂Σ_lm(E_m)
  std::vector<Cplx> fixed_energies;  ///< mean of ∂Σ at E_l and E_m without the shifts of E_n
  /// Mean of ∂Σ at E_l and E_m by finite displacements; empty if the request has no check.
  std::vector<Cplx> difference;
  std::vector<Cplx> vxc;  ///< ⟨l|∂V_xc|m⟩; empty for a crystal without V_xc
  /// Long-range part ⟨l|∂V^L|m⟩ (long_range.hpp); empty without Born charges.
  std::vector<Cplx> long_range = {};
  /// Mean of ∂Σ at E_l and E_m without one block of random vectors, [block][bra][ket]. The list
  /// is empty without blocks.
  std::vector<std::vector<Cplx>> sigma_without = {};

  /// Returns ⟨∂Σ⟩ of the element number i, Ry/Bohr: the mean of its values at both energies.
  Cplx sigma(std::size_t i) const { return 0.5 * (sigma_bra[i] + sigma_ket[i]); }
  /// Returns g^GW = g − ⟨∂V_xc⟩ + ⟨∂Σ⟩ of the element number i with that mean,
  /// Ry/Bohr.
  /// @pre `vxc` is not empty
  Cplx gw(std::size_t i) const { return mean_field[i] - vxc[i] + sigma(i); }
};

/// Takes the elements at the energies of bra and ket from those at all energies. The energies are
/// those of the outer states, or those of the bras and then those of the kets. Static COHSEX has
/// one.
ElementsAtK at_bra_and_ket(const SigmaDerivativeAtK& all);

/// Returns the mean of a matrix at the energies E_l and E_m of its bra and ket, [l][m].
/// @param all  matrix at all energies, [E][l][m], with the energies of at_bra_and_ket()
/// @param n    number of states on either side
std::vector<Cplx> mean_of_bra_and_ket(const std::vector<Cplx>& all, std::size_t n);

/// Calculates the first order by finite displacements with one wave vector, at the first k of the
/// options, and stores it in ElementsAtK::difference.
/// @param wanted    request with one perturbation for each of the elements
/// @param elements  elements of each perturbation
void add_wave_differences(const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
                          const SigmaOptions& options, const WaveDifferenceRequest& wanted,
                          const DeviceContext& context, std::vector<ElementsAtK>& elements);

/// Describes a displacement of one atom of every cell, with one wave vector.
struct Displacement {
  int atom = 1;          ///< counted from 1
  char direction = 'x';  ///< Cartesian
  /// Returns the name for messages and tables, such as "atom 1 x".
  std::string name() const { return "atom " + std::to_string(atom) + " " + direction; }
};

/// Holds the first orders between the outer states in displacements of atoms.
struct DisplacementElements {
  std::vector<Displacement> displacements;
  std::vector<int> k_index;                  ///< positions in the irreducible list
  std::vector<int> bra_index;                ///< those of k + q; empty: q = 0
  int band_min = 1, band_max = 1;            ///< bands of bra and ket, counted from 1
  std::vector<std::vector<ElementsAtK>> at;  ///< [displacement][k]
  /// Largest diagonal elements of ∂V and of ∂Σ summed over all atoms, Ry/Bohr
  /// (docs/theory/gw.md 14.4). The exact value for ∂V is 0. Both are absent unless all atoms are
  /// displaced.
  std::optional<double> acoustic_mean_field_ry, acoustic_sigma_ry;
  std::map<std::string, double> seconds;  ///< seconds of all devices by step of sigma_derivatives()
};

/// Returns the largest deviation of ∂Σ from finite displacements, Ry/Bohr, or 0 if there are
/// none.
double largest_deviation_ry(const ElementsAtK& at);

/// Returns the elements with ∂Σ replaced by its mean without one block of random vectors.
/// @param block  number of the block, from 0
DisplacementElements elements_without(const DisplacementElements& found, std::size_t block);

/// Returns the unit vector along 'x', 'y' or 'z'.
Vec3 unit_vector(char direction);

/// Lists the displacements of a request, atom by atom.
std::vector<Displacement> displacements_of(const PerturbationRequest& request,
                                           const Crystal& crystal);

/// Checks a request against the crystal of the job.
/// @throws InvalidInput if the crystal lacks an atom of the request, and as zero_point_modes() does
void check_displacements(const PerturbationRequest& request, const Crystal& crystal);

/// Checks that states beyond the bands of Σ exist where a request asks for their response.
/// @param bands  inner bands of Σ
/// @throws InvalidInput if the bands of Σ hold all plane waves of every k-point
void check_response(const PerturbationRequest& request, const MeanField& field, int bands);

struct FileDisplacement;

/// Holds references to a crystal and to the request that displaces its atoms.
struct DisplacedCrystal {
  const EmpiricalCrystal& crystal;  ///< not used with files
  const PerturbationRequest& request;
  /// Displacements of a mean field from files; null: the crystal is a built-in one.
  const std::vector<FileDisplacement>* files = nullptr;
  /// Filtered pseudobands among the inner states of Σ. With null all inner states are eigenstates.
  const FilteredPseudobands* pseudobands = nullptr;
  /// True: the built-in crystal has the V_xc of its density (local_density.hpp).
  bool local_density = false;
};

/// Returns the displacements of the request or, with files, the displacements of the files.
std::vector<Displacement> displacements_of(const DisplacedCrystal& displaced,
                                           const Crystal& crystal);

/// Returns one perturbation for each displacement that the deck lists, or for each of its files.
std::vector<Perturbation> perturbations_of(const DisplacedCrystal& displaced,
                                           const Crystal& crystal);

/// Calculates the first orders at every k of the options, at the energies of the outer states, on
/// the devices of the team. The checkpoint keeps finished parts. All ranks call it together.
/// @throws InvalidInput as sigma_derivatives() does, NotConverged if the acoustic sum of the mean
/// field exceeds 1e-6 eV/Bohr
DisplacementElements displacement_elements(const DisplacedCrystal& displaced,
                                           const MeanField& field,
                                           const std::vector<DielectricMatrix>& epsilon,
                                           SigmaOptions options, const StepContext& context);

}  // namespace quasi::gw
