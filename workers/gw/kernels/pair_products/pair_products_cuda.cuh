#pragma once

#include <cstdint>
#include <memory>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/pair_products/fft_plan_cuda.cuh"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"
#include "workers/gw/kernels/polarizability/polarizability_kernels.hpp"

namespace quasi::gw::cuda {

/// Wavefunctions of some bands on the box, in device memory.
struct CudaBands final : LoadedBands {
  FftBox box{};
  quasi::cuda::DeviceBuffer<double2> waves;  ///< u_n(r), [n_bands][n_spinor][n_r]
  std::int64_t n_spinor = 1;                 ///< components of a band
  bool real = false;                         ///< every coefficient is real
};

/// Plane waves of pair products in device memory.
struct CudaSphere final : LoadedSphere {
  FftBox box{};
  quasi::cuda::DeviceBuffer<std::int32_t> box_index;  ///< [n_g]
  quasi::cuda::DeviceBuffer<double2> factor;          ///< 1/N_r times the caller's factor, [n_g]
  bool real = true;                                   ///< every factor is real
  std::int64_t n_g() const { return static_cast<std::int64_t>(box_index.size()); }
};

/// Batched transforms of one device: plans of the current box and a buffer of boxes. Each batch
/// forms u*_l u_n for one l and many n, transforms in place and gathers the sphere.
class PairProductTransforms {
 public:
  /// Transforms `count` boxes in place: Σ_G c(G) e^{+iGr}.
  void transform(const FftBox& box, std::int64_t count, double2* data, cudaStream_t stream);
  /// Fills products of all left and right bands. @param products  [left][right][n_g] in device
  /// memory
  void fill(const BandSelection& left, const BandSelection& right, const CudaSphere& sphere,
            double2* products, cudaStream_t stream);

  /// Computes Σ_n M_nn of some bands. @param products  [n_g] in device memory
  void sum_squares(const BandSelection& bands, const CudaSphere& sphere, double2* products,
                   cudaStream_t stream);

  /// Rows √|w| M of one left band and a batch of right bands.
  struct WeightedRows {
    const CudaBands& left_bands;
    const CudaBands& right_bands;
    const CudaSphere& sphere;
    std::int64_t left = 0;
    BandRange right;
    bool real = false;  ///< M is real: two products share a transform, and rows hold double
    const double* root = nullptr;   ///< √|w|, [right.size()]
    const double2* head = nullptr;  ///< M of the first plane waves, [n_heads] of [right.size()],
                                    ///< `head_stride` apart; or null
    std::int64_t n_heads = 0, head_stride = 0;
    void* rows = nullptr;  ///< [right.size()][n_g] of double2 or double
  };
  /// Fills the rows that `wanted` describes, in the order of `stream`.
  void fill_weighted(const WeightedRows& wanted, cudaStream_t stream);

  /// Returns the largest right.size() of fill_weighted().
  static std::int64_t largest_rows(const FftBox& box, std::int64_t n_right, bool real);
  /// Returns true if coefficients of both sides and factors of the sphere are real.
  static bool is_real(const BandSelection& left, const BandSelection& right,
                      const CudaSphere& sphere);
  /// Returns true if coefficients of both sides, factors of the sphere and heads are real.
  static bool is_real(const ChiSum::Pairs& pairs);

 private:
  void use_box(const FftBox& box);
  const FftPlanCuda& plan(int batch);
  double2* work_of(std::int64_t boxes);

  FftBox box_{};  ///< box of plans and buffer
  std::int64_t n_r_ = 0;
  quasi::cuda::DeviceBuffer<double2> work_;  ///< [batch][n_r]
  FftPlanCuda plans_[2];                     ///< for full batches and for the last one
  int plan_batch_[2] = {0, 0};
};

/// Pair products by batched FFT in device memory (docs/theory/gw.md 3).
class CudaPairProductKernels final : public PairProductKernels {
 public:
  CudaPairProductKernels(SharedContext context, std::shared_ptr<PairProductTransforms> transforms)
      : context_(std::move(context)), transforms_(std::move(transforms)) {}
  std::unique_ptr<const LoadedBands> load_bands(const FftBox& box, View<const Cplx, 2> coefficients,
                                                View<const std::int32_t, 1> box_index) override;
  std::unique_ptr<const LoadedSphere> load_sphere(const FftBox& box,
                                                  View<const std::int32_t, 1> box_index,
                                                  View<const Cplx, 1> factor) override;
  std::unique_ptr<PairBlock> make_block() override;
  void fill(const BandSelection& left, const BandSelection& right, const LoadedSphere& sphere,
            PairBlock& block) override;
  void add_density(const BandSelection& bands, const LoadedSphere& sphere, double weight,
                   View<Cplx, 1> sum) override;

 private:
  SharedContext context_;
  std::shared_ptr<PairProductTransforms> transforms_;
};

}  // namespace quasi::gw::cuda
