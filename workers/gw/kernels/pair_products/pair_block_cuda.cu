#include "workers/gw/kernels/pair_products/pair_block_cuda.cuh"

#include <algorithm>
#include <utility>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/dense/dense_cuda.cuh"
#include "workers/gw/kernels/dense/products_cuda.cuh"
#include "workers/gw/model/memory_limits.hpp"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;

/// Computes out[f][l][g] = m[l][g] d_f(g); rows l of m are `stride` apart.
struct ScaleByDiagonals {
  const double2* m;
  const double2* diagonal;
  std::int64_t n_left, n_g, stride;
  double2* out;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t g = i % n_g, l = i / n_g % n_left, f = i / n_g / n_left;
    const double2 d = diagonal[f * n_g + g];
    const double2 a = m[l * stride + g];
    out[i] = {fma(d.x, a.x, -d.y * a.y), fma(d.x, a.y, d.y * a.x)};
  }
};

/// Computes form[p] = Σ_g right[p][g] conj(m[p][g]) with one block for each pair, in a fixed tree.
__global__ void dot_rows(const double2* right, const double2* m, std::int64_t n_g, double2* form) {
  __shared__ double2 lane[128];
  double2 sum{0.0, 0.0};
  for (std::int64_t g = threadIdx.x; g < n_g; g += blockDim.x) {
    const double2 a = right[blockIdx.x * n_g + g];
    const double2 b = m[blockIdx.x * n_g + g];
    sum = {sum.x + a.x * b.x + a.y * b.y, sum.y + a.y * b.x - a.x * b.y};
  }
  lane[threadIdx.x] = sum;
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      lane[threadIdx.x].x += lane[threadIdx.x + half].x;
      lane[threadIdx.x].y += lane[threadIdx.x + half].y;
    }
  }
  if (threadIdx.x == 0) form[blockIdx.x] = lane[0];
}

/// Computes sum[p] = Σ_g |m[p][g]|² v[g] with one block for each pair, in a fixed tree.
__global__ void dot_real_rows(const double* right, const double* m, std::int64_t n_g,
                              double2* form) {
  __shared__ double lane[128];
  double sum = 0.0;
  for (std::int64_t g = threadIdx.x; g < n_g; g += blockDim.x)
    sum = fma(right[blockIdx.x * n_g + g], m[blockIdx.x * n_g + g], sum);
  lane[threadIdx.x] = sum;
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) lane[threadIdx.x] += lane[threadIdx.x + half];
  }
  if (threadIdx.x == 0) form[blockIdx.x] = {lane[0], 0.0};
}

__global__ void norm_rows(const double2* m, const double* v, std::int64_t n_g, double* sum) {
  __shared__ double lane[128];
  double mine = 0.0;
  for (std::int64_t g = threadIdx.x; g < n_g; g += blockDim.x) {
    const double2 a = m[blockIdx.x * n_g + g];
    mine += (a.x * a.x + a.y * a.y) * v[g];
  }
  lane[threadIdx.x] = mine;
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) lane[threadIdx.x] += lane[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sum[blockIdx.x] = lane[0];
}

}  // namespace

double2* CudaPairBlock::resize(std::int64_t n_left, std::int64_t n_right, std::int64_t n_g) {
  const auto size = static_cast<std::size_t>(n_left * n_right * n_g);
  if (products_.size() < size || products_.size() > 2 * size) {
    products_ = {};
    products_ = DeviceBuffer<double2>(size, "pair products");
  }
  n_left_ = n_left;
  n_right_ = n_right;
  n_g_ = n_g;
  return products_.data();
}

std::int64_t CudaPairBlock::rows_that_fit(const char* what) const {
  const std::int64_t budget =
      std::min<std::int64_t>(context_->workspace_bytes(), kRowProducts_bytes);
  return std::min(n_pairs(), items_that_fit(budget, 0, 16 * n_g_, what));
}

void CudaPairBlock::load(View<const Cplx, 3> products) {
  context_->use();
  resize(products.extent[0], products.extent[1], products.extent[2]);
  products_.copy_from(as_double2(products.data), static_cast<std::size_t>(products.size()),
                      "pair products");
  check(cudaDeviceSynchronize(), "pair products");
}

void CudaPairBlock::read(View<Cplx, 3> products) const {
  context_->use();
  context_->to_host(products_.data(), n_pairs() * n_g_, products.data, "pair products");
}

void CudaPairBlock::replace_plane_wave(std::int64_t g, View<const Cplx, 2> values) {
  context_->use();
  check(cudaMemcpy2D(products_.data() + g, static_cast<std::size_t>(n_g_) * sizeof(double2),
                     values.data, sizeof(double2), sizeof(double2),
                     static_cast<std::size_t>(n_pairs()), cudaMemcpyHostToDevice),
        "limit q -> 0");
  quasi::cuda::finish_default_stream("limit q -> 0");
}

