#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "workers/gw/solver/screening/epsilon.hpp"

namespace quasi::gw {

/// How often G = 0 stands in χ: at q → 0 by k·p three times, for q along x, y and z, which tells
/// every direction (long_wave_tensor.hpp); else once.
std::int64_t head_count(const MeanField& field, bool at_gamma);

/// True if q stands for q → 0.
bool is_small(const MeanField& field, const Vec3& q);

/// Pairs (k, v, c) that χ of one q sums, after symmetry.
std::int64_t polarizability_pairs(const MeanField& field, const Vec3& q,
                                  const EpsilonOptions& options);

/// χ(q; ω) by sum over the little group's wedge of k, rotated into the full sum;
/// [n_frequencies][n][n].
///
///   χ_GG'(q; ω) = (4/(N_k Ω)) Σ_kvc M*_vc(G) M_vc(G') ½ [1/(Δ − ω) + 1/(Δ + ω)],  Δ = E_v,k+q −
///   E_c,k < 0 M_vc(G) = ⟨v, k+q| e^{i(q+G)r} |c, k⟩
/// (docs/theory/gw.md 4)
///
/// With head_count() = 3 the first three plane waves stand for G = 0, all of the length of q₀.
/// At ω = 0 by the Hermitian product (half the flops); other frequencies by general products.
///
/// The pairs (k, block of v) are cut into portions that do not depend on the number of devices, and
/// portions are added in an order that does not either (ordered_sum.hpp), on the devices that made
/// them.
class Polarizability {
 public:
  /// @param profile  null: no times are kept
  Polarizability(const MeanField& field, const DielectricMatrix& at, const EpsilonOptions& options,
                 EpsilonProfile* profile = nullptr);
  std::int64_t portions() const { return portions_; }
  /// Sum of one portion, not yet rotated, left on the device where sums of this size have room
  /// there.
  std::unique_ptr<PartialChi> portion(std::int64_t index, GwKernels& kernels,
                                      Progress& progress) const;
  /// Shape of the result of portion().
  ChiShape shape() const;
  /// Restores the values of PartialChi::read to the place where portion() would leave them;
  /// [shape().size()].
  std::unique_ptr<PartialChi> restored(const Cplx* values, GwKernels& kernels) const;
  /// True if the sum over the wedge is the sum over the zone.
  bool is_whole() const { return whole_; }
  /// k·p where the pairs of one k are shared: the dipoles of all of them, a block of c each, by all
  /// devices of this rank, instead of by every device for itself.
  void share_dipoles(DeviceTeam& team);
  /// Makes all later portions hold the frequencies other than 0 between the columns of `basis`
  /// [n][n_basis]; [n_frequencies − 1][n_basis][n_basis].
  void project_on(std::vector<Cplx> basis) { basis_ = std::move(basis); }
  /// Adds to the wedge's sum what the rest of each star contributes; [shape().size()].
  std::vector<Cplx> complete(std::vector<Cplx> sum) const;
  /// Frees the data that portions have left on devices for their next portions.
  void release();

 private:
  struct Unit {
    int spin = 0;
    std::size_t orbit = 0;
    BandRange valence, conduction;  ///< the latter counted from the first empty band
  };
  std::array<int, 3> box() const;
  /// Data of one portion that stay on a device for the next portion.
  struct Resident {
    std::unique_ptr<const LoadedSphere> sphere;
    std::unique_ptr<const LoadedBands> right;  ///< conduction bands of (orbit, spin)
    std::size_t orbit = 0;
    int spin = 0;
    BandRange conduction;
    std::vector<Cplx> dipole;  ///< by_velocity: M_vc(q → 0; 0) of all pairs there, [3][n_v][n_c]
  };
  Resident& resident(GwKernels& kernels) const;
  bool by_velocity() const { return at_.at_gamma && field_.by_velocity; }
  /// k·p: ⟨v| q·∂H/∂k |c⟩/(E_v − E_c) of all v of one k and one of so many blocks of c, q along x,
  /// y and z, into [3][n_v][n_c]. Blocks do not depend on the number of devices.
  std::int64_t dipole_blocks(int spin) const;
  void add_dipoles(const Orbit& orbit, int spin, std::int64_t block, GwKernels& kernels,
                   std::vector<Cplx>& to) const;
  std::vector<Cplx> dipoles(const Orbit& orbit, int spin, GwKernels& kernels) const;

  const MeanField& field_;
  const DielectricMatrix& at_;
  const EpsilonOptions& options_;
  EpsilonProfile* profile_;
  struct Residents {
    std::mutex mutex;
    std::map<const GwKernels*, Resident> of;
  };
  std::shared_ptr<Residents> residents_ = std::make_shared<Residents>();
  bool fits_device() const;

  std::int64_t n_heads_ = 1;  ///< plane waves that stand for G = 0
  std::int64_t edge_ = 0;     ///< of χ: n_heads_ − 1 more than the sphere's
  std::vector<int> group_;
  bool whole_ = false;
  std::vector<Orbit> wedge_;
  std::vector<Unit> units_;
  std::vector<Cplx> basis_;
  std::map<std::pair<std::size_t, int>, std::vector<Cplx>>
      dipoles_;  ///< of (orbit, spin), where they are shared
  std::int64_t portions_ = 1;
};

/// χ_G'G = χ*_GG' from the triangle that PartialChi holds.
void fill_lower_triangle(View<Cplx, 2> matrix);

/// True if a sum over the group changes nothing.
/// @param group  indices into `operations`
bool is_identity_alone(const std::vector<SymmetryOperation>& operations,
                       const std::vector<int>& group);
/// (1/|G|) Σ_S S·χ: adds to the wedge's sum what the rest of each star contributes, or makes a
/// matrix symmetric. For f = S q + g₀, (Sχ)_GG' = e^{−i(G+g₀)τ} χ_G₁G₁' e^{+i(G'+g₀)τ} with G₁ =
/// S⁻¹(G+g₀).
UnsetVector<Cplx> summed_over_group(UnsetVector<Cplx> chi, const GSphere& sphere,
                                    const std::vector<SymmetryOperation>& operations,
                                    const std::vector<int>& group, bool at_gamma);

}  // namespace quasi::gw
