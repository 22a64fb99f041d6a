#include "workers/gw/kernels/pole_sums/changes/change_of_poles_cuda.cuh"

#include <vector>

#include "workers/backend/device/launch_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;

constexpr const char* kWhat = "changes of plasmon poles";

struct MakeChange {
  PoleModelOnDevice own;
  const double2* inverse;  ///< ε̃⁻¹ from the first plane wave of the model on
  std::int64_t edge;
  ScreenedElementsView elements;
  float2* strength;
  float* tau_per_ry;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t g = index / own.n_g, h = index % own.n_g;
    if (h > g) return;
    const double2 value = inverse[g * edge + h], of_own = own.strength[index];
    const PoleTerms terms = elements.terms(g, h, {value.x, value.y}),
                    before = pole_terms({of_own.x, of_own.y}, own.pole_ry[index]);
    const std::int64_t at = g * (g + 1) / 2 + h;
    strength[at] = {static_cast<float>(terms.strength.re - before.strength.re),
                    static_cast<float>(terms.strength.im - before.strength.im)};
    tau_per_ry[at] = static_cast<float>(bounded_change_of_tau(before.tau_per_ry, terms.tau_per_ry));
  }
};

}  // namespace

PoleChange change_of_poles_cuda(const PoleModelOnDevice& own, const CudaInverse& inverse,
                                const ScreenedElements& elements, CudaContext& context) {
  context.use();
  const std::int64_t n = elements.size(), skip = elements.n_heads - 1,
                     size = elements_of_change(n, true);
  const auto* density = reinterpret_cast<const Complex<double>*>(elements.density.data());
  const DeviceBuffer<ScreenedWave> waves(elements.waves, kWhat);
  const DeviceBuffer<Complex<double>> of_density(
      std::vector<Complex<double>>(density, density + elements.density.size()), kWhat);
  DeviceBuffer<float2> strength(static_cast<std::size_t>(size), kWhat);
  DeviceBuffer<float> tau(static_cast<std::size_t>(size), kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  for_each_index(
      n * n,
      MakeChange{own, inverse.data() + skip * (inverse.size() + 1), inverse.size(),
                 elements.view(waves.data(), of_density.data()), strength.data(), tau.data()},
      kWhat, context.stream());
  check(cudaStreamSynchronize(context.stream()), kWhat);
  PoleChange change{.strength = UnsetVector<std::complex<float>>(static_cast<std::size_t>(size)),
                    .tau_per_ry = UnsetVector<float>(static_cast<std::size_t>(size))};
  context.staging().to_host(strength.data(), size * static_cast<std::int64_t>(sizeof(float2)),
                            change.strength.data(), context.stream(), kWhat);
  context.staging().to_host(tau.data(), size * static_cast<std::int64_t>(sizeof(float)),
                            change.tau_per_ry.data(), context.stream(), kWhat);
  return change;
}

}  // namespace quasi::gw::cuda
