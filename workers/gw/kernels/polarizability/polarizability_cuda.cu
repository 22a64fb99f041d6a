#include "workers/gw/kernels/polarizability/polarizability_cuda.cuh"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/dense/dense_cuda.cuh"
#include "workers/gw/kernels/pair_products/pair_block_cuda.cuh"
#include "workers/gw/kernels/polarizability/chi_pairs_cuda.cuh"
#include "workers/gw/kernels/polarizability/dielectric_inverse_cuda.cuh"
#include "workers/gw/kernels/polarizability/partial_chi_cuda.cuh"
#include "workers/gw/kernels/polarizability/sliced_chi_cuda.cuh"
#include "workers/gw/model/memory_limits.hpp"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;

constexpr const char* kStatic = "polarizability";
constexpr const char* kFurther = "polarizability at frequencies";

/// Computes out[p][g] = w_p m[p][g] for rows p of a chunk.
struct ScaleRows {
  const double2* m;
  const double2* weight;
  std::int64_t n_g;
  double2* out;
  __device__ void operator()(std::int64_t i) const {
    const double2 w = weight[i / n_g];
    const double2 a = m[i];
    out[i] = {fma(w.x, a.x, -w.y * a.y), fma(w.x, a.y, w.y * a.x)};
  }
};

class CudaChiSum final : public ChiSum {
 public:
  CudaChiSum(SharedContext context, std::shared_ptr<PairProductTransforms> pair_products,
             const ChiShape& shape)
      : context_(std::move(context)), pair_products_(std::move(pair_products)), shape_(shape) {
    context_->use();
    further_ = DeviceBuffer<double2>(static_cast<std::size_t>(shape.size() - shape.static_size()),
                                     kFurther);
    further_.zero(kFurther, context_->stream());
  }

  void add(const PairBlock& block, View<const double, 2> weight) override {
    context_->use();
    double sign = 0.0;
    std::vector<double2> root(static_cast<std::size_t>(block.n_pairs()));
    for (std::int64_t p = 0; p < block.n_pairs(); ++p) {
      const double w = weight.data[p];
      if (w * sign < 0.0)
        throw std::logic_error("the weights of one block of pairs differ in sign");
      if (w != 0.0) sign = w > 0.0 ? 1.0 : -1.0;
      root[static_cast<std::size_t>(p)] = {std::sqrt(std::abs(w)), 0.0};
    }
    if (sign == 0.0) return;
    for_each_scaled_chunk(
        block, root, [&](std::int64_t, std::int64_t count, const double2* scaled) {
          add_hermitian(context_->blas(), block.n_g(), count, sign, scaled, complex_chi());
        });
  }

  void add_at_frequencies(const PairBlock& block, View<const Cplx, 3> weight) override {
    context_->use();
    const double2 one{1.0, 0.0};
    const int n = static_cast<int>(block.n_g());
    const std::int64_t n_g = block.n_g(), n_pairs = block.n_pairs();
    const double2* products = dynamic_cast<const CudaPairBlock&>(block).data();
    for (std::int64_t i = 0; i < weight.extent[0]; ++i) {
      const double2* w = as_double2(weight.data + i * n_pairs);
      for_each_scaled_chunk(
          block, {w, w + n_pairs},
          [&](std::int64_t first, std::int64_t count, const double2* scaled) {
            // In column-major order (G', G): Σ_p w M(G') M*(G).
            check(quasi::cuda::late::cublasZgemm(context_->blas(), CUBLAS_OP_N, CUBLAS_OP_C, n, n,
                                                 static_cast<int>(count), &one, scaled, n,
                                                 products + first * n_g, n, &one,
                                                 further_.data() + i * n_g * n_g, n),
                  kFurther);
          });
    }
  }

  PairsReport add_pairs(const Pairs& pairs, const PairsOptions& options) override {
    context_->use();
    const bool real = options.use_real && PairProductTransforms::is_real(pairs);
    double* const to_real = real ? real_chi() : nullptr;
    double2* const to_complex = real ? nullptr : complex_chi();
    const std::int64_t block_bytes =
        options.block_bytes > 0
            ? options.block_bytes
            : std::min<std::int64_t>(kChiBlock_bytes, context_->workspace_bytes() / 4);
    return add_pairs_to_chi(
        {.transforms = *pair_products_,
         .transform_stream = options.overlapped ? context_->preparation() : context_->stream(),
         .product_stream = context_->stream(),
         .blas = context_->blas(),
         .block_bytes = block_bytes,
         .real = real},
        pairs, [&](const WeightedBlock& block) {
          if (real)
            add_symmetric(context_->blas(), block.n_g, block.n_rows, block.sign, block.real(),
                          to_real);
          else
            add_hermitian(context_->blas(), block.n_g, block.n_rows, block.sign, block.complex(),
                          to_complex);
        });
  }

