// What the device and its libraries reach alone, in the shapes of the gw kernels: the ceilings
// beside which bench/gw_kernels is read. One JSON line each.
//
//   gw_ceilings [sustained]     sustained: the complex products alone, each for three seconds
//   without a pause

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

/// Best of `turns` after one to warm up (0: the first), by events.
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

/// Mean over `seconds` of unbroken work after half a second of it: what the power limit leaves.
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

/// FP64 fused multiply-adds alone: eight chains a thread.
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

/// The reciprocal of the diagonal sum alone.
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

}  // namespace

int main(int argc, char** argv) {
  const bool sustained = argc > 1 && std::string(argv[1]) == "sustained";
  const auto stream = cuda::Stream(cuda::StreamPriority::kNormal);
  const auto blas = cuda::CublasHandle(stream.get());
  constexpr std::int64_t n_g = 11075;
  if (sustained) {
    const std::int64_t columns = 6 * n_g;
    const auto model = random_there(columns * n_g);
    for (const std::int64_t n_sigma : {128, 256, 512}) {
      const auto m = random_there(n_sigma * n_g);
      DeviceBuffer<double2> t(static_cast<std::size_t>(n_sigma * columns), "product");
      const double seconds = sustained_seconds_of(stream.get(), 3.0, [&] {
        gw::cuda::multiply(blas.get(), gw::cuda::Products::kNative,
                           {.m = n_sigma,
                            .n = columns,
                            .k = n_g,
                            .a = {m.data(), n_g},
                            .b = {model.data(), columns},
                            .c = t.data(),
                            .c_stride = columns,
                            .beta = 0.0});
      });
      std::printf(
          "{\"case\": \"zgemm sustained\", \"m\": %ld, \"n\": %ld, \"k\": %ld, \"tflops\": %.2f}\n",
          n_sigma, columns, n_g,
          8.0 * static_cast<double>(n_sigma * columns) * n_g / seconds / 1e12);
    }
    return 0;
  }
  {
    const std::int64_t count = std::int64_t{1} << 28;
    const auto from = random_there(count);
    DeviceBuffer<double2> to(static_cast<std::size_t>(count), "copy");
    const double seconds = seconds_of(stream.get(), 3, [&] {
      check(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(count) * 16,
                            cudaMemcpyDeviceToDevice, stream.get()),
            "copy");
    });
    std::printf("{\"case\": \"copy\", \"gb_per_s\": %.1f}\n",
                32.0 * static_cast<double>(count) / seconds / 1e9);
  }
  {
    DeviceBuffer<double> out(1, "chains");
    const int turns = 20000, blocks = 132 * 8, threads = 256;
    const double work = 8.0 * turns * blocks * threads;
    double seconds = seconds_of(stream.get(), 2, [&] {
      fma_chains<<<blocks, threads, 0, stream.get()>>>(out.data(), turns);
    });
    std::printf("{\"case\": \"fp64 instructions\", \"per_s\": %.4e}\n", work / seconds);
    seconds = seconds_of(stream.get(), 2, [&] {
      reciprocals<<<blocks, threads, 0, stream.get()>>>(out.data(), turns / 4);
    });
    std::printf("{\"case\": \"reciprocals\", \"per_s\": %.4e}\n", work / 4 / seconds);
  }
  const auto model = random_there(6 * n_g * n_g);
  for (const std::int64_t n_sigma : {128, 256, 512}) {
    const auto m = random_there(n_sigma * n_g);
    for (const std::int64_t columns : {3 * n_g, 6 * n_g}) {
      DeviceBuffer<double2> t(static_cast<std::size_t>(2 * n_sigma * columns), "product");
      const double flops = 8.0 * static_cast<double>(n_sigma * columns) * n_g;
      double seconds = seconds_of(stream.get(), 2, [&] {
        gw::cuda::multiply(blas.get(), gw::cuda::Products::kNative,
                           {.m = n_sigma,
                            .n = columns,
                            .k = n_g,
                            .a = {m.data(), n_g},
                            .b = {model.data(), columns},
                            .c = t.data(),
                            .c_stride = columns,
                            .beta = 0.0});
      });
      std::printf("{\"case\": \"zgemm\", \"m\": %ld, \"n\": %ld, \"k\": %ld, \"tflops\": %.2f}\n",
                  n_sigma, columns, n_g, flops / seconds / 1e12);
      const double one = 1.0, zero = 0.0;
      seconds = seconds_of(stream.get(), 2, [&] {
        check(cublasDgemm(blas.get(), CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(2 * columns),
                          static_cast<int>(2 * n_sigma), n_g, &one,
                          reinterpret_cast<const double*>(model.data()),
                          static_cast<int>(2 * columns), reinterpret_cast<const double*>(m.data()),
                          n_g, &zero, reinterpret_cast<double*>(t.data()),
                          static_cast<int>(2 * columns)),
              "dgemm");
      });
      std::printf(
          "{\"case\": \"the same as one real product\", \"m\": %ld, \"n\": %ld, \"k\": %ld, "
          "\"tflops\": %.2f}\n",
          2 * n_sigma, 2 * columns, n_g, flops / seconds / 1e12);
    }
  }
  {
    const std::int64_t rows = 24576;
    const auto a = random_there(rows * n_g);
    const double counted = 4.0 * static_cast<double>(rows) * n_g * n_g;
    DeviceBuffer<double2> c(static_cast<std::size_t>(n_g * n_g), "chi");
    c.zero("chi", stream.get());
    double seconds = seconds_of(stream.get(), 2, [&] {
      gw::cuda::add_hermitian(blas.get(), n_g, rows, -1.0, a.data(), c.data());
    });
    std::printf("{\"case\": \"zherk\", \"tflops_4nng2\": %.2f}\n", counted / seconds / 1e12);
    // The same triangle by general products of blocks of columns: operations issued beside it.
    for (const int width : {768, 1408, 2816}) {
      const double2 alpha{-1.0, 0.0}, one{1.0, 0.0};
      double issued = 0.0;
      seconds = seconds_of(stream.get(), 2, [&] {
        issued = 0.0;
        for (int i = 0; i < n_g; i += width) {
          const int columns = std::min<int>(width, n_g - i);
          check(cublasZgemm(blas.get(), CUBLAS_OP_N, CUBLAS_OP_C, n_g - i, columns,
                            static_cast<int>(rows), &alpha, a.data() + i, n_g, a.data() + i, n_g,
                            &one, c.data() + i * n_g + i, n_g),
                "blocks");
          issued += 8.0 * (n_g - i) * columns * static_cast<double>(rows);
        }
      });
      std::printf(
          "{\"case\": \"the same by blocks of %d\", \"tflops_4nng2\": %.2f, \"issued\": %.2f}\n",
          width, counted / seconds / 1e12, issued / seconds / 1e12);
    }
  }
  return 0;
}
