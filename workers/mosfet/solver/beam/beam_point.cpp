#include "workers/mosfet/solver/beam/beam_point.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "workers/backend/anderson.hpp"
#include "workers/backend/error.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/mosfet/kernels/electrostatics/largest_magnitude.hpp"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/solver/beam/neutral_contacts.hpp"
#include "workers/mosfet/solver/beam/quasi_fermi.hpp"
#include "workers/mosfet/solver/sweep/point_limits.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"

namespace quasi::mosfet {
namespace {

constexpr int kMaxOuter = 80, kAndersonDepth = 8, kMaxSweeps = 400;
// Both leave errors of the fluxes that are small against run.steady_tol.
constexpr double kToleranceInElectrons = 1e-12, kToleranceInOccupation = 1e-11;
// At large V_DS rounding keeps residuals near 1e-9. The spread of the current and the energy defect
// of a point say what that means for its fluxes.
constexpr double kLargestResidual = 1e-7;
constexpr double kLargestMove_v = 0.05;
// Before the last step transport and field are solved to an error that is small against the step of
// V: the residual of transport to this share of the step over kT, at most kLoosest, and Newton's
// last step to a tenth of it.
constexpr double kShareOfStep = 1e-2, kLoosest = 1e-2, kNewtonShare = 0.1;
constexpr double kExpectedFirstStep_v = 0.1;
// Last Newton step of the first field. Under bias its error, of the square, is below the margins of
// the grid.
constexpr double kEquilibrium_v = 1e-11, kBiasedStart_v = 1e-4;

/// An outer iteration: transport at fixed levels, then a Gummel step.
struct OuterStep {
  Equilibrium next;                 ///< field after the Gummel step
  std::vector<double> from, image;  ///< unknowns before and after it
  double largest_v = 0;             ///< largest change of an unknown
};

/// State of one bias point between outer iterations.
class BeamIteration {
 public:
  BeamIteration(const BeamDevice& device, const BiasPoint& bias, BeamKernels& kernels)
      : device_(device), bias_(bias), kernels_(kernels) {
    const Structure& s = device.structure;
    for (int valley = 0; valley < s.n_valleys(); ++valley)
      for (int subband = 0; subband < s.subbands; ++subband)
        level_of_.push_back(s.family_of[static_cast<std::size_t>(valley)] * s.subbands + subband);
    boundary_ =
        potential_boundary(device.model, s, bias, device.contacts.source, device.contacts.drain);
    if (device.model.neutral_inflow) neutral_.emplace(device.model, s, device.contacts, bias);
  }

  /// Loads the problem at the levels of `field`. If the grid does not contain the levels, a new
  /// grid is chosen. @return the first ḡ of a solution
  std::vector<double> load(const Equilibrium& field) {
    const Structure& s = device_.structure;
    const BeamLevels levels = levels_of(field);
    const double lowest = *std::min_element(levels.edge_ev.begin(), levels.edge_ev.end());
    if (!has_grid_ || lowest < state.grid.h_low_ev(1)) choose_grid(levels);
    const std::size_t pairs =
        static_cast<std::size_t>(s.n_families() * s.subbands) * s.n_families() * s.subbands;
    BeamProblem problem{
        .grid = state.grid,
        .levels = levels,
        .processes = device_.problem.processes,
        .overlap = std::vector<double>(pairs * s.nx),
        .level_of = level_of_,
        .inflow = make_beam_inflow(state.grid, shifts_ev_[0], shifts_ev_[1] - bias_.vds_v)};
    overlaps(device_.problem, field.subbands.psi.data(), problem.overlap.data());
    problem.filling = filling(problem.rows());
    problem.roughness =
        device_.elastic.roughness(device_.problem, state.grid, levels, field.subbands.psi);
    problem.relaxation_fs = device_.elastic.relaxation_fs(state.grid, levels);
    kernels_.load(problem);
    return start_of(problem.inflow, problem.rows());
  }

  double tolerance() const {
    return kernels_.norm() == BeamNorm::kElectrons ? kToleranceInElectrons : kToleranceInOccupation;
  }
  /// Returns the tolerance of transport after an outer step of this size.
  double tolerance_after(double step_v) const {
    const double loose = std::min(kLoosest, kShareOfStep * step_v / device_.problem.kt_ev);
    return std::max(tolerance(), loose);
  }

