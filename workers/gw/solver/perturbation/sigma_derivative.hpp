#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workers/gw/model/sigma_options.hpp"
#include "workers/gw/solver/mean_field/pseudobands.hpp"
#include "workers/gw/solver/perturbation/response/sternheimer.hpp"
#include "workers/gw/solver/self_energy/sigma.hpp"
#include "workers/gw/solver/step_times.hpp"

// The folder workers/gw/solver/perturbation calculates the first order of Σ in a displacement of
// atoms, with W fixed (docs/theory/gw.md 14). Begin here: sigma_derivatives() is the whole step.
// Then read atom_displacement.hpp for ∂V of an atom, coupling_parts.hpp for its elements between
// states, and derivative_at_point.hpp for the sums at one q.
namespace quasi::gw {

class SpinOrbitDisplacement;

/// Calculates ⟨k+p+G|∂V|k+G'⟩ between plane waves, Ry/Bohr; [n_bra][n_ket].
/// @param k    reduced, of the ket
/// @param bra  plane waves G at k + p
/// @param ket  plane waves G' at k
using PotentialDerivative = std::function<std::vector<Cplx>(
    const Vec3& k, const std::vector<IVec3>& bra, const std::vector<IVec3>& ket)>;

/// Describes a displacement of one Bohr along one coordinate, with the factor e^{ip·R} in cell R.
struct Perturbation {
  std::string name;  ///< name of the coordinate, for messages and tables
  Vec3 p{};          ///< wave vector, reduced
  /// ∂V between plane waves. It acts on both components of spinors alike.
  PotentialDerivative potential;
  /// ∂V(G) of a real local potential with the period of the lattice, Ry/Bohr. It is empty for a
  /// ∂V of another kind, whose elements `potential` alone has.
  PotentialElements elements = {};
  /// Part of ∂V that acts on spins (docs/theory/gw.md 15.5); null: ∂V has none.
  std::shared_ptr<const SpinOrbitDisplacement> spin_orbit = {};
  /// Hash of the values of ∂V. A checkpoint of another ∂V with the same name is not used.
  std::uint64_t digest = 0;
};

/// Holds the derivatives of Σ in one perturbation between outer states l and m, Ry/Bohr.
struct DerivativeSums {
  std::vector<Cplx> correlation;  ///< [n_energies][n_l][n_m]
  /// The correlation without the shifts of energies: pairs of one multiplet are left out
  /// (docs/theory/gw.md 14.3). [n_energies][n_l][n_m]
  std::vector<Cplx> fixed_energies;
  std::vector<Cplx> exchange;  ///< [n_l][n_m]
};

/// Holds the first orders ⟨l, k+p| · |m, k⟩ in one perturbation at one k, Ry/Bohr. Matrices
/// are [l][m].
struct SigmaDerivativeAtK {
  int k_index = 0;  ///< k of the ket m: position in the irreducible list
  int spin = 0;
  std::int64_t n = 0;             ///< outer states on either side
  std::vector<double> energy_ry;  ///< E, [n_e]
  std::vector<Cplx> mean_field;   ///< ⟨l|∂V|m⟩
  /// Parts of ∂Σ. Static COHSEX has one energy.
  DerivativeSums sigma;
  /// Parts of ∂Σ without one block of random vectors in W and G, [block]; empty without blocks.
  std::vector<DerivativeSums> without = {};

  /// Returns the element (l, m) of ∂Σ = ∂Σ_x + ∂Σ_c at energy number e, Ry/Bohr.
  Cplx at(std::size_t e, std::int64_t l, std::int64_t m) const {
    const auto i = static_cast<std::size_t>(l * n + m);
    return sigma.exchange[i] + sigma.correlation[e * static_cast<std::size_t>(n * n) + i];
  }
};

/// Describes the filtered pseudobands among the inner states of a derivative of Σ.
struct FilteredPseudobands {
  const PseudobandPlan& plan;    ///< plan of Σ, with polynomials of H (PseudobandPlan::filter)
  const Wavefunctions& factors;  ///< random vectors of vectors_of_filter()
  /// ε⁻¹ without one block of random vectors in χ, [block]. With an empty list the blocks have
  /// no sums of their own.
  std::vector<const std::vector<DielectricMatrix>*> without = {};
};

/// Returns x = E − E_n at which a derivative subtracts the closed sum over all states. This sum
/// does not move with the atoms (docs/theory/gw.md 14.12). It is absent without pseudobands, and
/// where Σ has no closed sum. Static CH is equal at all x.
inline std::optional<double> closed_x_ry(const SigmaOptions& options,
                                         const FilteredPseudobands* pseudobands) {
  if (pseudobands == nullptr) return std::nullopt;
  if (options.method != SigmaMethod::kCohsex) return options.closed_sum_x_ry;
  return options.exact_static_ch ? std::optional(0.0) : std::nullopt;
}

/// Holds the perturbations in which Σ is derived, and the energies E at which Σ is taken.
struct DerivativeRequest {
  /// All perturbations have the same wave vector p, which is a difference of two k-points.
  const std::vector<Perturbation>& perturbations;
  const std::vector<double>& energies_ry;  ///< E of Σ_lm(E), common to all elements
  StepTimes* times = nullptr;              ///< receives the seconds of devices by step; may be null
  /// Linear equations for the first orders of states beyond the bands of Σ. With null these first
  /// orders are left out.
  const StateResponse* response = nullptr;
  /// Pseudobands among the bands of Σ, which need a response. With null all bands are eigenstates.
  const FilteredPseudobands* pseudobands = nullptr;
};

/// Calculates the first order ∂Σ_lm(E) between the outer states of the options at every k of
/// their list (docs/theory/gw.md 14.2). The first orders of the inner states are sums over the
/// bands of Σ. States beyond these bands enter, too, if the request has a response
/// (docs/theory/gw.md 14.10). With pseudobands the random vectors do not move, and each block of
/// them has a derivative of its own (docs/theory/gw.md 14.12). Energies and occupations are those
/// of the mean field, which has one spin. The devices of the team share parts of the bands, and the
/// checkpoint keeps finished parts. The bits depend neither on the number of devices nor on an
/// interruption. All ranks call it together.
/// @return Ry/Bohr, [perturbation][k]
/// @throws InvalidInput for methods without a first order, imaginary poles, the static remainder,
/// the completed CH of eigenstates, and pseudobands without polynomials of H or without a response.
/// It also rejects two spins, perturbations with different p, and a p that does not lead from each
/// k-point to another.
std::vector<std::vector<SigmaDerivativeAtK>> sigma_derivatives(
    const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
    const SigmaOptions& options, const DerivativeRequest& wanted, const StepContext& context);

/// Calculates the result of the function above on one device, without a checkpoint.
/// @param energies_ry  E, common to all elements
/// @throws InvalidInput as the function above does
std::vector<std::vector<SigmaDerivativeAtK>> sigma_derivatives(
    const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
    const SigmaOptions& options, const std::vector<Perturbation>& perturbations,
    const std::vector<double>& energies_ry, const DeviceContext& context);

}  // namespace quasi::gw
