#include "workers/gw/kernels/pole_sums/changes/change_of_poles_cuda.cuh"

#include <stdexcept>
#include <vector>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/peer_copy.cuh"

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

CudaPoleChange::CudaPoleChange(const Device& where, std::int64_t n_elements)
    : device(where),
      strength(static_cast<std::size_t>(n_elements), kWhat),
      tau_per_ry(static_cast<std::size_t>(n_elements), kWhat) {}

HeldChange change_on_device(const PoleChange& change, const PoleModelOnDevice& model,
                            const ElementRows& rows, CudaContext& context) {
  const auto kept = std::dynamic_pointer_cast<const CudaPoleChange>(change.kept);
  const std::size_t size = kept != nullptr ? kept->strength.size() : change.strength.size();
  if (static_cast<std::int64_t>(size) != elements_of_change(model.n_g, model.folded))
    throw std::logic_error("a change has other elements than its pole model");
  const std::int64_t first = elements_of_rows(rows.begin, model.n_g, model.folded),
                     count = elements_of_rows(rows.end, model.n_g, model.folded) - first;
  context.use();
  if (kept != nullptr && kept->device.index == context.device().index)
    return {kept, {kept->strength.data() + first, kept->tau_per_ry.data() + first}};
  auto here = std::make_shared<CudaPoleChange>(context.device(), count);
  const auto bring = [&](const auto& of_host, const auto& of_device, auto& to) {
    const auto bytes =
        static_cast<std::int64_t>(static_cast<std::size_t>(count) * sizeof(*to.data()));
    if (kept != nullptr)
      peer_copy({to.data(), context.device()}, {of_device.data() + first, kept->device}, bytes,
                context.stream(), kWhat);
    else
      context.staging().to_device(of_host.data() + first, bytes, to.data(), context.stream(),
                                  kWhat);
  };
  const CudaPoleChange& from = kept != nullptr ? *kept : *here;
  bring(change.strength, from.strength, here->strength);
  bring(change.tau_per_ry, from.tau_per_ry, here->tau_per_ry);
  check(cudaStreamSynchronize(context.stream()), kWhat);
  return {here, {here->strength.data(), here->tau_per_ry.data()}};
}

PoleChange change_of_poles_cuda(const PoleModelOnDevice& own, const CudaInverse& inverse,
                                const ScreenedElements& elements, CudaContext& context) {
  context.use();
  const std::int64_t n = elements.size(), skip = elements.n_heads - 1,
                     size = elements_of_change(n, true);
  const auto* density = reinterpret_cast<const Complex<double>*>(elements.density.data());
  const DeviceBuffer<ScreenedWave> waves(elements.waves, kWhat);
  const DeviceBuffer<Complex<double>> of_density(
      std::vector<Complex<double>>(density, density + elements.density.size()), kWhat);
  auto made = std::make_shared<CudaPoleChange>(context.device(), size);
  check(cudaDeviceSynchronize(), kWhat);
  for_each_index(n * n,
                 MakeChange{own, inverse.data() + skip * (inverse.size() + 1), inverse.size(),
                            elements.view(waves.data(), of_density.data()), made->strength.data(),
                            made->tau_per_ry.data()},
                 kWhat, context.stream());
  check(cudaStreamSynchronize(context.stream()), kWhat);
  if (elements.kept) return {.strength = {}, .tau_per_ry = {}, .kept = made};
  PoleChange change{.strength = UnsetVector<std::complex<float>>(static_cast<std::size_t>(size)),
                    .tau_per_ry = UnsetVector<float>(static_cast<std::size_t>(size)),
                    .kept = nullptr};
  context.staging().to_host(made->strength.data(), size * static_cast<std::int64_t>(sizeof(float2)),
                            change.strength.data(), context.stream(), kWhat);
  context.staging().to_host(made->tau_per_ry.data(),
                            size * static_cast<std::int64_t>(sizeof(float)),
                            change.tau_per_ry.data(), context.stream(), kWhat);
  return change;
}

}  // namespace quasi::gw::cuda
