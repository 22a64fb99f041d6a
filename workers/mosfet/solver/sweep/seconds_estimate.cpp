#include "workers/mosfet/solver/sweep/seconds_estimate.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "workers/backend/stopwatch.hpp"
#include "workers/mosfet/model/run_names.hpp"
#include "workers/mosfet/solver/beam/beam_point.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"
#include "workers/mosfet/solver/transport/mobility.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

// Counts of the default device. Points of the beam scheme took 4 to 11 outer steps with 7 to 13
// line solves each, and points of WENO became steady after 0.3 to 1 ps.
constexpr double kOuterSteps = 8.0, kLineSolvesOfAStep = 9.0;
constexpr double kSteady_fs = 600.0;
// A step of a transient of the beam scheme has some three steps of two stages, each about a line
// solve.
constexpr double kStagesOfAStep = 6.0;
// Gummel steps between drift–diffusion and Schrödinger–Poisson, in equilibria.
constexpr double kEquilibriaOfDriftDiffusion = 8.0;
// 50 points share an H200 and 16 cores in 7.2 s; alone they take 0.35 to 0.97 s each.
constexpr double kGainBySharing = 4.0;

/// Times of the small signal over that of its point: making the tables, and one solution.
struct SmallSignalTimes {
  double tables, solution;
};
// Measured at V_GS = V_DS = 0.4 V: one core on coarse meshes, and an H200 on the standard mesh.
constexpr SmallSignalTimes kOnHost{0.5, 2.0}, kByDifferences{1.0, 6.0}, kOnDevice{5.4, 0.16};
// A spectrum of the noise without tables takes this time. With tables it takes that of a solution.
constexpr double kNoiseSolution = 10.0;
constexpr double kMostSolutions = 16.0;  ///< others are interpolated

double seconds_of_beam_point(const Deck& deck, const Structure& structure, const Device& device,
                             const Contacts& contacts) {
  const TransportProblem problem = make_transport_problem(deck, structure);
  const ElasticTables elastic(deck, structure);
  const bool on_host = device.backend == Backend::kCpu || deck.run.mode == RunMode::kTransient;
  const auto kernels = make_beam_kernels(on_host ? find_device("cpu") : device);
  const BeamStepSeconds step = time_beam_step({.model = deck,
                                               .structure = structure,
                                               .problem = problem,
                                               .elastic = elastic,
                                               .contacts = contacts,
                                               .mesh = {.dh_ev = deck.mesh.dh_ev,
                                                        .n_kappa = deck.mesh.n_kappa,
                                                        .window_ev = deck.mesh.window_ev},
                                               .tolerance_v = deck.run.tol_v},
                                              deck.points.front(), *kernels);
  const double point = step.start + kOuterSteps * (step.preparation + step.field +
                                                   kLineSolvesOfAStep * step.line_solve);
  if (deck.run.mode == RunMode::kTransient) {
    const double steps = deck.run.t_end_fs / (2.0 * deck.run.cfl);
    return point + steps * (step.preparation + step.field + kStagesOfAStep * step.line_solve);
  }
  return on_host || deck.points.size() < 8 ? point : point / kGainBySharing;
}

double seconds_of_marching_point(const Deck& deck, const Structure& structure, const Device& device,
                                 const Contacts& contacts) {
  const TransportProblem problem = make_transport_problem(deck, structure);
  const BiasPoint& bias = deck.points.front();
  const PointBoundary boundary =
      make_point_boundary(deck, problem, bias, contacts.source, contacts.drain);
  const Stopwatch start;
  const Equilibrium equilibrium =
      solve_equilibrium(deck, structure, bias, contacts.source, contacts.drain);
  const double start_s = start.seconds();
  use_device(device);
  const auto kernels = make_mosfet_kernels(device);
  kernels->load(problem, 1);
  kernels->set_boundary(0, boundary);
  kernels->set_state(0, make_start(deck, problem, bias, boundary, contacts, equilibrium));
  kernels->refresh(0);
  kernels->advance(1, {deck.run.t_end_fs}, 1.0);
  const Stopwatch clock;
  const std::vector<Advance> advanced = kernels->advance(2, {deck.run.t_end_fs}, 1.0);
  if (advanced.front().steps.empty()) return start_s;
  const double length_fs = deck.run.mode == RunMode::kTransient
                               ? deck.run.t_end_fs
                               : std::min(deck.run.t_end_fs, kSteady_fs);
  const double steps = length_fs / advanced.front().steps.back().dt_fs;
  return start_s + steps * clock.seconds() / static_cast<double>(advanced.front().steps.size());
}

/// Returns true if the small signal of a deck has tables, which run on the device. Differences and
/// sums run on the host.
bool has_tables(const Deck& deck, const Structure& structure) {
  return deck.statistics == StatisticsKind::kMaxwell && ElasticTables(deck, structure).empty();
}

/// Estimates the seconds that the small signal of one bias point takes: the admittances Y and, if
/// the deck asks for it, the noise of the currents. @param point_s seconds of the steady state of
/// this point on the device, or on the host without tables
double seconds_of_small_signal(const Deck& deck, const Device& device, bool by_tables,
                               double point_s) {
  const SmallSignalSettings& settings = deck.small_signal;
  const double solutions =
      std::min(static_cast<double>(settings.frequencies_hz.size()), kMostSolutions);
  const SmallSignalTimes times = !by_tables                        ? kByDifferences
                                 : device.backend == Backend::kCpu ? kOnHost
                                                                   : kOnDevice;
  const double admittances = times.tables + solutions * times.solution;
  const double noise = by_tables ? admittances : solutions * kNoiseSolution;
  return point_s * (admittances + (settings.noise ? noise : 0.0));
}

double seconds_of_point(const Deck& deck, const Structure& structure, const Device& device) {
  const Contacts contacts{solve_contact(deck, structure, 0),
                          solve_contact(deck, structure, structure.nx - 1)};
  const bool moves_electrons =
      has_currents(deck.run) && deck.run.transport != TransportModel::kDriftDiffusion;
  if (moves_electrons)
    return deck.run.scheme == StreamingScheme::kBeam
               ? seconds_of_beam_point(deck, structure, device, contacts)
               : seconds_of_marching_point(deck, structure, device, contacts);
  const Stopwatch clock;
  if (deck.run.mode == RunMode::kMobility) {
    mobility_point(deck, structure, deck.points.front());
    return clock.seconds();
  }
  solve_equilibrium(deck, structure, deck.points.front(), contacts.source, contacts.drain);
  return deck.run.mode == RunMode::kEquilibrium ? clock.seconds()
                                                : kEquilibriaOfDriftDiffusion * clock.seconds();
}

}  // namespace

double estimated_seconds(const Deck& deck, const Structure& structure, const Device& device) {
  const double point = seconds_of_point(deck, structure, device);
  double seconds = point;
  if (!deck.small_signal.frequencies_hz.empty()) {
    const bool tables = has_tables(deck, structure);
    const double base = tables || device.backend == Backend::kCpu
                            ? point
                            : seconds_of_point(deck, structure, find_device("cpu"));
    seconds += seconds_of_small_signal(deck, device, tables, base);
  }
  return static_cast<double>(deck.points.size()) * seconds;
}

}  // namespace quasi::mosfet