  std::unique_ptr<PartialChi> finish() override {
    context_->use();
    const bool real = shape_.n_static > 0 && shape_.n_frequencies == 0 && chi_.size() == 0;
    if (!real && real_.size() > 0)
      move_real_part(complex_chi(), real_.data(), shape_.n_static, context_->stream());
    if (real)
      real_chi();
    else
      complex_chi();
    check(cudaStreamSynchronize(context_->stream()), kStatic);
    auto taken =
        real ? std::make_unique<CudaChi>(context_, shape_, std::move(real_))
             : std::make_unique<CudaChi>(context_, shape_, std::move(chi_), std::move(further_));
    chi_ = {};
    further_ = {};
    real_ = {};
    return taken;
  }

 private:
  /// Returns the sum of one kind of terms, which is 0 before the first one. A sum without complex
  /// terms needs no complex matrix.
  double2* complex_chi() { return made(chi_).data(); }
  double* real_chi() { return made(real_).data(); }
  template <typename T>
  DeviceBuffer<T>& made(DeviceBuffer<T>& sum) {
    if (sum.size() > 0 || shape_.n_static == 0) return sum;
    sum = DeviceBuffer<T>(static_cast<std::size_t>(shape_.static_size()), kStatic);
    sum.zero(kStatic, context_->stream());
    return sum;
  }
  /// Calls use(first, count, w_p M_p) for consecutive chunks of pairs.
  template <typename Use>
  void for_each_scaled_chunk(const PairBlock& block, const std::vector<double2>& weight, Use use) {
    constexpr const char* kWhat = "weighted pair products";
    const auto& products = dynamic_cast<const CudaPairBlock&>(block);
    const std::int64_t n_g = block.n_g();
    const DeviceBuffer<double2> w(weight, kWhat);
    const std::int64_t chunk = products.rows_that_fit(kWhat);
    DeviceBuffer<double2> scaled(static_cast<std::size_t>(chunk * n_g), kWhat);
    check(cudaDeviceSynchronize(), kWhat);
    for (std::int64_t first = 0; first < block.n_pairs(); first += chunk) {
      const std::int64_t count = std::min(chunk, block.n_pairs() - first);
      for_each_index(count * n_g,
                     ScaleRows{products.data() + first * n_g, w.data() + first, n_g, scaled.data()},
                     kWhat, context_->stream());
      use(first, count, scaled.data());
    }
    check(cudaStreamSynchronize(context_->stream()), kWhat);
  }

  SharedContext context_;
  std::shared_ptr<PairProductTransforms> pair_products_;
  ChiShape shape_;
  DeviceBuffer<double2> chi_;  ///< upper triangle of terms added in complex arithmetic, or empty
  DeviceBuffer<double> real_;  ///< upper triangle of terms added in real arithmetic, or empty
  DeviceBuffer<double2> further_;  ///< χ(ω_i)
};

}  // namespace

std::unique_ptr<ChiSum> CudaPolarizabilityKernels::start(const ChiShape& shape) {
  return std::make_unique<CudaChiSum>(context_, pair_products_, shape);
}

std::unique_ptr<SlicedChiSum> CudaPolarizabilityKernels::start_slices(
    std::int64_t n, const std::vector<ElementRows>& slices) {
  return start_sliced_chi(context_, pair_products_, n, slices);
}

std::unique_ptr<PartialChi> CudaPolarizabilityKernels::load(const ChiShape& shape,
                                                            const Cplx* values) {
  context_->use();
  auto fixed = context_->to_device(values, shape.static_size(), kStatic);
  auto further = context_->to_device(values + shape.static_size(),
                                     shape.size() - shape.static_size(), kFurther);
  return std::make_unique<CudaChi>(context_, shape, std::move(fixed), std::move(further));
}

std::unique_ptr<PartialChi> CudaPolarizabilityKernels::load_triangle(std::int64_t n,
                                                                     const double* values) {
  context_->use();
  DeviceBuffer<double> matrix(static_cast<std::size_t>(n * n), kStatic);
  unpack_triangle(*context_, n, values, matrix.data());
  return std::make_unique<CudaChi>(context_, ChiShape{.n_static = n}, std::move(matrix));
}

