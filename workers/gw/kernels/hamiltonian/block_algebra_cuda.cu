#include <algorithm>
#include <cmath>
#include <string>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/backend/error.hpp"
#include "workers/gw/kernels/hamiltonian/block_algebra.hpp"
#include "workers/gw/kernels/hamiltonian/block_algebra_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;
namespace late = quasi::cuda::late;

constexpr const char* kWhat = "orthonormal states";
constexpr int kThreads = 512;

__device__ double square(double x) { return x * x; }
__device__ double square(double2 x) { return fma(x.x, x.x, x.y * x.y); }
__device__ double real_part(double x) { return x; }
__device__ double real_part(double2 x) { return x.x; }
__device__ void scale_by(double& x, double factor) { x *= factor; }
__device__ void scale_by(double2& x, double factor) { x = {x.x * factor, x.y * factor}; }
__device__ void add_to(double& x, double summand) { x += summand; }
__device__ void add_to(double2& x, double summand) { x.x += summand; }
__device__ double minus(double a, double energy, double b) { return fma(-energy, b, a); }
__device__ double2 minus(double2 a, double energy, double2 b) {
  return {fma(-energy, b.x, a.x), fma(-energy, b.y, a.y)};
}

/// Shape of a column-major product C[m × n] = alpha op(A)·B + beta C with k summands.
struct Shape {
  cublasOperation_t op_a;
  std::int64_t m, n, k, stride_a, stride_b, stride_c;
  double alpha = 1.0, beta = 0.0;
};

void multiply(const CudaContext& context, const Shape& s, const double* a, const double* b,
              double* c) {
  check(late::cublasDgemm(context.blas(), s.op_a, CUBLAS_OP_N, static_cast<int>(s.m),
                          static_cast<int>(s.n), static_cast<int>(s.k), &s.alpha, a,
                          static_cast<int>(s.stride_a), b, static_cast<int>(s.stride_b), &s.beta, c,
                          static_cast<int>(s.stride_c)),
        "product of states");
}
void multiply(const CudaContext& context, const Shape& s, const double2* a, const double2* b,
              double2* c) {
  const double2 alpha{s.alpha, 0.0}, beta{s.beta, 0.0};
  check(late::cublasZgemm(context.blas(), s.op_a, CUBLAS_OP_N, static_cast<int>(s.m),
                          static_cast<int>(s.n), static_cast<int>(s.k), &alpha, a,
                          static_cast<int>(s.stride_a), b, static_cast<int>(s.stride_b), &beta, c,
                          static_cast<int>(s.stride_c)),
        "product of states");
}

/// Factorises the lower triangle of a column-major matrix in place; false if it is not positive
/// definite.
bool factorise(const CudaContext& context, double* a, std::int64_t m) {
  const int order = static_cast<int>(m);
  int size = 0;
  check(late::cusolverDnDpotrf_bufferSize(context.solver(), CUBLAS_FILL_MODE_LOWER, order, a, order,
                                          &size),
        kWhat);
  DeviceBuffer<double> work(static_cast<std::size_t>(size), kWhat);
  DeviceBuffer<int> info(1, kWhat);
  check(late::cusolverDnDpotrf(context.solver(), CUBLAS_FILL_MODE_LOWER, order, a, order,
                               work.data(), size, info.data()),
        kWhat);
  return quasi::cuda::to_host(info, kWhat, context.stream()).front() == 0;
}
bool factorise(const CudaContext& context, double2* a, std::int64_t m) {
  const int order = static_cast<int>(m);
  int size = 0;
  check(late::cusolverDnZpotrf_bufferSize(context.solver(), CUBLAS_FILL_MODE_LOWER, order, a, order,
                                          &size),
        kWhat);
  DeviceBuffer<double2> work(static_cast<std::size_t>(size), kWhat);
  DeviceBuffer<int> info(1, kWhat);
  check(late::cusolverDnZpotrf(context.solver(), CUBLAS_FILL_MODE_LOWER, order, a, order,
                               work.data(), size, info.data()),
        kWhat);
  return quasi::cuda::to_host(info, kWhat, context.stream()).front() == 0;
}

