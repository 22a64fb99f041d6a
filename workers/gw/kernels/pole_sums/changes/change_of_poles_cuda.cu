#include "workers/gw/kernels/pole_sums/changes/change_of_poles_cuda.cuh"

#include <algorithm>
#include <complex>
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
  InverseOnDevice inverse;  ///< ε̃⁻¹
  std::int64_t skip;  ///< rows and columns of ε̃⁻¹ before the first plane wave of the model
  ScreenedElementsView elements;
  float2* strength;
  float* real_strength;  ///< in place of `strength`; null: it is used
  float* tau_per_ry;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t g = index / own.n_g, h = index % own.n_g;
    if (h > g) return;
    const std::int64_t at = g * (g + 1) / 2 + h, position = own.at(g, h);
    const double2 value = inverse.at(g + skip, h + skip), of_own = own.strength_at(position);
    const PoleTerms terms = elements.terms(g, h, {value.x, value.y}),
                    before = pole_terms({of_own.x, of_own.y}, own.pole_ry[position]);
    const auto of_real = static_cast<float>(terms.strength.re - before.strength.re);
    if (real_strength != nullptr)
      real_strength[at] = of_real;
    else
      strength[at] = {of_real, static_cast<float>(terms.strength.im - before.strength.im)};
    tau_per_ry[at] = static_cast<float>(bounded_change_of_tau(before.tau_per_ry, terms.tau_per_ry));
  }
};

}  // namespace

CudaPoleChange::CudaPoleChange(const Device& where, std::int64_t n_elements, bool real)
    : device(where),
      strength(static_cast<std::size_t>(real ? 0 : n_elements), kWhat),
      real_strength(static_cast<std::size_t>(real ? n_elements : 0), kWhat),
      tau_per_ry(static_cast<std::size_t>(n_elements), kWhat) {}

HeldChange change_on_device(const PoleChange& change, const PoleModelOnDevice& model,
                            const ElementRows& rows, CudaContext& context) {
  const auto kept = std::dynamic_pointer_cast<const CudaPoleChange>(change.kept);
  const std::size_t size = kept != nullptr ? kept->tau_per_ry.size() : change.size();
  if (static_cast<std::int64_t>(size) != elements_of_change(model.n_g, model.folded))
    throw std::logic_error("a change has other elements than its pole model");
  const std::int64_t first = elements_of_rows(rows.begin, model.n_g, model.folded),
                     count = elements_of_rows(rows.end, model.n_g, model.folded) - first;
  context.use();
  if (kept != nullptr && kept->device.index == context.device().index)
    return {kept, kept->view(first)};
  const bool real = kept != nullptr ? kept->real() : !change.real_strength.empty();
  auto here = std::make_shared<CudaPoleChange>(context.device(), count, real);
  const auto bring = [&](const auto& of_host, const auto& of_device, auto& to) {
    const auto bytes = static_cast<std::int64_t>(to.size() * sizeof(*to.data()));
    if (bytes == 0) return;
    if (kept != nullptr)
      peer_copy({to.data(), context.device()}, {of_device.data() + first, kept->device}, bytes,
                context.stream(), kWhat);
    else
      context.staging().to_device(of_host.data() + first, bytes, to.data(), context.stream(),
                                  kWhat);
  };
  const CudaPoleChange& from = kept != nullptr ? *kept : *here;
  bring(change.strength, from.strength, here->strength);
  bring(change.real_strength, from.real_strength, here->real_strength);
  bring(change.tau_per_ry, from.tau_per_ry, here->tau_per_ry);
  check(cudaStreamSynchronize(context.stream()), kWhat);
  return {here, here->view(0)};
}

namespace {

/// True if no wing of an average over directions has an imaginary part.
bool has_real_wings(const ScreenedElements& elements) {
  const auto is_real = [](const ScreenedWave& wave) {
    for (int i = 0; i < 3; ++i)
      if (wave.left[i].im != 0.0 || wave.right[i].im != 0.0) return false;
    return true;
  };
  return !elements.averages_directions ||
         std::all_of(elements.waves.begin(), elements.waves.end(), is_real);
}

/// Copies a change to the host.
PoleChange to_host(const CudaPoleChange& made, CudaContext& context) {
  PoleChange change{.strength = UnsetVector<std::complex<float>>(made.strength.size()),
                    .tau_per_ry = UnsetVector<float>(made.tau_per_ry.size()),
                    .real_strength = UnsetVector<float>(made.real_strength.size())};
  const auto bring = [&](const auto& from, auto& to) {
    context.staging().to_host(from.data(),
                              static_cast<std::int64_t>(from.size() * sizeof(*from.data())),
                              to.data(), context.stream(), kWhat);
  };
  bring(made.strength, change.strength);
  bring(made.real_strength, change.real_strength);
  bring(made.tau_per_ry, change.tau_per_ry);
  return change;
}

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
  const bool real =
      own.real_strength != nullptr && inverse.view().real != nullptr && has_real_wings(elements);
  auto made = std::make_shared<CudaPoleChange>(context.device(), size, real);
  check(cudaDeviceSynchronize(), kWhat);
  for_each_index(n * n,
                 MakeChange{own, inverse.view(), skip,
                            elements.view(waves.data(), of_density.data()), made->strength.data(),
                            real ? made->real_strength.data() : nullptr, made->tau_per_ry.data()},
                 kWhat, context.stream());
  check(cudaStreamSynchronize(context.stream()), kWhat);
  if (elements.kept) return {.strength = {}, .tau_per_ry = {}, .kept = made};
  return to_host(*made, context);
}

}  // namespace quasi::gw::cuda
