#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {

/// Mesh of a timed run; the defaults are the published mesh.
struct BenchMesh {
  std::string range = "half";
  int nx = 65, nz = 65, subbands = 6, nw = 300, nphi = 48;
};

/// The default device at V_GS = 0.6 V, V_DS = 0.4 V and its quasi-equilibrium.
struct BenchPoint {
  Deck deck;
  TransportProblem problem;
  PointBoundary boundary;
  PointState start;
};

/// Computes the quasi-equilibrium on `mesh`.
inline BenchPoint make_bench_point(const BenchMesh& mesh) {
  const auto text = [](int value) { return std::to_string(value); };
  BenchPoint point{.deck = parse_deck("parameters = \"paper\"",
                                      {{"mesh.nx", text(mesh.nx)},
                                       {"mesh.nz", text(mesh.nz)},
                                       {"mesh.subbands", text(mesh.subbands)},
                                       {"mesh.nw", text(mesh.nw)},
                                       {"mesh.nphi", text(mesh.nphi)},
                                       {"mesh.wmax_ev", "0.9"},
                                       {"mesh.range", mesh.range}},
                                      "bench", ".")};
  const Structure s = make_structure(point.deck);
  const BiasPoint bias{0.6, 0.4};
  const Equilibrium contact = solve_contact(point.deck, s, 0);
  point.problem = make_transport_problem(point.deck, s);
  point.boundary = make_point_boundary(point.deck, point.problem, bias, contact, contact);
  point.start = make_start(point.deck, point.problem, bias, point.boundary, {contact, contact},
                           solve_equilibrium(point.deck, s, bias, contact, contact));
  return point;
}

/// Loads the point into every lane.
inline void load_point(const BenchPoint& point, int lanes, MosfetKernels& kernels) {
  kernels.load(point.problem, lanes);
  for (int lane = 0; lane < lanes; ++lane) {
    kernels.set_boundary(lane, point.boundary);
    kernels.set_state(lane, point.start);
  }
}

using BenchClock = std::chrono::steady_clock;

inline double ms_since(BenchClock::time_point from) {
  return std::chrono::duration<double, std::milli>(BenchClock::now() - from).count();
}

/// Options that every benchmark of a step has. An `Arguments` has device, mesh, steps and warmup.
template <typename Arguments>
void add_step_options(CLI::App& app, Arguments& a) {
  app.add_option("--device", a.device);
  app.add_option("--range", a.mesh.range);
  app.add_option("--nx", a.mesh.nx);
  app.add_option("--nz", a.mesh.nz);
  app.add_option("--subbands", a.mesh.subbands);
  app.add_option("--nw", a.mesh.nw);
  app.add_option("--nphi", a.mesh.nphi);
  app.add_option("--steps", a.steps);
  app.add_option("--warmup", a.warmup);
}

/// Parses the command line, runs `work`, and prints a failure.
/// @return the exit status of the program
template <typename Work>
int run_bench(CLI::App& app, int argc, char** argv, const Work& work) {
  CLI11_PARSE(app, argc, argv);
  try {
    work();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
  return 0;
}

}  // namespace quasi::mosfet
