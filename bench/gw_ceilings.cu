// Measures the ceilings for bench/gw_kernels: the rates that the device and its libraries reach
// alone in the shapes of the gw kernels. Each rate is one JSON line.
//
//   gw_ceilings [sustained]     sustained: only the complex products, each for three seconds
//                               without a pause

#include <cublas_v2.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/event.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/backend/device/library_handle.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/gw/kernels/dense/dense_cuda.cuh"
#include "workers/gw/kernels/dense/products_cuda.cuh"
#include "workers/gw/kernels/pole_sums/reciprocal.cuh"

namespace {

using namespace quasi;
using gw::cuda::check;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;

struct FillRandom {
  double* data;
  __device__ void operator()(std::int64_t i) const {
    std::uint64_t z = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    data[i] = static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53 - 0.5;
  }
};

DeviceBuffer<double2> random_there(std::int64_t count) {
  DeviceBuffer<double2> buffer(static_cast<std::size_t>(count), "random numbers");
  for_each_index(2 * count, FillRandom{reinterpret_cast<double*>(buffer.data())}, "random numbers");
  check(cudaDeviceSynchronize(), "random numbers");
  return buffer;
}

/// Returns the shortest of `turns` times after a first one that is dropped; with 0 turns the first
/// time. CUDA events measure it.
template <typename Work>
double seconds_of(cudaStream_t stream, int turns, Work work) {
  const cuda::Event start(cuda::EventTiming::kOn), stop(cuda::EventTiming::kOn);
  double best = 1e30;
  for (int turn = 0; turn <= turns; ++turn) {
    start.record(stream);
    work();
    stop.record(stream);
    stop.synchronize("timing");
    if (turn > 0 || turns == 0) best = std::min(best, stop.seconds_since(start));
  }
  return best;
}

/// Returns the mean time over `seconds` of unbroken work after half a second of it. The power limit
/// lowers the clock in that time.
template <typename Work>
double sustained_seconds_of(cudaStream_t stream, double seconds, Work work) {
  const double once = seconds_of(stream, 1, work);
  const auto run = [&](double length) {
    const int turns = static_cast<int>(length / once) + 1;
    return seconds_of(stream, 0,
                      [&] {
                        for (int i = 0; i < turns; ++i) work();
                      }) /
           turns;
  };
  run(0.5);
  return run(seconds);
}

/// Runs only FP64 fused multiply-adds: eight chains a thread.
__global__ void fma_chains(double* out, int turns) {
  double a[8];
  for (int i = 0; i < 8; ++i) a[i] = 1.0 + 1e-9 * (threadIdx.x + i);
  for (int t = 0; t < turns; ++t)
#pragma unroll
    for (int i = 0; i < 8; ++i) a[i] = fma(a[i], 0.999999, 1e-7);
  double sum = 0;
  for (int i = 0; i < 8; ++i) sum += a[i];
  if (sum == 12345.0) *out = sum;
}

/// Runs only the reciprocal of the diagonal sum.
__global__ void reciprocals(double* out, int turns) {
  double a[8];
  for (int i = 0; i < 8; ++i) a[i] = 1.5 + 1e-3 * (threadIdx.x + i);
  for (int t = 0; t < turns; ++t)
#pragma unroll
    for (int i = 0; i < 8; ++i) a[i] = gw::cuda::reciprocal_of_normal(a[i]);
  double sum = 0;
  for (int i = 0; i < 8; ++i) sum += a[i];
  if (sum == 12345.0) *out = sum;
}

constexpr std::int64_t kNg = 11075;  ///< G vectors of a 214-atom silicon cell

/// Streams and handles of one run.
struct Bench {
  cuda::Stream stream{cuda::StreamPriority::kNormal};
  cuda::CublasHandle blas{stream.get()};
};

/// One complex product as the off-diagonal sum needs it: [n_sigma][N_G] times [N_G][columns].
struct SigmaProduct {
  std::int64_t n_sigma, columns;
  const double2 *m, *model;
  double2* product;

  double flops() const { return 8.0 * static_cast<double>(n_sigma * columns) * kNg; }
  void multiply(const Bench& bench) const {
    gw::cuda::multiply(bench.blas.get(), gw::cuda::Products::kNative,
                       {.m = n_sigma,
                        .n = columns,
                        .k = kNg,
                        .a = {m, kNg},
                        .b = {model, columns},
                        .c = product,
                        .c_stride = columns,
                        .beta = 0.0});
  }
  /// One real product of the same number of operations.
  void multiply_real(const Bench& bench) const {
    const double one = 1.0, zero = 0.0;
    const int width = static_cast<int>(2 * columns);
    check(cublasDgemm(bench.blas.get(), CUBLAS_OP_N, CUBLAS_OP_N, width,
                      static_cast<int>(2 * n_sigma), kNg, &one,
                      reinterpret_cast<const double*>(model), width,
                      reinterpret_cast<const double*>(m), kNg, &zero,
                      reinterpret_cast<double*>(product), width),
          "dgemm");
  }
};

void measure_sustained_products(const Bench& bench) {
  const std::int64_t columns = 6 * kNg;
  const auto model = random_there(columns * kNg);
  for (const std::int64_t n_sigma : {128, 256, 512}) {
    const auto m = random_there(n_sigma * kNg);
    DeviceBuffer<double2> t(static_cast<std::size_t>(n_sigma * columns), "product");
    const SigmaProduct product{n_sigma, columns, m.data(), model.data(), t.data()};
    const double seconds =
        sustained_seconds_of(bench.stream.get(), 3.0, [&] { product.multiply(bench); });
    std::printf(
        "{\"case\": \"zgemm sustained\", \"m\": %ld, \"n\": %ld, \"k\": %ld, \"tflops\": %.2f}\n",
        n_sigma, columns, kNg, product.flops() / seconds / 1e12);
  }
}

void measure_copy(const Bench& bench) {
  const std::int64_t count = std::int64_t{1} << 28;
  const auto from = random_there(count);
  DeviceBuffer<double2> to(static_cast<std::size_t>(count), "copy");
  const double seconds = seconds_of(bench.stream.get(), 3, [&] {
    check(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(count) * 16,
                          cudaMemcpyDeviceToDevice, bench.stream.get()),
          "copy");
  });
  std::printf("{\"case\": \"copy\", \"gb_per_s\": %.1f}\n",
              32.0 * static_cast<double>(count) / seconds / 1e9);
}

