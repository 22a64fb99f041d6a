#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pair_products/fft_cpu.hpp"
#include "workers/gw/kernels/pair_products/pair_block_cpu.hpp"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"

namespace quasi::gw {

/// Wavefunctions of some bands in host memory. They are transformed to the box at their first use.
struct CpuBands final : LoadedBands {
  FftBox box{};
  std::int64_t n_bands = 0, n_pw = 0;
  std::int64_t n_spinor = 1;            ///< components of a band
  bool real = false;                    ///< every coefficient is real
  std::vector<Cplx> coefficients;       ///< [n_bands][n_spinor][n_pw]
  std::vector<std::int32_t> box_index;  ///< [n_pw]
  mutable FftArray waves;  ///< u_n(r), [n_bands][n_spinor][n_r]; empty before the first use
};

/// Plane waves of pair products in host memory.
struct CpuSphere final : LoadedSphere {
  FftBox box{};
  SphereTransform to_sphere;
  std::vector<std::int32_t> box_index;  ///< [n_g]
  std::vector<Cplx> factor;             ///< [n_g]
  bool real = true;                     ///< every factor is real
  std::int64_t n_g() const { return static_cast<std::int64_t>(box_index.size()); }
};

/// Counts the numbers that decide between both ways of CpuPairProductKernels.
struct PairSizes {
  double n_row = 0.0;  ///< coefficients of a band
  double n_g = 0.0;    ///< plane waves of the products
  double n_r = 0.0;    ///< points of the box
};
/// Compares the flops of a convolution with those of a transform of the product on the box. The
/// gather of the convolution matrix is divided among the `n_right` bands that use it.
bool convolution_is_cheaper(const PairSizes& sizes, double n_right);

/// Computes M_ln(G) = 1/N_r Σ_r conj(u_l) u_n e^{iGr} on the CPU, in the cheaper of two ways
/// (docs/theory/gw.md 3):
///
///   transform:    product on the box, one FFT of the lines that reach the sphere, gather
///                                                                   ~ 5 N_r log₂ N_r flops a pair
///   convolution:  M_ln(G) = Σ_G' c*_l(G'+G) c_n(G'), for one l a matrix product over all n, where
///                 the sum runs over both components of spinors
///                                                                   8 N_pw N_G flops a pair
///
/// FFTs of small boxes run at about an eighth of the speed of matrix products. Leaving out lines
/// that no kept G needs halves their time, so they count as a quarter here. The convolution is
/// faster for small cells. Both ways are exact, and the choice depends on sizes alone.
class CpuPairProductKernels final : public PairProductKernels {
 public:
  std::unique_ptr<const LoadedBands> load_bands(const FftBox& box, View<const Cplx, 2> coefficients,
                                                View<const std::int32_t, 1> box_index) override;
  std::unique_ptr<const LoadedSphere> load_sphere(const FftBox& box,
                                                  View<const std::int32_t, 1> box_index,
                                                  View<const Cplx, 1> factor) override;
  std::unique_ptr<PairBlock> make_block() override { return std::make_unique<CpuPairBlock>(); }
  void fill(const BandSelection& left, const BandSelection& right, const LoadedSphere& sphere,
            PairBlock& block) override;
  void add_density(const BandSelection& bands, const LoadedSphere& sphere, double weight,
                   View<Cplx, 1> sum) override;

 private:
  void use_box(const FftBox& box);
  /// Returns the distance between bands in values. It is even, so that each band has FFTW's
  /// alignment.
  std::int64_t stride() const { return n_r_ + n_r_ % 2; }
  void make_waves(const CpuBands& bands) const;
  void fill_by_transform(const BandSelection& left, const BandSelection& right,
                         const CpuSphere& sphere, Cplx* products) const;

  FftBox box_{};  ///< box of the plan
  std::int64_t n_r_ = 0;
  FftPlan to_real_;
};

}  // namespace quasi::gw