void CudaPairBlock::project(View<const Cplx, 2> basis) {
  context_->use();
  const std::int64_t n_basis = basis.extent[1];
  const auto b = context_->to_device(basis.data, basis.size(), "subspace basis");
  DeviceBuffer<double2> projected(static_cast<std::size_t>(n_pairs() * n_basis),
                                  "projected pair products");
  multiply(context_->blas(), Products::kNative,
           {.m = n_pairs(),
            .n = n_basis,
            .k = n_g_,
            .a = {products_.data(), n_g_},
            .b = {b.data(), n_basis},
            .c = projected.data(),
            .c_stride = n_basis});
  check(cudaStreamSynchronize(context_->stream()), "projected pair products");
  products_ = std::move(projected);
  n_g_ = n_basis;
}

void CudaPairBlock::weighted_norms(View<const double, 1> v, View<double, 2> sum) const {
  context_->use();
  const DeviceBuffer<double> there(std::vector<double>(v.data, v.data + n_g_), "weighted norms");
  DeviceBuffer<double> values(static_cast<std::size_t>(n_pairs()), "weighted norms");
  check(cudaDeviceSynchronize(), "weighted norms");
  norm_rows<<<static_cast<unsigned>(n_pairs()), 128, 0, context_->stream()>>>(
      products_.data(), there.data(), n_g_, values.data());
  check_launch("weighted norms");
  check(cudaStreamSynchronize(context_->stream()), "weighted norms");
  const auto found = quasi::cuda::to_host(values, "weighted norms");
  std::copy(found.begin(), found.end(), sum.data);
}

void CudaPairBlock::quadratic_forms(View<const Cplx, 2> matrix, View<Cplx, 2> form) const {
  context_->use();
  forms_with(context_->to_device(matrix.data, matrix.size(), "quadratic forms"), form);
}

void CudaPairBlock::forms_with(DeviceBuffer<double2> matrix, View<Cplx, 2> form) const {
  context_->use();
  constexpr const char* kWhat = "quadratic forms";
  DeviceBuffer<double2> values(static_cast<std::size_t>(n_pairs()), kWhat);
  const cudaStream_t stream = context_->stream();
  if (is_real(matrix.data(), static_cast<std::int64_t>(matrix.size()), stream) &&
      is_real(products_.data(), n_pairs() * n_g_, stream))
    real_quadratic_forms(std::move(matrix), values.data());
  else
    complex_quadratic_forms(matrix, values.data());
  check(cudaStreamSynchronize(stream), kWhat);
  context_->to_host(values.data(), n_pairs(), form.data, kWhat);
}

void CudaPairBlock::complex_quadratic_forms(const DeviceBuffer<double2>& w, double2* form) const {
  const std::int64_t chunk = rows_that_fit("quadratic forms");
  DeviceBuffer<double2> right(static_cast<std::size_t>(chunk * n_g_), "quadratic forms");
  for (std::int64_t first = 0; first < n_pairs(); first += chunk) {
    const std::int64_t count = std::min(chunk, n_pairs() - first);
    const double2* m = products_.data() + first * n_g_;
    multiply(context_->blas(), Products::kNative,
             {.m = count,
              .n = n_g_,
              .k = n_g_,
              .a = {m, n_g_},
              .b = {w.data(), n_g_},
              .c = right.data(),
              .c_stride = n_g_});
    dot_rows<<<static_cast<unsigned>(count), 128, 0, context_->stream()>>>(right.data(), m, n_g_,
                                                                           form + first);
    check_launch("quadratic forms");
  }
  check(cudaStreamSynchronize(context_->stream()), "quadratic forms");  // the scratch is freed
}

void CudaPairBlock::real_quadratic_forms(DeviceBuffer<double2> w, double2* form) const {
  constexpr const char* kWhat = "quadratic forms";
  const cudaStream_t stream = context_->stream();
  const DeviceBuffer<double> real_w =
      real_parts(w.data(), static_cast<std::int64_t>(w.size()), stream);
  check(cudaStreamSynchronize(stream), kWhat);
  w = {};
  const std::int64_t chunk = rows_that_fit(kWhat);
  DeviceBuffer<double> right(static_cast<std::size_t>(chunk * n_g_), kWhat);
  const double one = 1.0, zero = 0.0;
  const int n = static_cast<int>(n_g_);
  for (std::int64_t first = 0; first < n_pairs(); first += chunk) {
    const std::int64_t count = std::min(chunk, n_pairs() - first);
    const DeviceBuffer<double> m =
        real_parts(products_.data() + first * n_g_, count * n_g_, stream);
    check(quasi::cuda::late::cublasDgemm(context_->blas(), CUBLAS_OP_N, CUBLAS_OP_N, n,
                                         static_cast<int>(count), n, &one, real_w.data(), n,
                                         m.data(), n, &zero, right.data(), n),
          kWhat);
    dot_real_rows<<<static_cast<unsigned>(count), 128, 0, stream>>>(right.data(), m.data(), n_g_,
                                                                    form + first);
    check_launch(kWhat);
    check(cudaStreamSynchronize(stream), kWhat);  // the rows are freed
  }
}