  /// Solves transport at the levels of `field`.
  void transport(const Equilibrium& field, double tolerance) {
    const BeamMean found = kernels_.solve(tolerance, kMaxSweeps, load(field));
    if (!(found.converged || found.residual <= kLargestResidual))
      throw NotConverged(
          name_of(bias_) + ": GMRES did not converge; transport left a residual of " +
          shown(found.residual) + " after " + std::to_string(found.sweeps) + " line solves");
    state.mean = found.mean;
    state.sweeps += found.sweeps;
    ++state.outer;
    sheet_nm2_ = kernels_.sheet_density();
    if (!neutral_) return;
    const BeamLevels levels = levels_of(field);
    changes_ev_ = neutral_->changes_ev(state.grid, levels, sheet_nm2_);
    state.inflow_shift_ev = shifts_ev_;
    state.inflow_scale = neutral_->inflow_scales(levels, shifts_ev_);
  }

  /// Returns the quasi-Fermi level of every subband and column that holds the ϱ of the last
  /// transport solution at the levels of `field`, as BeamStart has them.
  std::vector<double> quasi_fermi_ev(const Equilibrium& field) const {
    const Structure& s = device_.structure;
    std::vector<double> fermi_ev(sheet_nm2_.size());
    for (std::size_t at = 0; at < fermi_ev.size(); ++at) {
      const std::size_t subband = at / s.nx;
      const auto level = static_cast<std::size_t>(level_of_[subband]) * s.nx + at % s.nx;
      fermi_ev[at] =
          field.subbands.energy_ev[level] +
          quasi_fermi_gap_ev(device_.model, s.valleys[subband / s.subbands], sheet_nm2_[at]);
    }
    return fermi_ev;
  }

  /// Returns the densities of these quasi-Fermi levels.
  SheetModel sheet_model(std::vector<double> fermi_ev) const {
    const Structure& s = device_.structure;
    return [this, &s, fermi_ev = std::move(fermi_ev)](int v, int p, int i, double level_ev) {
      const std::size_t at = (static_cast<std::size_t>(v) * s.subbands + p) * s.nx + i;
      return sheet_density(device_.model, s.valleys[static_cast<std::size_t>(v)],
                           fermi_ev[at] - level_ev);
    };
  }

  /// Returns the first field, of the predicted quasi-Fermi levels, or of the quasi-equilibrium of
  /// the bias if there are none.
  Equilibrium first_field(const BeamStart* start) {
    // Points without drain bias start in equilibrium and stay there. With a predicted start the
    // quasi-equilibrium still chooses the grid, on which the current depends: a point has one grid
    // for any start.
    const bool biased = bias_.vds_v != 0.0;
    Equilibrium field = solve_quasi_equilibrium(
        device_.model, device_.structure, bias_, device_.contacts.source, device_.contacts.drain,
        {.fermi_ev = mosfet::quasi_fermi_ev(device_.model, device_.structure, bias_.vds_v),
         .potential_v = start != nullptr ? start->potential_v : std::vector<double>{},
         .tolerance_v = biased ? kBiasedStart_v : kEquilibrium_v,
         .kept = biased ? &kept_ : nullptr});
    if (start == nullptr) return field;
    choose_grid(levels_of(field));
    constexpr double kTolerance_v = 1e-3;  // the first step is larger
    if (neutral_) shifts_ev_ = start->shifts_ev;
    return solve_field(device_.structure, boundary_, sheet_model(start->fermi_ev),
                       {.potential_v = start->potential_v,
                        .subbands = std::move(field.subbands),
                        .what = "first field at " + name_of(bias_),
                        .tolerance_v = kTolerance_v,
                        .kept = &kept_});
  }

  /// Returns what the next point of the chain starts from. @param field  the last field in which
  /// transport was solved
  BeamStart passed_on(const Equilibrium& field) const {
    return {.bias = bias_,
            .fermi_ev = quasi_fermi_ev(field),
            .potential_v = field.potential_v,
            .shifts_ev = shifts_ev_};
  }

