#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "workers/gw/solver/screening/epsilon.hpp"
#include "workers/gw/solver/screening/polarizability/long_wave_dipoles.hpp"

namespace quasi::gw {

/// Number of plane waves that stand for G = 0 in χ. At q → 0 by k·p there are three, for q along x,
/// y and z, from which every direction follows (long_wave_tensor.hpp). Elsewhere there is one.
std::int64_t head_count(const MeanField& field, bool at_gamma);

/// True if q stands for q → 0.
bool is_small(const MeanField& field, const Vec3& q);

/// Returns the number of k-points in the sum for χ, after reduction by symmetry.
std::int64_t polarizability_k_points(const MeanField& field, const Vec3& q,
                                     const EpsilonOptions& options);

/// Number of pairs (k, v, c) in the sum for χ, after reduction by symmetry.
std::int64_t polarizability_pairs(const MeanField& field, const Vec3& q,
                                  const EpsilonOptions& options);

/// χ(q; ω) by a sum over the wedge of k of the little group, rotated into the full sum
/// (docs/theory/gw.md 4; adler1962, wiser1963); [n_frequencies][n][n].
///
///   χ_GG'(q; ω) = (4/(N_k Ω)) Σ_kvc M*_vc(G) M_vc(G') ½ [1/(Δ − ω) + 1/(Δ + ω)]
///   Δ = E_v,k+q − E_c,k < 0,  M_vc(G) = ⟨v, k+q| e^{i(q+G)r} |c, k⟩
///
/// With head_count() = 3 the first three plane waves stand for G = 0, all of the length of q₀.
/// χ(0) is a Hermitian product, which takes half of the operations. Other frequencies are general
/// products.
///
/// The pairs are cut into units of (k, block of v, block of c), and the units into portions. Units,
/// portions and the order of their sum (ordered_sum.hpp) do not depend on the number of devices.
/// Portions are added on the devices that calculated them.
///
/// Read polarizability.cpp first, which cuts the sum, then portion_of_chi.cpp, which calculates one
/// portion, long_wave_dipoles.hpp for q → 0 and symmetry_of_chi.hpp for the rotation.
class Polarizability {
 public:
  /// @param profile  null: no times are kept
  Polarizability(const MeanField& field, const DielectricMatrix& at, const EpsilonOptions& options,
                 EpsilonProfile* profile = nullptr);
  std::int64_t portions() const { return portions_; }
  /// Calculates the sum of one portion, not yet rotated. It stays on the device if sums of this
  /// size have room there.
  std::unique_ptr<PartialChi> portion(std::int64_t index, GwKernels& kernels,
                                      Progress& progress) const;
  /// Calculates some slices of χ(0) as sums over all pairs of bands, before the symmetry
  /// operations are applied. @pre the shape has no frequency other than 0
  std::vector<ChiSlice> slices(const std::vector<ElementRows>& slices, GwKernels& kernels,
                               Progress& progress) const;
  /// Shape of the result of portion().
  ChiShape shape() const;
  /// Restores the sum of a portion from its packed values (PackedChi::piece), on the device or the
  /// host as portion() does.
  std::unique_ptr<PartialChi> restored(const Piece& packed, GwKernels& kernels) const;
  /// True if the sum over the wedge is the sum over the zone.
  bool is_whole() const { return whole_; }
  /// With k·p and fewer k-points than portions: calculates the dipoles once, by all devices of this
  /// rank together, instead of once on every device.
  void share_dipoles(DeviceTeam& team);
  /// Makes all later portions hold the frequencies other than 0 between the columns of `basis`
  /// [n][n_basis]; [n_frequencies − 1][n_basis][n_basis].
  void project_on(std::vector<Cplx> basis) { basis_ = std::move(basis); }
  /// Adds the contributions of the rest of each star to the sum over the wedge; [shape().size()].
  std::vector<Cplx> complete(std::vector<Cplx> sum) const;
  /// Frees the data that portions have left on devices for their next portions.
  void release();

 private:
  class PortionSum;
  /// Pairs of one block of occupied and one block of empty bands at one k.
  struct Unit {
    int spin = 0;
    std::size_t orbit = 0;  ///< index into `wedge_`
    BandRange valence;
    BandRange conduction;  ///< counted from first_empty()
  };
  std::array<int, 3> box() const;
  /// Data of a portion that stay on a device for the next portion.
  struct Resident {
    std::unique_ptr<const LoadedSphere> sphere;
    std::unique_ptr<const LoadedBands> empty_bands;  ///< of (orbit, spin)
    std::size_t orbit = 0;
    int spin = 0;
    BandRange conduction;
    std::vector<Cplx> dipole;  ///< of (orbit, spin) by k·p, [3][n_v][n_c]; else empty
  };
  Resident& resident(GwKernels& kernels) const;
  /// Number of the first empty band of the sum, counted from 0.
  std::int64_t first_empty(int spin) const {
    return std::max(field_.n_occupied_of_spin[static_cast<std::size_t>(spin)],
                    options_.first_empty_band);
  }
  bool by_velocity() const { return at_.at_gamma && field_.by_velocity; }
  /// True if the occupied states at k + q are those of WFNq.
  bool uses_shifted_states() const { return at_.at_gamma && !by_velocity(); }
  const MeanField& field_;
  const DielectricMatrix& at_;
  const EpsilonOptions& options_;
  EpsilonProfile* profile_;
  struct Residents {
    std::mutex mutex;
    std::mutex packing;  ///< held while values of a whole χ are in host memory
    std::map<const GwKernels*, Resident> of;
  };
  std::shared_ptr<Residents> residents_ = std::make_shared<Residents>();
  bool fits_device() const;

  std::int64_t n_heads_ = 1;  ///< plane waves that stand for G = 0
  std::int64_t edge_ = 0;     ///< rows of χ: n_heads_ − 1 more than the sphere has plane waves
  std::vector<int> group_;
  bool whole_ = false;
  std::vector<Orbit> wedge_;
  std::vector<Unit> units_;
  std::vector<Cplx> basis_;
  LongWaveDipoles dipoles_;
  std::int64_t portions_ = 1;
};

}  // namespace quasi::gw
