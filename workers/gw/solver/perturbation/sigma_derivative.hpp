#pragma once

#include <functional>
#include <string>
#include <vector>

#include "workers/gw/model/sigma_options.hpp"
#include "workers/gw/solver/perturbation/divided_differences.hpp"
#include "workers/gw/solver/self_energy/sigma.hpp"

// The folder workers/gw/solver/perturbation calculates the first order of Σ in a displacement of
// atoms, with W fixed (docs/theory/gw.md 14). Begin here: sigma_derivatives() is the whole step.
// Then read atom_displacement.hpp for ∂V of an atom, state_coupling.hpp for its elements between
// states, and divided_differences.hpp for the sums at one q.
namespace quasi::gw {

/// Calculates ⟨k+p+G|∂V|k+G'⟩ between plane waves, Ry/Bohr; [n_bra][n_ket].
/// @param k    reduced, of the ket
/// @param bra  plane waves G at k + p
/// @param ket  plane waves G' at k
using PotentialDerivative = std::function<std::vector<Cplx>(
    const Vec3& k, const std::vector<IVec3>& bra, const std::vector<IVec3>& ket)>;

/// A displacement of one Bohr along one coordinate, with the factor e^{ip·R} in cell R.
struct Perturbation {
  std::string name;  ///< of the coordinate, for messages and tables
  Vec3 p{};          ///< wave vector, reduced
  PotentialDerivative potential;
};

/// First order of ⟨l, k+p| · |m, k⟩ in one perturbation, Ry/Bohr; matrices are [l][m].
struct SigmaDerivativeAtK {
  int k_index = 0;  ///< k of the ket m: position in the irreducible list
  int spin = 0;
  std::int64_t n = 0;             ///< outer states on either side
  std::vector<double> energy_ry;  ///< E, [n_e]
  std::vector<Cplx> mean_field;   ///< ⟨l|∂V|m⟩
  /// Its sums; Σ of the static method has one energy.
  DerivativeSums sigma;

  /// Element of ∂Σ = ∂Σ_x + ∂Σ_c at one energy.
  Cplx at(std::size_t e, std::int64_t l, std::int64_t m) const {
    const auto i = static_cast<std::size_t>(l * n + m);
    return sigma.exchange[i] + sigma.correlation[e * static_cast<std::size_t>(n * n) + i];
  }
};

/// Calculates the first order of Σ between the outer states of the options at every k of their
/// list, [perturbation][k]. All bands of the inner sum enter the first order of the states, too.
/// Energies and the occupied bands at k + p are those of the mean field. One spin.
/// @param perturbations  all of one wave vector p, which is a difference of two k-points
/// @param energies_ry    E of Σ_lm(E), common to all elements
/// @throws InvalidInput for methods without a first order, for imaginary poles, for two spins, and
/// for a p that does not lead from each k-point to another
std::vector<std::vector<SigmaDerivativeAtK>> sigma_derivatives(
    const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
    const SigmaOptions& options, const std::vector<Perturbation>& perturbations,
    const std::vector<double>& energies_ry, const DeviceContext& context);

}  // namespace quasi::gw
