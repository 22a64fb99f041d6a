#include "workers/mosfet/solver/sweep/point_start.hpp"

#include <optional>

#include "workers/backend/error.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/kernels/electrostatics/subbands.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"
#include "workers/mosfet/solver/transport/refine.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

/// Progress of a run on a coarser mesh that only provides a start. It drops metrics, log and
/// checkpoints.
class StartProgress : public Progress {
 public:
  explicit StartProgress(Progress& whole) : whole_(whole) {}
  void metric(std::string_view, double) override {}
  void log(std::string_view) override {}
  void checkpoint_ready(const std::string&, std::int64_t) override {}
  bool cancelled() const override { return whole_.cancelled(); }
  bool checkpoint_wanted() override { return false; }

 protected:
  void on_report(std::string_view, std::int64_t done, std::int64_t total) override {
    whole_.report("coarse start", done, total);
  }

 private:
  Progress& whole_;
};

// Returns the steady state of this bias on a coarser mesh, interpolated to this mesh.
std::optional<PointState> coarse_steady_state(const SweepState& sweep, const Device& device,
                                              const BiasPoint& bias,
                                              const PointBoundary& boundary) {
  std::optional<Deck> coarse = coarser_deck(sweep.deck);
  if (!coarse) return {};
  coarse->points = {bias};
  std::optional<PointState> refined;
  const Structure structure = make_structure(*coarse);
  const TransportProblem problem = make_transport_problem(*coarse, structure);
  SweepOptions options{
      .devices = {device}, .checkpoint_directory = {}, .output_directory = {}, .lanes = 1};
  options.on_state = [&](int, const PointState& state, double scale) {
    refined = refine_state(problem, state, scale, sweep.problem, boundary.pdf_scale);
  };
  StartProgress progress(sweep.progress);
  // The deck's mesh may converge although the coarser mesh does not.
  const auto without = [&](const Error& failure) {
    sweep.progress.log(name_of(bias) + ": no coarse start (" + failure.what() +
                       "); from the quasi-equilibrium");
    return std::optional<PointState>{};
  };
  try {
    run_sweep(*coarse, options, progress);
  } catch (const NotConverged& failure) {
    return without(failure);
  } catch (const InvalidInput& failure) {
    return without(failure);
  }
  for (std::size_t k = 0; k < boundary.fixed_v.size(); ++k)
    if (sweep.problem.fixed[k]) refined->potential_v[k] = boundary.fixed_v[k];
  return refined;
}

// Returns V plus the solution of Laplace's equation for the change of the given potentials.
std::vector<double> shifted_potential(const TransportProblem& problem,
                                      const std::vector<double>& before,
                                      const PointBoundary& boundary) {
  const Structure& s = problem.structure;
  std::vector<double> change(before.size(), 0.0);
  for (std::size_t k = 0; k < before.size(); ++k)
    if (problem.fixed[k]) change[k] = boundary.fixed_v[k] - before[k];
  const PotentialBoundary edges{problem.fixed, change};
  std::vector<double> step = poisson_residual(s, edges, change, s.doping_nm3);
  ColumnMatrix laplace(s, edges,
                       std::vector<double>(static_cast<std::size_t>(s.nx) * s.nz * s.nz, 0.0));
  laplace.factorise();
  laplace.solve(step.data());
  std::vector<double> after(before);
  for (std::size_t k = 0; k < before.size(); ++k) after[k] += change[k] - step[k];
  return after;
}

}  // namespace

PointState make_point_start(const SweepState& sweep, const Device& device, int point,
                            const PointBoundary& boundary, const PointState* before) {
  const Deck& deck = sweep.deck;
  if (before == nullptr) {
    if (deck.run.coarse_start)
      if (auto coarse = coarse_steady_state(sweep, device,
                                            deck.points[static_cast<std::size_t>(point)], boundary))
        return std::move(*coarse);
    const BiasPoint bias = sweep.bias_at(point, 0.0);
    const Equilibrium equilibrium =
        solve_equilibrium(deck, sweep.problem.structure, bias, sweep.source, sweep.drain);
    return make_start(deck, sweep.problem, bias, boundary, {sweep.source, sweep.drain},
                      equilibrium);
  }
  PointState next;
  next.pdf = before->pdf;
  next.potential_v = shifted_potential(sweep.problem, before->potential_v, boundary);
  Subbands levels = solve_subbands(sweep.problem.structure, next.potential_v);
  next.energy_ev = std::move(levels.energy_ev);
  next.psi = std::move(levels.psi);
  return next;
}

}  // namespace quasi::mosfet
