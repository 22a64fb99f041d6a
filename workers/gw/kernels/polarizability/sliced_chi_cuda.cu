#include <algorithm>
#include <utility>

#include "workers/backend/unset_vector.hpp"
#include "workers/gw/kernels/polarizability/chi_pairs_cuda.cuh"
#include "workers/gw/kernels/polarizability/sliced_chi_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;

constexpr const char* kWhat = "slice of the polarizability";

/// Adds sign Σ_p a_p*(G) a_p(G') to the rectangle of rows G and columns G' ≥ its first row.
/// @param a  [depth][n]
void add_rectangle(cublasHandle_t blas, const ElementRows& rows, const WeightedBlock& block,
                   double* to) {
  const double one = 1.0;
  const int n = static_cast<int>(block.n_g), columns = static_cast<int>(block.n_g - rows.begin);
  const double* const a = block.real() + rows.begin;
  check(quasi::cuda::late::cublasDgemm(
            blas, CUBLAS_OP_N, CUBLAS_OP_T, columns, static_cast<int>(rows.size()),
            static_cast<int>(block.n_rows), &block.sign, a, n, a, n, &one, to, columns),
        kWhat);
}
void add_rectangle(cublasHandle_t blas, const ElementRows& rows, const WeightedBlock& block,
                   double2* to) {
  const double2 one{1.0, 0.0}, sign{block.sign, 0.0};
  const int n = static_cast<int>(block.n_g), columns = static_cast<int>(block.n_g - rows.begin);
  const double2* const a = block.complex() + rows.begin;
  check(quasi::cuda::late::cublasZgemm(
            blas, CUBLAS_OP_N, CUBLAS_OP_C, columns, static_cast<int>(rows.size()),
            static_cast<int>(block.n_rows), &sign, a, n, a, n, &one, to, columns),
        kWhat);
}

/// Sums slices of χ(0) in the memory of one GPU. Each slice is a rectangle of its rows and of the
/// columns G' ≥ its first row.
class CudaSlicedChiSum final : public SlicedChiSum {
 public:
  CudaSlicedChiSum(SharedContext context, std::shared_ptr<PairProductTransforms> pair_products,
                   std::int64_t n, const std::vector<ElementRows>& slices)
      : context_(std::move(context)),
        pair_products_(std::move(pair_products)),
        n_(n),
        slices_(slices),
        sums_(slices.size()) {}

  PairsReport add_pairs(const Pairs& pairs, const PairsOptions& options) override {
    // The size is fixed, so that bits do not depend on the memory that slices leave free.
    constexpr std::int64_t kBlock_bytes = std::int64_t{1} << 30;
    context_->use();
    const bool real = options.use_real && PairProductTransforms::is_real(pairs);
    for (std::size_t s = 0; s < slices_.size(); ++s) {
      if (real)
        make(slices_[s], sums_[s].real);
      else
        make(slices_[s], sums_[s].complex);
    }
    return add_pairs_to_chi(
        {.transforms = *pair_products_,
         .transform_stream = options.overlapped ? context_->preparation() : context_->stream(),
         .product_stream = context_->stream(),
         .blas = context_->blas(),
         .block_bytes = options.block_bytes > 0 ? options.block_bytes : kBlock_bytes,
         .real = real},
        pairs, [&](const WeightedBlock& block) {
          for (std::size_t s = 0; s < slices_.size(); ++s) {
            if (real)
              add_rectangle(context_->blas(), slices_[s], block, sums_[s].real.data());
            else
              add_rectangle(context_->blas(), slices_[s], block, sums_[s].complex.data());
          }
        });
  }

  std::vector<ChiSlice> finish() override {
    context_->use();
    std::vector<ChiSlice> found;
    for (std::size_t s = 0; s < slices_.size(); ++s) {
      found.push_back(taken(slices_[s], sums_[s]));
      sums_[s] = {};
    }
    return found;
  }

 private:
  /// Holds the sum of the complex terms and the sum of the real terms of one slice. A buffer is
  /// empty before its first term.
  struct Sums {
    DeviceBuffer<double2> complex;
    DeviceBuffer<double> real;
  };

  /// Allocates the rectangle of a slice with zeros, unless it exists already.
  template <typename T>
  void make(const ElementRows& rows, DeviceBuffer<T>& sum) const {
    if (sum.size() > 0) return;
    sum = DeviceBuffer<T>(static_cast<std::size_t>(rows.size() * (n_ - rows.begin)), kWhat);
    sum.zero(kWhat, context_->stream());
  }

  /// Copies to.size() elements of a rectangle from the element `first` on to the host. A rectangle
  /// that was never allocated gives zeros.
  template <typename T, typename OnHost>
  void read(const DeviceBuffer<T>& from, std::int64_t first, UnsetVector<OnHost>& to) const {
    static_assert(sizeof(T) == sizeof(OnHost));
    if (from.size() == 0) {
      std::fill(to.begin(), to.end(), OnHost{});
      return;
    }
    context_->staging().to_host(from.data() + first,
                                static_cast<std::int64_t>(to.size() * sizeof(T)), to.data(),
                                context_->stream(), kWhat);
  }

  ChiSlice taken(const ElementRows& rows, const Sums& sums) const {
    constexpr std::int64_t kValues = std::int64_t{1} << 23;  // most elements of one copy
    check(cudaStreamSynchronize(context_->stream()), kWhat);
    const bool real = sums.complex.size() == 0;
    const std::int64_t columns = n_ - rows.begin, step = real ? 1 : 2,
                       size = triangle_size(columns) - triangle_size(n_ - rows.end),
                       at_once = std::max<std::int64_t>(1, kValues / columns);
    ChiSlice slice{rows, real, UnsetVector<double>(static_cast<std::size_t>(step * size))};
    double* to = slice.values.data();
    for (std::int64_t begin = 0; begin < rows.size(); begin += at_once) {
      const std::int64_t end = std::min(rows.size(), begin + at_once);
      const auto count = static_cast<std::size_t>((end - begin) * columns);
      UnsetVector<double> in_real(count);
      UnsetVector<Cplx> in_complex(real ? 0 : count);
      read(sums.real, begin * columns, in_real);
      if (!real) read(sums.complex, begin * columns, in_complex);
      for (std::int64_t g = begin; g < end; ++g)
        for (std::int64_t h = g; h < columns; ++h) {
          const auto at = static_cast<std::size_t>((g - begin) * columns + h);
          *to++ = in_real[at] + (real ? 0.0 : in_complex[at].real());
          if (!real) *to++ = in_complex[at].imag();
        }
    }
    return slice;
  }

  SharedContext context_;
  std::shared_ptr<PairProductTransforms> pair_products_;
  std::int64_t n_;
  std::vector<ElementRows> slices_;
  std::vector<Sums> sums_;  ///< sums of each slice
};

}  // namespace

std::unique_ptr<SlicedChiSum> start_sliced_chi(SharedContext context,
                                               std::shared_ptr<PairProductTransforms> pair_products,
                                               std::int64_t n,
                                               const std::vector<ElementRows>& slices) {
  return std::make_unique<CudaSlicedChiSum>(std::move(context), std::move(pair_products), n,
                                            slices);
}

}  // namespace quasi::gw::cuda
