#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/imaginary_poles_cpu.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/imaginary_poles_cuda.cuh"
#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using Number = Complex<double>;

constexpr int kThreads = 256;
constexpr int kEnergies =
    2;  // of one pass through the list: value and slope, or the two of a forward difference
constexpr int kParts = 3;  // CH, SX − X, slope

/// A pole as the device has it, the same bytes as ImaginaryPole.
struct Pole {
  std::int32_t g, h;
  double pole_ry;
  Number half_i_v;
};
static_assert(sizeof(Pole) == sizeof(ImaginaryPole));

/// Arguments of sum_poles.
struct PoleSumWork {
  const Pole* poles;
  std::int64_t n_poles;
  double half_width_ry, cut;
  const Number* products;  ///< [n_left · n_right][n_g]
  std::int64_t n_g;
  const double* x_ry;        ///< [n_left · n_right][n_energies]
  const double* occupation;  ///< [n_right]
  std::int64_t n_right, n_energies;
  Number* sums;  ///< [n_left · n_right][n_energies][kParts]
};

__global__ void __launch_bounds__(kThreads) sum_poles(const PoleSumWork work) {
  const std::int64_t n_energies = work.n_energies;
  const std::int64_t pair = blockIdx.x, first = static_cast<std::int64_t>(blockIdx.y) * kEnergies;
  const Number* m = work.products + pair * work.n_g;
  const double f = work.occupation[pair % work.n_right];
  double x[kEnergies];
#pragma unroll
  for (int e = 0; e < kEnergies; ++e)
    x[e] = work.x_ry[pair * n_energies + (first + e < n_energies ? first + e : n_energies - 1)];
  Number sum[kEnergies][kParts] = {};
  for (std::int64_t i = threadIdx.x; i < work.n_poles; i += kThreads) {
    const Pole pole = work.poles[i];
    const Number mm = m[pole.g] * pole.half_i_v * conj(m[pole.h]);
#pragma unroll
    for (int e = 0; e < kEnergies; ++e) {
      const ImaginaryPoleTerms terms =
          imaginary_pole_terms(x[e], pole.pole_ry, work.half_width_ry, work.cut);
      sum[e][0] += mm * terms.ch;
      sum[e][1] += f * (mm * terms.sx);
      sum[e][2] += mm * (terms.ch_slope + f * terms.sx_slope);
    }
  }
  __shared__ Number lane[kThreads];
#pragma unroll
  for (int e = 0; e < kEnergies; ++e)
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      lane[threadIdx.x] = sum[e][part];
      for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) lane[threadIdx.x] += lane[threadIdx.x + half];
      }
      if (threadIdx.x == 0 && first + e < n_energies)
        work.sums[(pair * n_energies + first + e) * kParts + part] = lane[0];
      __syncthreads();
    }
}

}  // namespace

void add_imaginary_poles_cuda(const ImaginaryPolesOnDevice& poles, const ProductRows& products,
                              const DiagonalTerms& terms, const ImaginarySums& sums,
                              cudaStream_t stream) {
  constexpr const char* kWhat = "imaginary plasmon poles";
  const auto& [n_left, n_right, n_energies] = terms.x_ry.extent;
  if (poles.n_poles == 0 || n_left * n_right * n_energies == 0) return;
  const DeviceBuffer<double> x(
      std::vector<double>(terms.x_ry.data, terms.x_ry.data + terms.x_ry.size()), kWhat);
  const DeviceBuffer<double> f(
      std::vector<double>(terms.occupation.data, terms.occupation.data + terms.occupation.size()),
      kWhat);
  const auto count = static_cast<std::size_t>(n_left * n_right * n_energies);
  DeviceBuffer<Number> found(kParts * count, kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  const dim3 grid(static_cast<unsigned>(n_left * n_right),
                  static_cast<unsigned>((n_energies + kEnergies - 1) / kEnergies));
  sum_poles<<<grid, kThreads, 0, stream>>>(
      {.poles = reinterpret_cast<const Pole*>(poles.poles),
       .n_poles = poles.n_poles,
       .half_width_ry = poles.rules.half_width_ry,
       .cut = poles.rules.screened_exchange_cut,
       .products = reinterpret_cast<const Number*>(products.rows),
       .n_g = products.n_g,
       .x_ry = x.data(),
       .occupation = f.data(),
       .n_right = n_right,
       .n_energies = n_energies,
       .sums = found.data()});
  check_launch(kWhat);
  check(cudaStreamSynchronize(stream), kWhat);
  std::vector<ImaginaryPoleSums> host(count);
  static_assert(sizeof(ImaginaryPoleSums) == kParts * sizeof(Number));
  check(cudaMemcpy(host.data(), found.data(), count * sizeof(ImaginaryPoleSums),
                   cudaMemcpyDeviceToHost),
        kWhat);
  add_imaginary_pole_sums(host, terms, sums);
}

}  // namespace quasi::gw::cuda
