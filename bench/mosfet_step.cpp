// Times one time step of the kind mosfet: a real transient at V_GS = 0.6 V, V_DS = 0.4 V, and every
// kernel of a step alone. One JSON line a case.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include <iostream>

#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/model/working_units.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

struct Arguments {
  std::string device = "auto", range = "half", field = "device";
  int nx = 65, nz = 65, subbands = 6, nw = 300, nphi = 48, steps = 1000, warmup = 200, batch = 50,
      lanes = 1;
  bool profile = true, overlap = true;
};

void run(const Arguments& a) {
  const auto text = [](int value) { return std::to_string(value); };
  const Deck deck = parse_deck("",
                               {{"mesh.nx", text(a.nx)},
                                {"mesh.nz", text(a.nz)},
                                {"mesh.subbands", text(a.subbands)},
                                {"mesh.nw", text(a.nw)},
                                {"mesh.nphi", text(a.nphi)},
                                {"mesh.wmax_eV", "0.9"},
                                {"mesh.range", a.range},
                                {"run.field", a.field}},
                               "bench", ".");
  const Structure s = make_structure(deck);
  TransportProblem problem = make_transport_problem(deck, s);
  problem.overlap = a.overlap;
  const BiasPoint bias{0.6, 0.4};
  const Equilibrium contact = solve_contact(deck, s, 0);
  const PointBoundary boundary = make_point_boundary(deck, problem, bias, contact, contact);
  const PointState start = make_start(deck, problem, bias, boundary, contact, contact,
                                      solve_equilibrium(deck, s, bias, contact, contact));
  const Device device = find_device(a.device);
  use_device(device);
  const auto kernels = make_mosfet_kernels(device);
  kernels->load(problem, a.lanes);
  for (int lane = 0; lane < a.lanes; ++lane) {
    kernels->set_boundary(lane, boundary);
    kernels->set_state(lane, start);
  }
  std::vector<double> per_step_ms;
  double chord = 0.0, count = 0.0, residual = 0.0, refresh_ms = 0.0, refreshes = 0.0, dt = 0.0,
         current = 0.0;
  using Clock = std::chrono::steady_clock;
  const auto ms_since = [](Clock::time_point from) {
    return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
  };
  const std::vector<double> stop(static_cast<std::size_t>(a.lanes), 1e9);
  const int refresh_every = deck.run.refresh_steps;
  for (int done = 0; done < a.warmup + a.steps;) {
    if (done % refresh_every == 0) {
      const auto from = Clock::now();
      for (int lane = 0; lane < a.lanes; ++lane) kernels->refresh(lane);
      kernels->potential(0);  // Waits.
      refresh_ms += ms_since(from);
      ++refreshes;
    }
    const int n = std::min(a.batch, refresh_every - done % refresh_every);
    const auto from = Clock::now();
    const std::vector<Advance> advanced = kernels->advance(n, stop, 1.0);
    const double elapsed = ms_since(from);
    done += n;
    if (advanced[0].chord_failed || advanced[0].steps.empty()) {
      std::cout << nlohmann::json{{"case", "step"},
                                  {"error", "the chord iteration failed"},
                                  {"steps", done}}
                       .dump()
                << std::endl;
      return;
    }
    if (done <= a.warmup) continue;
    per_step_ms.push_back(elapsed / n);
    for (const StepRecord& record : advanced[0].steps) {
      chord += record.chord_iterations;
      ++count;
    }
    residual = advanced[0].steps.back().residual;
    dt = advanced[0].steps.back().dt_fs;
    current = advanced[0].steps.back().current_mid * kCurrentUnit_a_m;
  }
  std::sort(per_step_ms.begin(), per_step_ms.end());
  const double median = per_step_ms[per_step_ms.size() / 2];
  std::cout << nlohmann::json{{"case", "step"},
                              {"device", device.name()},
                              {"model", device.model},
                              {"range", a.range},
                              {"field", a.field},
                              {"overlap", a.overlap},
                              {"mesh", {a.subbands, a.nx, a.nz, a.nw, a.nphi}},
                              {"lanes", a.lanes},
                              {"steps", count},
                              {"median_ms", median},
                              {"min_ms", per_step_ms.front()},
                              {"max_ms", per_step_ms.back()},
                              {"refresh_ms", refresh_ms / refreshes},
                              {"refresh_every", refresh_every},
                              {"with_refresh_ms", median + refresh_ms / refreshes / refresh_every},
                              {"chord_per_stage", chord / count / 3.0},
                              {"residual", residual},
                              {"dt_fs", dt},
                              {"current_mid_a_per_m", current}}
                   .dump()
            << std::endl;
  if (!a.profile) return;
  for (const KernelTime& time : kernels->profile(0, device.backend == Backend::kCuda ? 20 : 3))
    std::cout << nlohmann::json{{"case", "kernel"},        {"device", device.name()},
                                {"range", a.range},        {"name", time.name},
                                {"ms", time.milliseconds}, {"calls_per_step", time.calls_per_step}}
                     .dump()
              << std::endl;
}

}  // namespace
}  // namespace quasi::mosfet

int main(int argc, char** argv) {
  quasi::mosfet::Arguments a;
  CLI::App app{"times a step of the kind mosfet"};
  app.add_option("--device", a.device);
  app.add_option("--range", a.range);
  app.add_option("--field", a.field, "device, host, or published (needs --range full)");
  app.add_option("--nx", a.nx);
  app.add_option("--nz", a.nz);
  app.add_option("--subbands", a.subbands);
  app.add_option("--nw", a.nw);
  app.add_option("--nphi", a.nphi);
  app.add_option("--steps", a.steps);
  app.add_option("--warmup", a.warmup);
  app.add_option("--batch", a.batch);
  app.add_option("--lanes", a.lanes);
  app.add_flag("!--no-profile", a.profile);
  app.add_flag("!--no-overlap", a.overlap,
               "field on the host: the x flux of the next stage after it, not meanwhile");
  CLI11_PARSE(app, argc, argv);
  try {
    quasi::mosfet::run(a);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
  return 0;
}