void CudaPairBlock::quadratic_form_matrix(View<const Cplx, 2> matrix, View<const double, 2> weight,
                                          View<Cplx, 3> sum) const {
  context_->use();
  constexpr const char* kWhat = "quadratic forms";
  const auto w = context_->to_device(matrix.data, matrix.size(), kWhat);
  auto total = context_->to_device(sum.data, sum.size(), kWhat);
  const DeviceBuffer<double> factor(std::vector<double>(weight.data, weight.data + weight.size()),
                                    kWhat);
  DeviceBuffer<double2> right(static_cast<std::size_t>(n_left_ * n_g_), kWhat);
  DeviceBuffer<double2> band_form(static_cast<std::size_t>(n_left_ * n_left_), kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  const double one = 1.0;
  const int width = static_cast<int>(2 * n_left_ * n_left_), n_e = static_cast<int>(sum.extent[0]);
  for (std::int64_t n = 0; n < n_right_; ++n) {
    // Rows l of one band are n_right·n_g apart.
    const DeviceMatrix m{products_.data() + n * n_g_, n_right_ * n_g_};
    multiply(context_->blas(), Products::kNative,
             {.m = n_left_,
              .n = n_g_,
              .k = n_g_,
              .a = m,
              .b = {w.data(), n_g_},
              .c = right.data(),
              .c_stride = n_g_});
    multiply_adjoint(context_->blas(), {.m = n_left_,
                                        .n = n_left_,
                                        .k = n_g_,
                                        .alpha = 1.0,
                                        .beta = 0.0,
                                        .a = {right.data(), n_g_},
                                        .b = m,
                                        .c = band_form.data(),
                                        .c_stride = n_left_,
                                        .a_step = 0,
                                        .b_step = 0,
                                        .c_step = 0,
                                        .count = 1});
    // Σ[e] += w[e] D for the real and imaginary parts of all (l, m).
    check(quasi::cuda::late::cublasDger(context_->blas(), width, n_e, &one,
                                        reinterpret_cast<const double*>(band_form.data()), 1,
                                        factor.data() + n, static_cast<int>(n_right_),
                                        reinterpret_cast<double*>(total.data()), width),
          kWhat);
  }
  check(cudaStreamSynchronize(context_->stream()), kWhat);
  context_->to_host(total.data(), sum.size(), sum.data, kWhat);
}

void CudaPairBlock::diagonal_form_matrix(View<const Cplx, 2> diagonal, View<const double, 3> weight,
                                         View<Cplx, 3> sum) const {
  context_->use();
  constexpr const char* kWhat = "diagonal forms";
  // The size does not depend on free memory, because products of other sizes may round differently.
  constexpr std::int64_t kScratchBytes = std::int64_t{1} << 29;
  const std::int64_t n_f = diagonal.extent[0], n_e = sum.extent[0], square = n_left_ * n_left_;
  const std::int64_t chunk = std::clamp<std::int64_t>(kScratchBytes / (16 * n_left_ * n_g_), 1,
                                                      std::max<std::int64_t>(n_f, 1));
  const auto d = context_->to_device(diagonal.data, diagonal.size(), kWhat);
  auto total = context_->to_device(sum.data, sum.size(), kWhat);
  const DeviceBuffer<double> factor(std::vector<double>(weight.data, weight.data + weight.size()),
                                    kWhat);
  DeviceBuffer<double2> scaled(static_cast<std::size_t>(chunk * n_left_ * n_g_), kWhat),
      band_form(static_cast<std::size_t>(chunk * square), kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  const double one = 1.0;
  const int width = static_cast<int>(2 * square), energies = static_cast<int>(n_e);
  for (std::int64_t n = 0; n < n_right_; ++n)
    for (std::int64_t first = 0; first < n_f; first += chunk) {
      const std::int64_t count = std::min(chunk, n_f - first);
      const DeviceMatrix m{products_.data() + n * n_g_, n_right_ * n_g_};
      for_each_index(
          count * n_left_ * n_g_,
          ScaleByDiagonals{m.data, d.data() + first * n_g_, n_left_, n_g_, m.stride, scaled.data()},
          kWhat, context_->stream());
      multiply_adjoint(context_->blas(), {.m = count * n_left_,
                                          .n = n_left_,
                                          .k = n_g_,
                                          .alpha = 1.0,
                                          .beta = 0.0,
                                          .a = {scaled.data(), n_g_},
                                          .b = m,
                                          .c = band_form.data(),
                                          .c_stride = n_left_,
                                          .a_step = 0,
                                          .b_step = 0,
                                          .c_step = 0,
                                          .count = 1});
      // Σ[e] += Σ_f w[f][e] D[f] for the real and imaginary parts of all (l, m); column-major
      // (width, n_e).
      check(quasi::cuda::late::cublasDgemm(context_->blas(), CUBLAS_OP_N, CUBLAS_OP_T, width,
                                           energies, static_cast<int>(count), &one,
                                           reinterpret_cast<const double*>(band_form.data()), width,
                                           factor.data() + (n * n_f + first) * n_e, energies, &one,
                                           reinterpret_cast<double*>(total.data()), width),
            kWhat);
    }
  check(cudaStreamSynchronize(context_->stream()), kWhat);
  context_->to_host(total.data(), sum.size(), sum.data, kWhat);
}

}  // namespace quasi::gw::cuda
