#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {

/// Most memory of the occupied bands and pair products of exchange at a time, if the budget of the
/// job is not smaller.
inline constexpr std::int64_t kExchangeBlock_bytes = std::int64_t{2} << 30;

/// The pair products M_ln(k, q; G) (docs/theory/gw.md 3) of the outer states l of one k and spin
/// with bands n at k − q, on one device. Every sum over the zone takes its products from here:
/// load_sphere() once for each q, then load_inner() and fill() for each block of bands.
class OuterProducts {
 public:
  /// Loads the outer states into the box of the transforms.
  /// @param box  box that holds the plane waves of every q that follows (sum_box)
  OuterProducts(const MeanField& field, const BandsAtK& outer, const std::array<int, 3>& box,
                GwKernels& kernels);

  /// Treatment of the phases e^{−i(SG₁)·τ} of products at a rotated q. Norms |M|² need none.
  enum class Phases { kApplied, kLeftOut };
  /// Loads the plane waves of the irreducible q, rotated to q.
  std::unique_ptr<const LoadedSphere> load_sphere(const Vec3& q, const GSphere& sphere,
                                                  Phases phases) const;
  /// Loads bands [begin, end) at k − q for the next fill().
  /// @return their energies and occupations and those of the outer states, with weight 1
  BandBlock load_inner(const Vec3& q, std::int64_t begin, std::int64_t end);
  /// Loads vectors [begin, end) of the complement at k − q for the next fill(). The box must be
  /// that of complement_box(). @return a block with weight 1, without energies and occupations
  BandBlock load_complement(const Vec3& q, int begin, int end);
  /// Calculates the products of the outer states with the inner bands on the sphere.
  PairBlock& fill(const LoadedSphere& sphere);

  const BandsAtK& outer() const { return outer_; }
  /// Bytes of one band in the box of the transforms.
  std::int64_t band_bytes() const {
    return std::int64_t{16} * box_[0] * box_[1] * box_[2] * field_.n_spinor();
  }

 private:
  const MeanField& field_;
  GwKernels& kernels_;
  BandsAtK outer_;
  std::array<int, 3> box_;
  Vec3 k_;
  std::unique_ptr<const LoadedBands> left_, right_;
  std::int64_t n_inner_ = 0;
  std::unique_ptr<PairBlock> products_;
};

}  // namespace quasi::gw
