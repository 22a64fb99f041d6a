// Times one time step of the kind mosfet with the published field iteration on the host's cores:
// cold levels of every valley and a new matrix in every Newton step. One JSON line.
//
// On the CPU the whole step runs so. On a GPU the transport of a step is timed with a frozen field;
// then the host solves for the field of the new density. A step has three stages, so its time is
// that of the transport and of three such solutions. The copies are not included.

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/mosfet_point.hpp"
#include "bench/published/mosfet_newton.hpp"
#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/electrostatics/iteration_cpu.hpp"

namespace quasi::mosfet {
namespace {

struct Arguments {
  std::string device = "auto";
  BenchMesh mesh{.range = "full"};
  int steps = 40, warmup = 10;
};

/// Times of one step, ms.
struct StepTime {
  double transport_ms = 0;  ///< zero where the step is timed as a whole
  double field_ms = 0;      ///< one solution; zero likewise
  double step_ms = 0;
  double newton_steps = 0;  ///< of one stage
  NewtonSeconds parts;      ///< of all field iterations of the run
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

StepTime time_on_cpu(const Arguments& a, const BenchPoint& point) {
  const auto method = std::make_shared<PublishedNewton>();
  const auto kernels = make_mosfet_kernels_cpu(method);
  load_point(point, 1, *kernels);
  std::vector<double> each_ms, newton_steps;
  for (int step = 0; step < a.warmup + a.steps; ++step) {
    const auto from = BenchClock::now();
    const Advance advance = kernels->advance(1, {1e9}, 1.0)[0];
    if (advance.chord_failed) throw NotConverged("the published iteration failed");
    if (step < a.warmup) continue;
    each_ms.push_back(ms_since(from));
    newton_steps.push_back(advance.steps[0].chord_iterations / 3.0);
  }
  return {
      .step_ms = median(each_ms), .newton_steps = median(newton_steps), .parts = method->seconds()};
}

StepTime time_on_gpu(const Arguments& a, BenchPoint point, const Device& device) {
  point.problem.frozen_field = true;
  use_device(device);
  const auto kernels = make_mosfet_kernels(device);
  load_point(point, 1, *kernels);
  const auto method = std::make_shared<PublishedNewton>();
  const FieldIteration field(point.problem, method);
  std::vector<double> transport_ms, field_ms, newton_steps;
  for (int step = 0; step < a.warmup + a.steps; ++step) {
    auto from = BenchClock::now();
    kernels->advance(1, {1e9}, 1.0);
    const double transported_ms = ms_since(from);
    PointState state = kernels->state(0);
    const std::vector<double> sheet_nm2 = kernels->moments(0).sheet_nm2;
    from = BenchClock::now();
    const IterationReport report =
        field.solve(point.boundary, sheet_nm2, &state.potential_v, &state.energy_ev, &state.psi);
    const double solved_ms = ms_since(from);
    if (!report.converged) throw NotConverged("the published iteration failed");
    kernels->set_state(0, state);
    if (step < a.warmup) continue;
    transport_ms.push_back(transported_ms);
    field_ms.push_back(solved_ms);
    newton_steps.push_back(report.iterations);
  }
  const double transport = median(transport_ms), one = median(field_ms);
  return {transport, one, transport + 3.0 * one, median(newton_steps), method->seconds()};
}

void run(const Arguments& a) {
  const BenchPoint point = make_bench_point(a.mesh);
  const Device device = find_device(a.device);
  const StepTime time =
      device.backend == Backend::kCpu ? time_on_cpu(a, point) : time_on_gpu(a, point, device);
  const double field_s = time.parts.levels + time.parts.response + time.parts.linear;
  std::cout << nlohmann::json{{"case", "published step"},
                              {"device", device.name()},
                              {"model", device.model},
                              {"range", a.mesh.range},
                              {"mesh",
                               {a.mesh.subbands, a.mesh.nx, a.mesh.nz, a.mesh.nw, a.mesh.nphi}},
                              {"steps", a.steps},
                              {"step_ms", time.step_ms},
                              {"transport_ms", time.transport_ms},
                              {"field_ms", time.field_ms},
                              {"newton_steps_per_stage", time.newton_steps},
                              {"iter_shares",
                               {{"schroedinger", time.parts.levels / field_s},
                                {"kernel", time.parts.response / field_s},
                                {"linear_system", time.parts.linear / field_s}}}}
                   .dump()
            << std::endl;
}

}  // namespace
}  // namespace quasi::mosfet

int main(int argc, char** argv) {
  quasi::mosfet::Arguments a;
  CLI::App app{"times a step of the kind mosfet with the published field iteration"};
  quasi::mosfet::add_step_options(app, a);
  return quasi::mosfet::run_bench(app, argc, argv, [&] { quasi::mosfet::run(a); });
}
