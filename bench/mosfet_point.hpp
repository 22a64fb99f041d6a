#pragma once

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

inline BenchPoint make_bench_point(const BenchMesh& mesh) {
  const auto text = [](int value) { return std::to_string(value); };
  BenchPoint point{.deck = parse_deck("",
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

}  // namespace quasi::mosfet
