// Times one time step of the kind mosfet: a real transient at V_GS = 0.6 V, V_DS = 0.4 V, and every
// kernel of a step alone. One JSON line a case.

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/mosfet_point.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {
namespace {

struct Arguments {
  std::string device = "auto";
  BenchMesh mesh;
  int steps = 1000, warmup = 200, batch = 50, lanes = 1;
  bool profile = true;
};

/// Sums over the timed steps of a run.
struct StepTimes {
  std::vector<double> per_step_ms;  ///< one entry a batch
  double chord = 0, count = 0, residual = 0, refresh_ms = 0, refreshes = 0, dt_fs = 0, current = 0;

  void add(const Advance& advance, double elapsed_ms, int n) {
    per_step_ms.push_back(elapsed_ms / n);
    for (const StepRecord& record : advance.steps) {
      chord += record.chord_iterations;
      ++count;
    }
    const StepRecord& last = advance.steps.back();
    residual = last.residual;
    dt_fs = last.dt_fs;
    current = last.current_mid * kCurrentUnit_a_m;
  }
};

/// Advances all lanes; the frozen matrix is renewed as in a real run.
/// @return the times, or nothing when the chord iteration failed
std::optional<StepTimes> time_steps(const Arguments& a, int refresh_every, MosfetKernels* kernels) {
  StepTimes times;
  const std::vector<double> stop(static_cast<std::size_t>(a.lanes), 1e9);
  for (int done = 0; done < a.warmup + a.steps;) {
    if (done % refresh_every == 0) {
      const auto from = BenchClock::now();
      for (int lane = 0; lane < a.lanes; ++lane) kernels->refresh(lane);
      kernels->potential(0);  // Waits.
      times.refresh_ms += ms_since(from);
      ++times.refreshes;
    }
    const int n = std::min(a.batch, refresh_every - done % refresh_every);
    const auto from = BenchClock::now();
    const std::vector<Advance> advanced = kernels->advance(n, stop, 1.0);
    const double elapsed_ms = ms_since(from);
    done += n;
    if (advanced[0].chord_failed || advanced[0].steps.empty()) {
      std::cout << nlohmann::json{{"case", "step"},
                                  {"error", "the chord iteration failed"},
                                  {"steps", done}}
                       .dump()
                << std::endl;
      return {};
    }
    if (done > a.warmup) times.add(advanced[0], elapsed_ms, n);
  }
  std::sort(times.per_step_ms.begin(), times.per_step_ms.end());
  return times;
}

void run(const Arguments& a) {
  const BenchPoint point = make_bench_point(a.mesh);
  const Device device = find_device(a.device);
  use_device(device);
  const auto kernels = make_mosfet_kernels(device);
  load_point(point, a.lanes, *kernels);
  const int refresh_every = point.deck.run.refresh_steps;
  const auto times = time_steps(a, refresh_every, kernels.get());
  if (!times) return;
  const double median = times->per_step_ms[times->per_step_ms.size() / 2];
  const double refresh_ms = times->refresh_ms / times->refreshes;
  std::cout << nlohmann::json{{"case", "step"},
                              {"device", device.name()},
                              {"model", device.model},
                              {"range", a.mesh.range},
                              {"mesh",
                               {a.mesh.subbands, a.mesh.nx, a.mesh.nz, a.mesh.nw, a.mesh.nphi}},
                              {"lanes", a.lanes},
                              {"steps", times->count},
                              {"median_ms", median},
                              {"min_ms", times->per_step_ms.front()},
                              {"max_ms", times->per_step_ms.back()},
                              {"refresh_ms", refresh_ms},
                              {"refresh_every", refresh_every},
                              {"with_refresh_ms", median + refresh_ms / refresh_every},
                              {"chord_per_stage", times->chord / times->count / 3.0},
                              {"residual", times->residual},
                              {"dt_fs", times->dt_fs},
                              {"current_mid_a_per_m", times->current}}
                   .dump()
            << std::endl;
  if (!a.profile) return;
  for (const KernelTime& time : kernels->profile(0, device.backend == Backend::kCuda ? 20 : 3))
    std::cout << nlohmann::json{{"case", "kernel"},        {"device", device.name()},
                                {"range", a.mesh.range},   {"name", time.name},
                                {"ms", time.milliseconds}, {"calls_per_step", time.calls_per_step}}
                     .dump()
              << std::endl;
}

}  // namespace
}  // namespace quasi::mosfet

int main(int argc, char** argv) {
  quasi::mosfet::Arguments a;
  CLI::App app{"times a step of the kind mosfet"};
  quasi::mosfet::add_step_options(app, a);
  app.add_option("--batch", a.batch);
  app.add_option("--lanes", a.lanes);
  app.add_flag("!--no-profile", a.profile);
  return quasi::mosfet::run_bench(app, argc, argv, [&] { quasi::mosfet::run(a); });
}