namespace {

/// Returns χ if it lies on the device of a context, and null if it lies in host memory.
const CudaChi* chi_here(const PartialChi& chi, const CudaContext& context) {
  const auto* there = dynamic_cast<const CudaChi*>(&chi);
  if (there != nullptr && there->device().index != context.device().index)
    throw std::logic_error("χ and its inversion must be on one device");
  return there;
}

DeviceBuffer<double> coulomb_on_device(View<const double, 1> coulomb) {
  DeviceBuffer<double> there(std::vector<double>(coulomb.data, coulomb.data + coulomb.size()),
                             "Coulomb interaction");
  check(cudaDeviceSynchronize(), "Coulomb interaction");
  return there;
}

}  // namespace

void CudaPolarizabilityKernels::invert_dielectric(const PartialChi& chi, std::int64_t frequency,
                                                  const Inversion& how, View<Cplx, 2> inverse) {
  context_->use();
  const std::int64_t n = inverse.extent[0];
  const DeviceBuffer<double> coulomb = coulomb_on_device(how.coulomb);
  DeviceBuffer<double2> uploaded;
  const double2* from = nullptr;
  if (const CudaChi* there = chi_here(chi, *context_); there == nullptr) {
    uploaded = context_->to_device(dynamic_cast<const HostChi&>(chi).values() + frequency * n * n,
                                   n * n, "polarizability");
    from = uploaded.data();
  } else if (!there->is_real()) {
    from = there->matrix(frequency);
  } else if (how.definite) {
    DeviceBuffer<double> epsilon(static_cast<std::size_t>(n * n), "dielectric matrix");
    make_real_dielectric(there->real(), coulomb.data(), n, epsilon.data(), context_->stream());
    cuda::invert_positive_definite(context_->libraries(), epsilon.data(), n);
    scale_to_host(*context_, coulomb.data(), n, epsilon.data(), inverse.data);
    return;
  } else {
    uploaded = complex_from(there->real(), n * n, context_->stream());
    from = uploaded.data();
  }
  DeviceBuffer<double2> epsilon(static_cast<std::size_t>(n * n), "dielectric matrix");
  make_dielectric(from, coulomb.data(),
                  {.n = n, .triangle = frequency == 0, .positive = how.positive}, epsilon.data(),
                  context_->stream());
  if (how.definite)
    cuda::invert_positive_definite(context_->libraries(), epsilon.data(), n);
  else
    epsilon = cuda::invert_general(context_->solver(), context_->stream(), epsilon.data(), n);
  scale_inverse(coulomb.data(), how.positive, n, epsilon.data(), context_->stream());
  context_->to_host(epsilon.data(), n * n, inverse.data, "inverse dielectric matrix");
}

std::unique_ptr<const DielectricInverse> CudaPolarizabilityKernels::invert_definite(
    std::unique_ptr<PartialChi> chi, View<const double, 1> coulomb) {
  context_->use();
  const std::int64_t n = coulomb.extent[0];
  constexpr const char* kWhat = "inverse dielectric matrix";
  const DeviceBuffer<double> v = coulomb_on_device(coulomb);
  DeviceBuffer<double2> matrix;
  if (chi_here(*chi, *context_) == nullptr) {
    matrix = context_->to_device(dynamic_cast<const HostChi&>(*chi).values(), n * n, kStatic);
  } else if (auto& there = dynamic_cast<CudaChi&>(*chi); there.is_real()) {
    DeviceBuffer<double> real = there.take_real();
    chi = {};
    make_real_dielectric(real.data(), v.data(), n, real.data(), context_->stream());
    cuda::invert_positive_definite(context_->libraries(), real.data(), n);
    check(cudaStreamSynchronize(context_->stream()), kWhat);
    return std::make_unique<const CudaInverse>(context_, n, std::move(real));
  } else {
    matrix = there.take_static();
  }
  chi = {};
  make_dielectric_in_place(matrix.data(), v.data(), n, context_->stream());
  cuda::invert_positive_definite(context_->libraries(), matrix.data(), n);
  check(cudaStreamSynchronize(context_->stream()), kWhat);
  return std::make_unique<const CudaInverse>(context_, n, std::move(matrix));
}

}  // namespace quasi::gw::cuda
