#include "workers/thermal/solver/four_phonon/four_phonon_start.hpp"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "workers/backend/device/device.hpp"

namespace quasi::thermal {
namespace {

using OwnedKernels = std::unique_ptr<ScatteringKernels4ph>;

/// Holds the four-phonon kernels of one device. `loads_early` is true if the device has room to
/// load the problem while three phonons are summed.
struct EarlyKernels {
  OwnedKernels kernels;
  bool loads_early = false;
};

/// Makes the kernels of a GPU. If four phonons are small there, they reserve their buffers, too.
EarlyKernels early_kernels(const Device& device, std::int64_t budget_bytes,
                           const Problem4ph& outline) {
  EarlyKernels made{.kernels = make_scattering_kernels_4ph(device, budget_bytes)};
  made.loads_early = static_cast<double>(made.kernels->memory_bytes(outline)) <=
                     FourPhononStart::kEarlyShare * static_cast<double>(free_memory_bytes(device));
  if (made.loads_early) made.kernels->prepare(outline);
  return made;
}

/// Makes one object for every device, all at the same time.
template <typename Made, typename Make>
std::vector<Made> on_each(const std::vector<Device>& devices, const Make& make) {
  std::vector<std::future<Made>> steps;
  for (const Device& device : devices)
    steps.push_back(std::async(std::launch::async, make, device));
  std::vector<Made> made;
  for (std::future<Made>& step : steps) made.push_back(step.get());
  return made;
}

}  // namespace

std::vector<OwnedKernels> kernels_of(const std::vector<Device>& devices,
                                     std::int64_t memory_budget_bytes) {
  return on_each<OwnedKernels>(devices, [memory_budget_bytes](const Device& device) {
    return make_scattering_kernels_4ph(device, memory_budget_bytes);
  });
}

std::vector<ScatteringKernels4ph*> pointers_to(const std::vector<OwnedKernels>& kernels) {
  std::vector<ScatteringKernels4ph*> pointers;
  for (const OwnedKernels& kernel : kernels) pointers.push_back(kernel.get());
  return pointers;
}

bool FourPhononStart::may_begin_early(const std::vector<Device>& devices) {
  return std::all_of(devices.begin(), devices.end(),
                     [](const Device& device) { return device.backend == Backend::kCuda; });
}

FourPhononStart::FourPhononStart(const Transport& transport,
                                 const SparseForceConstants& fourth_order,
                                 const FourPhononOptions& options, std::vector<Device> devices,
                                 bool early)
    : transport_(transport),
      fourth_order_(fourth_order),
      devices_(std::move(devices)),
      early_(early),
      host_threads_(omp_get_max_threads()),
      result_(std::make_unique<FourPhononRun>()) {
  result_->options = options;
  result_->n_blocks = fourth_order.n_blocks();
  made_ = early_ ? std::async(std::launch::async,
                              [this] {
                                omp_set_num_threads(host_threads_);
                                make();
                              })
                 : std::async(std::launch::deferred, [this] { make(); });
}

std::unique_ptr<FourPhononRun> FourPhononStart::finish() {
  made_.get();
  return std::move(result_);
}

void FourPhononStart::make() {
  FourPhononRun& result = *result_;
  const std::vector<std::int32_t>& points = transport_.symmetry.irreducible;
  const auto make_problem = [&] {
    result.problem = make_problem_4ph(transport_.crystal, transport_.modes, transport_.symmetry,
                                      result.options, fourth_order_, points);
  };
  if (!early_ || result.options.sampling.enabled) {
    result.kernels = kernels_of(devices_, result.options.memory_budget_bytes);
    make_problem();
    return;
  }
  const Problem4ph outline =
      outline_problem_4ph(transport_.modes, transport_.symmetry, result.options, points);
  auto kernels = std::async(std::launch::async, [&] {
    return on_each<EarlyKernels>(devices_, [&](const Device& device) {
      return early_kernels(device, result.options.memory_budget_bytes, outline);
    });
  });
  make_problem();
  bool load_early = true;
  for (EarlyKernels& early : kernels.get()) {
    load_early = load_early && early.loads_early;
    result.kernels.push_back(std::move(early.kernels));
  }
  if (!load_early) return;
  const Team4ph team(pointers_to(result.kernels));
  result.ready = std::make_unique<ReadySums4ph>(team, result.problem);
  for (std::size_t device = 0; device < devices_.size(); ++device)
    result.ready->loading.loaded(device);
}

}  // namespace quasi::thermal
