#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/gw/kernels/pole_sums/imaginary_poles_cpu.hpp"
#include "workers/gw/kernels/pole_sums/imaginary_poles_cuda.cuh"
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

__global__ void __launch_bounds__(kThreads)
    sum_poles(const Pole* poles, std::int64_t n_poles, double half_width_ry, double cut,
              const Number* products, std::int64_t n_g, const double* x_ry,
              const double* occupation, std::int64_t n_right, std::int64_t n_energies,
              Number* sums) {
  const std::int64_t pair = blockIdx.x, first = static_cast<std::int64_t>(blockIdx.y) * kEnergies;
  const Number* m = products + pair * n_g;
  const double f = occupation[pair % n_right];
  double x[kEnergies];
#pragma unroll
  for (int e = 0; e < kEnergies; ++e)
    x[e] = x_ry[pair * n_energies + (first + e < n_energies ? first + e : n_energies - 1)];
  Number sum[kEnergies][kParts] = {};
  for (std::int64_t i = threadIdx.x; i < n_poles; i += kThreads) {
    const Pole pole = poles[i];
    const Number mm = m[pole.g] * pole.half_i_v * conj(m[pole.h]);
#pragma unroll
    for (int e = 0; e < kEnergies; ++e) {
      const ImaginaryPoleTerms terms = imaginary_pole_terms(x[e], pole.pole_ry, half_width_ry, cut);
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
        sums[(pair * n_energies + first + e) * kParts + part] = lane[0];
      __syncthreads();
    }
}

}  // namespace

void add_imaginary_poles_cuda(const ImaginaryPole* poles, std::int64_t n_poles,
                              const PoleRules& rules, const double2* products, std::int64_t n_g,
                              View<const double, 3> x_ry, View<const double, 1> occupation,
                              double weight, View<Cplx, 2> total, View<Cplx, 2> sx,
                              View<Cplx, 1> slope, cudaStream_t stream) {
  constexpr const char* kWhat = "imaginary plasmon poles";
  const std::int64_t n_left = x_ry.extent[0], n_right = x_ry.extent[1], n_energies = x_ry.extent[2];
  if (n_poles == 0 || n_left * n_right * n_energies == 0) return;
  const DeviceBuffer<double> x(std::vector<double>(x_ry.data, x_ry.data + x_ry.size()), kWhat);
  const DeviceBuffer<double> f(
      std::vector<double>(occupation.data, occupation.data + occupation.size()), kWhat);
  const auto count = static_cast<std::size_t>(n_left * n_right * n_energies);
  DeviceBuffer<Number> sums(kParts * count, kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  const dim3 grid(static_cast<unsigned>(n_left * n_right),
                  static_cast<unsigned>((n_energies + kEnergies - 1) / kEnergies));
  sum_poles<<<grid, kThreads, 0, stream>>>(reinterpret_cast<const Pole*>(poles), n_poles,
                                           rules.half_width_ry, rules.screened_exchange_cut,
                                           reinterpret_cast<const Number*>(products), n_g, x.data(),
                                           f.data(), n_right, n_energies, sums.data());
  check_launch(kWhat);
  check(cudaStreamSynchronize(stream), kWhat);
  std::vector<ImaginaryPoleSums> host(count);
  static_assert(sizeof(ImaginaryPoleSums) == kParts * sizeof(Number));
  check(cudaMemcpy(host.data(), sums.data(), count * sizeof(ImaginaryPoleSums),
                   cudaMemcpyDeviceToHost),
        kWhat);
  add_imaginary_pole_sums(host, n_left, n_right, weight, total, sx, slope);
}

}  // namespace quasi::gw::cuda
