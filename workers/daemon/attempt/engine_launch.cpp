#include "workers/daemon/attempt/engine_launch.hpp"

#include <algorithm>

#include "proto/wire/validate.hpp"
#include "proto/wire/waiting_threads.hpp"

namespace quasi {

v1::EngineStart start_message(const v1::Grant& grant, const std::vector<WorkerDevice>& devices) {
  const v1::JobSpec& spec = grant.spec();
  v1::EngineStart start;
  start.set_kind(std::string(wire::kind_of(spec)));
  if (const v1::DeckWork* work = wire::deck_of(spec)) {
    start.set_deck_path("in/" + work->deck());
    *start.mutable_settings() = work->settings();
    *start.mutable_exports() = work->exports();
  }
  if (spec.has_test()) *start.mutable_test() = spec.test();
  int n_cuda = 0;
  for (const auto& device : devices)
    if (device.cuda) start.add_devices("cuda:" + std::to_string(n_cuda++));
  if (n_cuda == 0) start.add_devices("cpu");
  start.set_output_directory("out");
  start.set_checkpoint_directory("ckpt");
  start.set_memory_budget_bytes(spec.resources().gpu_mem_bytes());
  start.set_attempt_number(grant.attempt_number());
  start.set_ranks(spec.resources().ranks());
  return start;
}

namespace {

/// Memory limit of an attempt: what its job asks for, and at most that of the worker. 0: none.
std::uint64_t ram_limit_bytes(std::uint64_t asked, std::uint64_t most) {
  if (asked == 0 || most == 0) return std::max(asked, most);
  return std::min(asked, most);
}

}  // namespace

LaunchPlan launch_plan(const v1::Grant& grant, const std::vector<WorkerDevice>& devices,
                       const EngineSettings& settings, const AttemptPaths& paths) {
  const int n_ranks = std::max(1, static_cast<int>(grant.spec().resources().ranks()));
  LaunchPlan plan{.working_directory = paths.root,
                  .log = paths.log,
                  .environment = settings.environment,
                  .starts_ranks = n_ranks > 1,
                  .max_ram_bytes = ram_limit_bytes(grant.spec().resources().ram_bytes(),
                                                   settings.max_ram_bytes) /
                                   static_cast<std::uint64_t>(n_ranks)};
  std::string visible;
  for (const auto& device : devices)
    if (device.cuda) visible += (visible.empty() ? "" : ",") + device.uuid;
  plan.environment.push_back("CUDA_VISIBLE_DEVICES=" + visible);
  plan.environment.push_back("CUDA_DEVICE_ORDER=PCI_BUS_ID");
  // cuFFT compiles kernels for each plan, and without a cache it compiles them again for the next.
  // A cache that outlives the job would let one user's engine choose the kernels of another's.
  plan.environment.push_back("CUDA_CACHE_PATH=" + paths.cache.string());
  // A job may ask for fewer threads than the share of its slots but not for more, because other
  // jobs run on the machine.
  const int share = settings.threads * std::max(1, static_cast<int>(devices.size()));
  const int asked = static_cast<int>(grant.spec().resources().cpus());
  const int threads = asked > 0 && share > 0 ? std::min(asked, share) : std::max(asked, share);
  const auto is_given = [&](const std::string& name) {
    return std::ranges::any_of(settings.environment, [&](const std::string& entry) {
      return entry.starts_with(name + "=");
    });
  };
  if (std::ranges::none_of(kWaitingVariables, is_given))
    plan.environment.push_back(std::string(kSpinVariable) + "=" + kSpinCount);
  if (threads > 0)
    for (const char* name : {"OMP_NUM_THREADS=", "OPENBLAS_NUM_THREADS="})
      plan.environment.push_back(name + std::to_string(std::max(1, threads / n_ranks)));
  return plan;
}

}  // namespace quasi