/// Replaces x by x L^(−†) with the lower factor L.
void solve_factor(const CudaContext& context, const double* factor, DeviceStates<double> x) {
  const double one = 1.0;
  check(late::cublasDtrsm(context.blas(), CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T,
                          CUBLAS_DIAG_NON_UNIT, static_cast<int>(x.n), static_cast<int>(x.count),
                          &one, factor, static_cast<int>(x.count), x.data, static_cast<int>(x.n)),
        kWhat);
}
void solve_factor(const CudaContext& context, const double2* factor, DeviceStates<double2> x) {
  const double2 one{1.0, 0.0};
  check(late::cublasZtrsm(context.blas(), CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_C,
                          CUBLAS_DIAG_NON_UNIT, static_cast<int>(x.n), static_cast<int>(x.count),
                          &one, factor, static_cast<int>(x.count), x.data, static_cast<int>(x.n)),
        kWhat);
}

/// Sets scale[i] = 1/√S_ii.
template <typename T>
struct ScaleOfDiagonal {
  const T* s;
  std::int64_t m;
  double* scale;
  __device__ void operator()(std::int64_t i) const {
    const double norm2 = real_part(s[i * m + i]);
    scale[i] = norm2 > 0.0 ? 1.0 / sqrt(norm2) : 1.0;
  }
};

/// Raises *largest to |S_ij − δ_ij|, and scales S_ij by both its scales.
template <typename T>
struct CompareAndScale {
  T* s;
  std::int64_t m;
  const double* scale;
  unsigned long long* largest;  ///< bits of a double that is not negative, which order as it does
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t i = index / m, j = index % m;
    T difference = s[index];
    if (i == j) add_to(difference, -1.0);
    const double size = sqrt(square(difference));
    // NaN compares false with every number. It must not look like a small difference.
    atomicMax(largest,
              static_cast<unsigned long long>(__double_as_longlong(size >= 0.0 ? size : 1e300)));
    scale_by(s[index], scale[i] * scale[j]);
  }
};

template <typename T>
struct ShiftDiagonal {
  T* s;
  std::int64_t m;
  double shift;
  __device__ void operator()(std::int64_t i) const { add_to(s[i * m + i], shift); }
};

template <typename T>
struct ScaleStates {
  T* x;
  std::int64_t n;
  const double* scale;
  __device__ void operator()(std::int64_t index) const { scale_by(x[index], scale[index / n]); }
};

/// Sums |hx − E x|² of one state in each block of threads.
template <typename T>
__global__ void sum_residuals(const T* x, const T* hx, const double* energy_ry, std::int64_t n,
                              double* sum) {
  __shared__ double partial[kThreads];
  const std::int64_t row = std::int64_t{blockIdx.x} * n;
  double own = 0.0;
  for (std::int64_t i = threadIdx.x; i < n; i += kThreads)
    own += square(minus(hx[row + i], energy_ry[blockIdx.x], x[row + i]));
  partial[threadIdx.x] = own;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sum[blockIdx.x] = partial[0];
}

template <typename T>
DeviceBuffer<T> copy_of(const CudaContext& context, const DeviceBuffer<T>& from) {
  DeviceBuffer<T> copy(from.size(), kWhat);
  check(cudaMemcpyAsync(copy.data(), from.data(), from.size() * sizeof(T), cudaMemcpyDeviceToDevice,
                        context.stream()),
        kWhat);
  return copy;
}

/// Overlaps of a block, scaled to a diagonal of 1.
template <typename T>
struct ScaledOverlaps {
  DeviceBuffer<T> s;
  DeviceBuffer<double> scale;
  double deviation = 0.0;  ///< largest |S_ij − δ_ij| before scaling
};

template <typename T>
ScaledOverlaps<T> scaled_overlaps(const CudaContext& context, DeviceStates<const T> x) {
  const auto m = static_cast<std::size_t>(x.count);
  ScaledOverlaps<T> found{.s = DeviceBuffer<T>(m * m, kWhat),
                          .scale = DeviceBuffer<double>(m, kWhat)};
  overlaps<T>(context, x, x, found.s.data());
  DeviceBuffer<unsigned long long> largest(1, kWhat);
  largest.zero(kWhat, context.stream());
  for_each_index(x.count, ScaleOfDiagonal<T>{found.s.data(), x.count, found.scale.data()}, kWhat,
                 context.stream());
  for_each_index(x.count * x.count,
                 CompareAndScale<T>{found.s.data(), x.count, found.scale.data(), largest.data()},
                 kWhat, context.stream());
  const auto bits = quasi::cuda::to_host(largest, kWhat, context.stream()).front();
  std::copy_n(reinterpret_cast<const char*>(&bits), sizeof bits,
              reinterpret_cast<char*>(&found.deviation));
  return found;
}

