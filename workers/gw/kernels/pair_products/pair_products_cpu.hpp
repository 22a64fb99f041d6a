#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <vector>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/kernels/pair_products/fft_cpu.hpp"

namespace quasi::gw {

/// M_ln(G) = 1/N_r Σ_r conj(u_l) u_n e^{iGr} on the CPU, in the cheaper of two ways:
///
///   transform:    product on the box, one FFT of the lines that reach the sphere, gather
///                                                                   ~ 5 N_r log₂ N_r flops a pair
///   convolution:  M_ln(G) = Σ_G' c*_l(G'+G) c_n(G'), for one l a matrix product over all n
///                                                                   8 N_pw N_G flops a pair
///
/// FFTs of small boxes run at about an eighth of the speed of matrix products; leaving out lines
/// that no wanted G needs halves the time at least (24³: 55 for 103 µs), so they count as a quarter
/// here. The convolution wins for small cells. Both are exact, and the choice depends on sizes
/// alone.
class PairProducts {
 public:
  void set_box(std::array<int, 3> box);
  void load_bands(Side side, View<const Cplx, 2> coefficients,
                  View<const std::int32_t, 1> box_index);
  void load_sphere(View<const std::int32_t, 1> box_index, View<const Cplx, 1> factor);
  /// True if every coefficient of both sides and every factor is real, so that every M is.
  bool real() const { return bands_[0].real && bands_[1].real && real_factor_; }
  std::int64_t n_sphere() const { return static_cast<std::int64_t>(sphere_.size()); }
  /// @param products  [left][right][n_sphere], overwritten
  void run(BandRange left, BandRange right, Cplx* products);

 private:
  struct Bands {
    std::int64_t n_bands = 0, n_pw = 0;
    bool real = false;
    std::vector<Cplx> coefficients;       ///< [n_bands][n_pw]
    std::vector<std::int32_t> box_index;  ///< [n_pw]
    FftArray waves;                       ///< u_n(r), made when first wanted
  };
  /// Values from one band to the next: even, so that each starts on FFTW's alignment.
  std::int64_t stride() const { return n_r_ + n_r_ % 2; }
  bool convolution_is_cheaper(std::int64_t n_right) const;
  void make_waves(Bands& bands) const;
  void by_transform(BandRange left, BandRange right, Cplx* products);
  void by_convolution(BandRange left, BandRange right, Cplx* products) const;

  std::array<int, 3> box_{};
  std::int64_t n_r_ = 0;
  FftPlan to_real_;
  SphereTransform to_sphere_;
  Bands bands_[2];
  std::vector<std::int32_t> sphere_;
  std::vector<Cplx> factor_;
  bool real_factor_ = true;
};

}  // namespace quasi::gw
