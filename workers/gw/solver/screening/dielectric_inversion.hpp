#pragma once

#include <memory>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/solver/screening/epsilon.hpp"
#include "workers/gw/solver/screening/polarizability/polarizability.hpp"

namespace quasi::gw {

/// The step from χ(q; ω) to ε⁻¹(q; ω) (docs/theory/gw.md 4), on one device. At q → 0 by k·p three
/// plane waves stand for G = 0 in χ. The inverse is then folded into ε⁻¹ in the direction of q₀ and
/// the limits of all directions (docs/theory/gw.md 4.1).
class DielectricInversion {
 public:
  DielectricInversion(const MeanField& field, const EpsilonOptions& options,
                      const CoulombInteraction& coulomb)
      : field_(field), options_(options), coulomb_(coulomb) {}

  /// Makes the matrix of one q with its sphere, v and frequencies, without ε⁻¹.
  /// @throws InvalidInput for q → 0 if neither WFNq nor the Hamiltonian is given
  DielectricMatrix empty_matrix(const Vec3& q) const;

  /// Inverts ε at all frequencies of a complete χ.
  /// @throws NotConverged naming the leading minor where ε̃ should be positive definite and is not
  void invert(const PartialChi& chi, GwKernels& kernels, DielectricMatrix& m) const;

  /// Inverts ε(0) of a complete χ, whose memory it takes, in slices on all devices of this rank
  /// (slices/sliced_inversion.hpp).
  /// @throws NotConverged as invert() does, and InvalidInput if v is not positive at some q+G
  void invert_in_slices(std::unique_ptr<PartialChi> chi, DeviceTeam& team,
                        DielectricMatrix& m) const;

  /// Returns ε̃⁻¹ at ω = 0 of a complete χ, whose memory it takes, on the device of
  /// `kernels`. Plane waves that stand for G = 0 are not folded. v must be positive. @throws as
  /// invert()
  std::unique_ptr<const DielectricInverse> invert_definite(std::unique_ptr<PartialChi> chi,
                                                           GwKernels& kernels,
                                                           const DielectricMatrix& m) const;

  /// Calculates χ and ε⁻¹ of one q in a static subspace (docs/theory/gw.md 4.2).
  /// @throws InvalidInput if a truncated v is negative at some q+G
  void invert_in_subspace(Polarizability& sum, GwKernels& kernels, Progress& progress,
                          DielectricMatrix& m) const;

 private:
  /// @param wide        the inverse in which G = 0 stands three times
  /// @param chi_corner  χ(0) between these three plane waves, [3][3]
  void fold(DielectricMatrix wide, const std::vector<Cplx>& chi_corner, DielectricMatrix& m) const;

  const MeanField& field_;
  const EpsilonOptions& options_;
  const CoulombInteraction& coulomb_;
};

}  // namespace quasi::gw