  /// Solves transport at the levels of `field` to a tolerance, and takes a Gummel step from there.
  OuterStep outer_step(const Equilibrium& field, double tolerance, double expected_v) {
    const Stopwatch clock;
    transport(field, tolerance);
    state.transport_s += clock.seconds();
    OuterStep step{.next = {}, .from = {}, .image = {}};
    // Newton's error is quadratic in its last step, so that 1e-9 V or less is left in the end.
    const double tolerance_v =
        std::max(std::min(1e-5, 10.0 * device_.tolerance_v), kNewtonShare * expected_v);
    step.next = solve_field(device_.structure, boundary_, sheet_model(quasi_fermi_ev(field)),
                            {.potential_v = field.potential_v,
                             .subbands = field.subbands,
                             .knows_levels = true,
                             .what = "field at " + name_of(bias_),
                             .tolerance_v = tolerance_v,
                             .kept = &kept_,
                             .completes = false});
    step.from = unknowns(field.potential_v);
    step.image = unknowns(step.next.potential_v);
    const std::size_t nodes = step.next.potential_v.size();
    for (std::size_t at = nodes; at < step.image.size(); ++at)
      step.image[at] += changes_ev_[at - nodes];
    for (std::size_t k = 0; k < step.image.size(); ++k) {
      const double change = std::fabs(step.image[k] - step.from[k]);
      step.largest_v = std::isfinite(change) ? std::max(step.largest_v, change) : INFINITY;
    }
    return step;
  }

  /// Computes levels and densities after the last step from `field`.
  Equilibrium completed(const Equilibrium& field, Equilibrium next) const {
    complete_field(device_.structure, sheet_model(quasi_fermi_ev(field)), &next);
    return next;
  }

  /// Returns a potential, followed by the shifts of E_F of a neutral inflow.
  std::vector<double> unknowns(std::vector<double> potential_v) const {
    if (neutral_) potential_v.insert(potential_v.end(), shifts_ev_.begin(), shifts_ev_.end());
    return potential_v;
  }
  /// Sets the shifts of unknowns, and returns levels and wave functions at their potential, without
  /// densities. @param near  levels at a potential nearby
  Equilibrium levels_at(std::vector<double> unknowns, const Subbands& near) {
    Equilibrium field;
    if (neutral_) {
      std::copy(unknowns.end() - 2, unknowns.end(), shifts_ev_.begin());
      unknowns.resize(unknowns.size() - 2);
    }
    field.potential_v = std::move(unknowns);
    field.subbands = solve_subbands(device_.structure, field.potential_v, near);
    return field;
  }

  BeamSteadyState state;

 private:
  void choose_grid(const BeamLevels& levels) {
    const bool fermi = device_.model.statistics == StatisticsKind::kFermi;
    state.grid = device_.grid != nullptr
                     ? *device_.grid
                     : make_beam_grid(device_.mesh, levels, device_.structure.dx_nm,
                                      device_.problem.alpha_per_ev,
                                      {.kt_ev = device_.problem.kt_ev, .fermi = fermi});
    state.mean.clear();
    has_grid_ = true;
  }

  BeamLevels levels_of(const Equilibrium& field) const {
    const Structure& s = device_.structure;
    BeamLevels levels{.valleys = s.valleys, .subbands = s.subbands, .nx = s.nx};
    for (int v = 0; v < s.n_valleys(); ++v)
      for (int p = 0; p < s.subbands; ++p)
        for (int i = 0; i < s.nx; ++i) levels.edge_ev.push_back(field.energy(s, v, p, i));
    return levels;
  }

  // Returns f̄ of the last solution; before the first solution, of the source's equilibrium.
  std::vector<double> filling(std::size_t rows) const {
    const BeamGrid& grid = state.grid;
    if (!grid.shape.fermi || device_.problem.processes.empty()) return {};
    std::vector<double> out(rows);
    for (std::size_t cell = 0; cell < out.size(); ++cell) {
      const int k = static_cast<int>(cell % grid.n_h);
      out[cell] = state.mean.empty()
                      ? fermi_function((grid.shape.fermi_ev - grid.centre_ev(k)) / grid.shape.kt_ev)
                      : state.mean[cell] * grid.boltzmann(k);
    }
    return out;
  }

  // Returns ḡ of the last solution; before the first solution, of the source's equilibrium.
  std::vector<double> start_of(const BeamInflow& inflow, std::size_t rows) const {
    if (!state.mean.empty()) return state.mean;
    std::vector<double> mean(rows);
    for (std::size_t at = 0; at < mean.size(); ++at) mean[at] = inflow.source[at % state.grid.n_h];
    return mean;
  }