/// Returns the Cholesky factor of the overlaps. A shift is added to the diagonal where rounding
/// makes them indefinite.
template <typename T>
DeviceBuffer<T> factor_of(const CudaContext& context, const DeviceBuffer<T>& s, std::int64_t m,
                          std::int64_t n) {
  DeviceBuffer<T> factor = copy_of(context, s);
  if (factorise(context, factor.data(), m)) return factor;
  factor = copy_of(context, s);
  for_each_index(m, ShiftDiagonal<T>{factor.data(), m, overlap_shift(m, n)}, kWhat,
                 context.stream());
  if (!factorise(context, factor.data(), m)) throw dependent_states(m);
  return factor;
}

}  // namespace

template <typename T>
void overlaps(const CudaContext& context, DeviceStates<const T> a, DeviceStates<const T> b,
              T* product) {
  multiply(context,
           {.op_a = sizeof(T) == sizeof(double) ? CUBLAS_OP_T : CUBLAS_OP_C,
            .m = a.count,
            .n = b.count,
            .k = a.n,
            .stride_a = a.n,
            .stride_b = b.n,
            .stride_c = a.count},
           a.data, b.data, product);
}

template <typename T>
void combine(const CudaContext& context, const Combination<T>& from, DeviceStates<T> result) {
  multiply(context,
           {.op_a = CUBLAS_OP_N,
            .m = result.n,
            .n = result.count,
            .k = from.states.count,
            .stride_a = from.states.n,
            .stride_b = from.states.count,
            .stride_c = result.n,
            .alpha = from.alpha,
            .beta = from.beta},
           from.states.data, from.c, result.data);
}

template <typename T>
void orthonormalise(const CudaContext& context, DeviceStates<const T> fixed, DeviceStates<T> x) {
  const DeviceStates<const T> states{x.data, x.count, x.n};
  for (int pass = 0; pass < kOrthonormalPasses; ++pass) {
    if (fixed.count > 0) {
      DeviceBuffer<T> onto(static_cast<std::size_t>(fixed.count * x.count), kWhat);
      overlaps<T>(context, fixed, states, onto.data());
      combine<T>(context, {.states = fixed, .c = onto.data(), .alpha = -1.0, .beta = 1.0}, x);
      check(cudaStreamSynchronize(context.stream()), kWhat);  // `onto` is freed
    }
    const ScaledOverlaps<T> found = scaled_overlaps<T>(context, states);
    if (pass > 0 && found.deviation < largest_overlap_error(x.n)) return;
    const DeviceBuffer<T> factor = factor_of(context, found.s, x.count, x.n);
    for_each_index(x.count * x.n, ScaleStates<T>{x.data, x.n, found.scale.data()}, kWhat,
                   context.stream());
    solve_factor(context, factor.data(), x);
    check(cudaStreamSynchronize(context.stream()), kWhat);  // the factor is freed
  }
  throw dependent_states(x.count);
}

template <typename T>
std::vector<double> residuals(const CudaContext& context, const std::vector<double>& energy_ry,
                              DeviceStates<const T> x, DeviceStates<const T> hx) {
  const DeviceBuffer<double> energy(energy_ry, kWhat);
  DeviceBuffer<double> sum(energy_ry.size(), kWhat);
  sum_residuals<T><<<static_cast<unsigned>(x.count), kThreads, 0, context.stream()>>>(
      x.data, hx.data, energy.data(), x.n, sum.data());
  check_launch(kWhat);
  std::vector<double> found = quasi::cuda::to_host(sum, kWhat, context.stream());
  for (double& value : found) value = std::sqrt(value);
  return found;
}

// The two kinds of numbers.
#define QUASI_BLOCK_ALGEBRA(T)                                                                     \
  template void overlaps<T>(const CudaContext&, DeviceStates<const T>, DeviceStates<const T>, T*); \
  template void combine<T>(const CudaContext&, const Combination<T>&, DeviceStates<T>);            \
  template void orthonormalise<T>(const CudaContext&, DeviceStates<const T>, DeviceStates<T>);     \
  template std::vector<double> residuals<T>(const CudaContext&, const std::vector<double>&,        \
                                            DeviceStates<const T>, DeviceStates<const T>);
QUASI_BLOCK_ALGEBRA(double)
QUASI_BLOCK_ALGEBRA(double2)
#undef QUASI_BLOCK_ALGEBRA

}  // namespace quasi::gw::cuda