void measure_instructions(const Bench& bench) {
  DeviceBuffer<double> out(1, "chains");
  const int turns = 20000, blocks = 132 * 8, threads = 256;
  const double work = 8.0 * turns * blocks * threads;
  double seconds = seconds_of(bench.stream.get(), 2, [&] {
    fma_chains<<<blocks, threads, 0, bench.stream.get()>>>(out.data(), turns);
  });
  std::printf("{\"case\": \"fp64 instructions\", \"per_s\": %.4e}\n", work / seconds);
  seconds = seconds_of(bench.stream.get(), 2, [&] {
    reciprocals<<<blocks, threads, 0, bench.stream.get()>>>(out.data(), turns / 4);
  });
  std::printf("{\"case\": \"reciprocals\", \"per_s\": %.4e}\n", work / 4 / seconds);
}

void measure_products(const Bench& bench) {
  const auto model = random_there(6 * kNg * kNg);
  for (const std::int64_t n_sigma : {128, 256, 512}) {
    const auto m = random_there(n_sigma * kNg);
    for (const std::int64_t columns : {3 * kNg, 6 * kNg}) {
      DeviceBuffer<double2> t(static_cast<std::size_t>(2 * n_sigma * columns), "product");
      const SigmaProduct product{n_sigma, columns, m.data(), model.data(), t.data()};
      double seconds = seconds_of(bench.stream.get(), 2, [&] { product.multiply(bench); });
      std::printf("{\"case\": \"zgemm\", \"m\": %ld, \"n\": %ld, \"k\": %ld, \"tflops\": %.2f}\n",
                  n_sigma, columns, kNg, product.flops() / seconds / 1e12);
      seconds = seconds_of(bench.stream.get(), 2, [&] { product.multiply_real(bench); });
      std::printf(
          "{\"case\": \"the same as one real product\", \"m\": %ld, \"n\": %ld, \"k\": %ld, "
          "\"tflops\": %.2f}\n",
          2 * n_sigma, 2 * columns, kNg, product.flops() / seconds / 1e12);
    }
  }
}

/// Adds the lower triangle of the products of χ by general products of blocks of `width` columns.
/// @return the operations that were issued
double add_triangle_by_blocks(const Bench& bench, int width, std::int64_t rows, const double2* a,
                              double2* chi) {
  const double2 alpha{-1.0, 0.0}, one{1.0, 0.0};
  double issued = 0.0;
  for (int i = 0; i < kNg; i += width) {
    const int columns = std::min<int>(width, kNg - i);
    check(cublasZgemm(bench.blas.get(), CUBLAS_OP_N, CUBLAS_OP_C, kNg - i, columns,
                      static_cast<int>(rows), &alpha, a + i, kNg, a + i, kNg, &one,
                      chi + i * kNg + i, kNg),
          "blocks");
    issued += 8.0 * (kNg - i) * columns * static_cast<double>(rows);
  }
  return issued;
}

void measure_hermitian_products(const Bench& bench) {
  const std::int64_t rows = 24576;
  const auto a = random_there(rows * kNg);
  const double counted = 4.0 * static_cast<double>(rows) * kNg * kNg;
  DeviceBuffer<double2> chi(static_cast<std::size_t>(kNg * kNg), "chi");
  chi.zero("chi", bench.stream.get());
  double seconds = seconds_of(bench.stream.get(), 2, [&] {
    gw::cuda::add_hermitian(bench.blas.get(), kNg, rows, -1.0, a.data(), chi.data());
  });
  std::printf("{\"case\": \"zherk\", \"tflops_4nng2\": %.2f}\n", counted / seconds / 1e12);
  for (const int width : {768, 1408, 2816}) {
    double issued = 0.0;
    seconds = seconds_of(bench.stream.get(), 2, [&] {
      issued = add_triangle_by_blocks(bench, width, rows, a.data(), chi.data());
    });
    std::printf(
        "{\"case\": \"the same by blocks of %d\", \"tflops_4nng2\": %.2f, \"issued\": %.2f}\n",
        width, counted / seconds / 1e12, issued / seconds / 1e12);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Bench bench;
  if (argc > 1 && std::string(argv[1]) == "sustained") {
    measure_sustained_products(bench);
    return 0;
  }
  measure_copy(bench);
  measure_instructions(bench);
  measure_products(bench);
  measure_hermitian_products(bench);
  return 0;
}