  const BeamDevice& device_;
  BiasPoint bias_;
  BeamKernels& kernels_;
  bool has_grid_ = false;
  std::vector<double> sheet_nm2_;  ///< ϱ of the last transport solution, one valley [n_states][nx]
  PotentialBoundary boundary_;
  KeptMatrix kept_;
  std::vector<int> level_of_;
  std::optional<NeutralContacts> neutral_;
  std::array<double, 2> shifts_ev_{}, changes_ev_{};  ///< of E_F at source and drain
};

std::string steps_text(const std::vector<double>& steps) {
  std::string text;
  for (std::size_t k = steps.size() > 8 ? steps.size() - 8 : 0; k < steps.size(); ++k)
    text += (text.empty() ? "" : ", ") + shown(steps[k]);
  return text;
}

}  // namespace

BeamSteadyState solve_beam_point(const BeamDevice& device, const BiasPoint& bias,
                                 BeamKernels& kernels, Progress& progress, const BeamStart* start) {
  const Stopwatch clock;
  BeamIteration iteration(device, bias, kernels);
  Equilibrium field = iteration.first_field(start);
  AndersonMixing mixing(kAndersonDepth);
  std::vector<double> steps_v;
  // Blocking is linearised around the last occupations, so that all steps are accurate with it.
  const bool loosens = device.model.statistics == StatisticsKind::kMaxwell;
  double expected_v = loosens ? kExpectedFirstStep_v : 0.0;
  for (;;) {
    progress.throw_if_cancelled();
    const double tolerance = iteration.tolerance_after(expected_v);
    OuterStep step = iteration.outer_step(field, tolerance, expected_v);
    // What looks like the end must hold with accurate transport, too.
    if (step.largest_v <= device.tolerance_v && tolerance > iteration.tolerance())
      step = iteration.outer_step(field, iteration.tolerance(), 0.0);
    steps_v.push_back(step.largest_v);
    expected_v = loosens ? step.largest_v : 0.0;
    if (!std::isfinite(step.largest_v))
      throw NotConverged(name_of(bias) +
                         ": the potential became infinite or undefined; refine the mesh");
    if (step.largest_v <= device.tolerance_v) {
      BeamSteadyState state = std::move(iteration.state);
      state.passed_on = iteration.passed_on(field);
      state.fluxes = kernels.fluxes();
      state.field = iteration.completed(field, std::move(step.next));
      state.total_s = clock.seconds();
      state.last_step_v = step.largest_v;
      check_inflow_scale(bias, state.inflow_scale, "");
      return state;
    }
    if (iteration.state.outer >= kMaxOuter)
      throw NotConverged(name_of(bias) + ": the outer iteration did not converge; |δV| in V was " +
                         steps_text(steps_v) + " in " + std::to_string(kMaxOuter) + " outer steps");
    std::vector<double> mixed = mixing.next(step.from, step.image);
    double largest = 0.0;
    for (std::size_t k = 0; k < mixed.size(); ++k)
      largest = std::max(largest, std::fabs(mixed[k] - step.from[k]));
    // The mixed step is too large, so a shortened Gummel step replaces it.
    if (largest > kLargestMove_v) {
      mixing.forget();
      const double share = std::min(1.0, kLargestMove_v / step.largest_v);
      for (std::size_t k = 0; k < mixed.size(); ++k)
        mixed[k] = step.from[k] + share * (step.image[k] - step.from[k]);
    }
    field = iteration.levels_at(mixed, step.next.subbands);
  }
}

BeamSteadyState solve_through_lower_bias(const BeamDevice& device, const BiasPoint& bias,
                                         BeamKernels& kernels, Progress& progress) {
  constexpr int kSteps = 4;
  std::vector<BeamStart> before;
  for (int step = 1;; ++step) {
    const BiasPoint lower{bias.vgs_v, bias.vds_v * step / kSteps};
    const std::optional<BeamStart> start = predicted_start(before, lower);
    BeamSteadyState state =
        solve_beam_point(device, lower, kernels, progress, start ? &*start : nullptr);
    if (step == kSteps) return state;
    before.push_back(std::move(state.passed_on));
    if (before.size() > 2) before.erase(before.begin());
  }
}

BeamStepSeconds time_beam_step(const BeamDevice& device, const BiasPoint& bias,
                               BeamKernels& kernels) {
  BeamStepSeconds seconds;
  Stopwatch clock;
  BeamIteration iteration(device, bias, kernels);
  const Equilibrium field = iteration.first_field(nullptr);
  seconds.start = clock.seconds();
  // A Gummel step begins near its solution and needs about half of the steps.
  seconds.field = 0.5 * seconds.start;
  clock = Stopwatch();
  const std::vector<double> start = iteration.load(field);
  seconds.preparation = clock.seconds();
  clock = Stopwatch();
  const BeamMean found = kernels.solve(iteration.tolerance(), 1, start);
  seconds.line_solve = clock.seconds() / std::max(1, found.sweeps);
  return seconds;
}

}  // namespace quasi::mosfet
