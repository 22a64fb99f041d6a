#include "workers/gw/solver/calculation/convergence_study.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "workers/backend/error.hpp"
#include "workers/backend/study/settings_ladder.hpp"
#include "workers/backend/study/study_runner.hpp"
#include "workers/gw/solver/screening/sub_grid.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

/// Shares of the deck's own settings that are studied if the deck names no settings. They are low,
/// because the errors of bands and plane waves follow their asymptotic laws already there.
constexpr double kBandShares[] = {0.5, 0.7};
constexpr double kCutoffShares[] = {0.6, 0.8};

bool same_state(const Quasiparticle& a, const Quasiparticle& b) {
  const Vec3 d = a.k - b.k;
  return a.band == b.band && a.spin == b.spin && dot(d, d) < 1e-10;
}

void require_studyable(const Deck& deck) {
  const auto refuse = [](const std::string& key, const std::string& why) {
    throw InvalidInput("a convergence study (--converge) " + why + ": leave out " + key);
  };
  if (!deck.epsilon.stored.gamma.empty())
    refuse("epsilon.eps0mat",
           "calculates ε⁻¹ again with other settings, which stored matrices do not allow");
  if (deck.stop_after_epsilon) refuse("stop_after = \"epsilon\"", "is of quasiparticle energies");
  if (deck.sigma.outer.kind != OuterLoop::kNone)
    refuse("sigma.outer_loop",
           "is of one turn; its energies are known better than those of a loop");
  if (!deck.epsilon.qpoints.empty())
    refuse("the list of q-points", "needs other q-points on coarser grids");
}

/// Solves the deck with other settings. It borrows the mean field and gives it back.
class Solver {
 public:
  Solver(const Workplace& place, Progress& progress)
      : place_(place),
        progress_(progress),
        runner_(place.checkpoint_directory, place.team.ranks(), progress) {}

  /// @param name  of the calculation, for the log
  std::vector<Quasiparticle> solve(const std::string& name, const Deck& deck, MeanField& field) {
    Workplace place = place_;
    place.checkpoint_directory = runner_.begin(name);
    Calculation run = solve_mean_field(deck, std::move(field), place, progress_);
    field = std::move(run.field);
    return std::move(run.quasiparticles);
  }

 private:
  Workplace place_;
  Progress& progress_;
  StudyRunner runner_;
};

/// Returns the limit of one quantity along an axis. Under two laws it is the one farther from the
/// deck's own value, its error included.
ConvergenceLimit limit_of(const StudyAxis& axis, const std::vector<double>& y) {
  const ConvergenceLimit first = limit_of_finest(axis.x, y);
  if (axis.other_x.empty()) return first;
  const ConvergenceLimit second = limit_of_finest(axis.other_x, y);
  const auto reach = [&](const ConvergenceLimit& l) {
    return std::abs(l.value - y.back()) + l.error;
  };
  return reach(second) > reach(first) ? second : first;
}

/// Fills an axis with the energies and limits of the states that all solutions hold.
/// @param solutions  of the settings; the last one is the deck's own
/// @param field      mean field of the deck
void finish(StudyAxis& axis, const std::vector<std::vector<Quasiparticle>>& solutions,
            const MeanField& field) {
  const std::vector<Quasiparticle>& own = solutions.back();
  std::vector<std::vector<const Quasiparticle*>> found(solutions.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    std::vector<const Quasiparticle*> same;
    for (const auto& list : solutions)
      for (const Quasiparticle& qp : list)
        if (same_state(qp, own[i])) {
          same.push_back(&qp);
          break;
        }
    if (same.size() < solutions.size()) continue;
    axis.states.push_back(i);
    for (std::size_t s = 0; s < solutions.size(); ++s) found[s].push_back(same[s]);
  }
  for (const auto& list : found) {
    axis.energy_ev.emplace_back();
    std::vector<Quasiparticle> states;
    for (std::size_t j = 0; j < list.size(); ++j) {
      axis.energy_ev.back().push_back(energy_ev(*list[j]));
      // A coarser grid numbers its k-points otherwise; the gap follows those of the deck.
      states.push_back(own[axis.states[j]]);
      states.back().qp1_ev = list[j]->qp1_ev;
    }
    if (const auto gap = gaps(field, states).fundamental_ev) axis.gap_ev.push_back(*gap);
  }
  const bool both_sides = !found.front().empty() && axis.gap_ev.size() == found.size();
  if (!both_sides) axis.gap_ev.clear();
  for (std::size_t j = 0; j < axis.states.size(); ++j) {
    std::vector<double> y;
    for (const auto& row : axis.energy_ev) y.push_back(row[j]);
    axis.limit.push_back(limit_of(axis, y));
  }
  if (both_sides) axis.gap_limit = limit_of(axis, axis.gap_ev);
}

/// Returns the settings of one axis below the deck's own.
std::vector<double> axis_settings(const std::vector<double>& listed, double own,
                                  const double (&shares)[2], const std::string& key) {
  return settings_below(listed, own, shares, 1, "converge." + key);
}

double number_of_points(const IVec3& grid) { return 1.0 * grid[0] * grid[1] * grid[2]; }

/// Returns 1/n for the mean number n of points along the periodic axes, those with more than one
/// point in the finest grid.
double inverse_edge(const IVec3& grid, const IVec3& finest) {
  const auto axes = std::count_if(finest.begin(), finest.end(), [](int n) { return n > 1; });
  return std::pow(number_of_points(grid), -1.0 / static_cast<double>(axes));
}

/// Returns the deck with every other key as the calculation has used it.
Deck resolved_deck(const Deck& deck, const Plan& plan) {
  Deck base = deck;
  base.study.wanted = false;
  base.study.within = true;
  base.epsilon.write = false;
  base.epsilon.bands = plan.epsilon.bands;
  base.sigma.bands = plan.sigma.bands;
  base.sigma.bare_cutoff_ry = plan.sigma.bare_cutoff_ry;
  base.sigma.screened_cutoff_ry = plan.sigma.screened_cutoff_ry;
  base.sigma.band_min = plan.sigma.band_min;
  base.sigma.band_max = plan.sigma.band_max;
  base.sigma.path.corners.clear();
  return base;
}

/// Studies the axes of a deck one after the other.
class AxisStudy {
 public:
  AxisStudy(const Deck& deck, const Workplace& place, Calculation& own, Progress& progress)
      : own_(own),
        wanted_(deck.study),
        plan_(own.plan),
        base_(resolved_deck(deck, own.plan)),
        progress_(progress),
        solver_(place, progress) {
    study_.quasiparticle = own.quasiparticles.front().qp1_ev.has_value();
  }

  ConvergenceStudy solve() {
    study_bands();
    study_cutoff("cutoff_ry", wanted_.epsilon_cutoffs_ry, plan_.epsilon.epsilon_cutoff_ry,
                 [&](Deck& lower, double cutoff_ry) {
                   lower.epsilon.epsilon_cutoff_ry = cutoff_ry;
                   lower.sigma.screened_cutoff_ry =
                       std::min(cutoff_ry, plan_.sigma.screened_cutoff_ry);
                 });
    study_cutoff("bare_cutoff_ry", wanted_.bare_cutoffs_ry, plan_.sigma.bare_cutoff_ry,
                 [](Deck& lower, double cutoff_ry) { lower.sigma.bare_cutoff_ry = cutoff_ry; });
    study_k_grids();
    add_up_errors();
    return std::move(study_);
  }

 private:
  using Solutions = std::vector<std::vector<Quasiparticle>>;

  /// Completes an axis with the deck's own solution.
  void add(StudyAxis axis, Solutions solutions) {
    solutions.push_back(own_.quasiparticles);
    finish(axis, solutions, own_.field);
    study_.axes.push_back(std::move(axis));
  }
  void study_bands();
  void study_cutoff(const std::string& name, const std::vector<double>& listed, double own_ry,
                    const std::function<void(Deck&, double)>& set);
  void study_k_grids();
  std::vector<IVec3> ascending_grids() const;
  std::vector<Vec3> kpoints_on(const MeanField& coarse) const;
  void add_up_errors();

  Calculation& own_;
  const StudyRequest& wanted_;
  const Plan plan_;
  const Deck base_;
  Progress& progress_;
  Solver solver_;
  ConvergenceStudy study_;
};

/// Varies the bands of Σ by counts that cut no multiplet. The bands of ε follow at the nearest such
/// count to the same share.
void AxisStudy::study_bands() {
  const int n_occupied = own_.field.n_occupied;
  const std::vector<int> whole =
      whole_band_counts(own_.field.waves, n_occupied + 1, plan_.sigma.bands - 1);
  const std::vector<int> whole_epsilon =
      whole_band_counts(own_.field.waves, n_occupied + 1, plan_.epsilon.bands);
  if (whole.empty() || whole_epsilon.empty()) {
    progress_.log(
        "converge: every smaller number of bands cuts a multiplet; the error of sigma.bands is not "
        "studied");
    return;
  }
  const auto nearest = [](const std::vector<int>& counts, double wanted) {
    return *std::min_element(counts.begin(), counts.end(), [&](int a, int b) {
      return std::abs(a - wanted) < std::abs(b - wanted);
    });
  };
  StudyAxis axis{.name = "bands"};
  Solutions solutions;
  for (const double wanted :
       axis_settings(wanted_.bands, plan_.sigma.bands, kBandShares, "bands")) {
    const int n = nearest(whole, wanted);
    if (!axis.setting.empty() && n <= axis.setting.back()) continue;
    Deck fewer = base_;
    fewer.sigma.bands = n;
    fewer.epsilon.bands = nearest(whole_epsilon, 1.0 * n * plan_.epsilon.bands / plan_.sigma.bands);
    solutions.push_back(solver_.solve("bands " + std::to_string(n), fewer, own_.field));
    axis.setting.push_back(n);
  }
  axis.setting.push_back(plan_.sigma.bands);
  for (const double n : axis.setting) axis.x.push_back(1.0 / n);
  add(std::move(axis), std::move(solutions));
}

/// @param listed  cut-offs that the deck names
/// @param set     puts a cut-off into a deck
void AxisStudy::study_cutoff(const std::string& name, const std::vector<double>& listed,
                             double own_ry, const std::function<void(Deck&, double)>& set) {
  StudyAxis axis{.name = name};
  Solutions solutions;
  for (const double cutoff_ry : axis_settings(listed, own_ry, kCutoffShares, name)) {
    Deck lower = base_;
    set(lower, cutoff_ry);
    solutions.push_back(solver_.solve(name + " " + shown(cutoff_ry), lower, own_.field));
    axis.setting.push_back(cutoff_ry);
  }
  axis.setting.push_back(own_ry);
  for (const double cutoff_ry : axis.setting) axis.x.push_back(std::pow(cutoff_ry, -1.5));
  add(std::move(axis), std::move(solutions));
}

/// Returns the coarser grids in ascending order and the deck's own at the end; empty if there is no
/// coarser one. @throws InvalidInput if two grids have the same number of points
std::vector<IVec3> AxisStudy::ascending_grids() const {
  std::vector<IVec3> grids = wanted_.k_grids;
  if (grids.empty()) grids = coarser_grids(own_.field.waves.k_grid);
  if (grids.empty()) return grids;
  std::sort(grids.begin(), grids.end(), [](const IVec3& a, const IVec3& b) {
    return number_of_points(a) < number_of_points(b);
  });
  grids.push_back(own_.field.waves.k_grid);
  return grids;
}

/// Returns the k-points of the coarse grid at which the job has states.
std::vector<Vec3> AxisStudy::kpoints_on(const MeanField& coarse) const {
  std::vector<Vec3> kpoints;
  for (const Vec3& k : coarse.waves.k)
    for (const Quasiparticle& qp : own_.quasiparticles) {
      const Vec3 d = qp.k - k;
      if (dot(d, d) > 1e-10) continue;
      kpoints.push_back(k);
      break;
    }
  return kpoints;
}

void AxisStudy::study_k_grids() {
  const std::vector<IVec3> grids = ascending_grids();
  if (grids.empty()) {
    progress_.log("converge: the k-grid has no coarser one inside it; its error is not studied");
    return;
  }
  StudyAxis axis{.name = "k_grid"};
  Solutions solutions;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const double n_points = number_of_points(grids[i]);
    if (i > 0 && n_points <= number_of_points(grids[i - 1]))
      throw InvalidInput(
          "converge.k_grids must hold different grids coarser than that of the wavefunctions");
    axis.setting.push_back(n_points);
    axis.x.push_back(1.0 / n_points);
    axis.other_x.push_back(inverse_edge(grids[i], grids.back()));
    if (i + 1 == grids.size()) break;
    Deck coarser = base_;
    MeanField coarse = on_sub_grid(own_.field, grids[i]);
    coarser.sigma.kpoints = kpoints_on(coarse);
    if (coarser.sigma.kpoints.empty()) {
      progress_.log(
          "converge: none of sigma.kpoints lies on the coarser k-grids; the k-grid is not "
          "studied");
      return;
    }
    solutions.push_back(solver_.solve("k_grid of " + shown(n_points) + " points", coarser, coarse));
  }
  axis.grids = grids;
  add(std::move(axis), std::move(solutions));
}

/// Adds the limits and errors of all axes for every state of the job.
void AxisStudy::add_up_errors() {
  study_.added_ev.assign(own_.quasiparticles.size(), 0.0);
  study_.error_ev = study_.added_ev;
  for (const StudyAxis& axis : study_.axes) {
    // The error of a state off the coarser grids is the largest error of the states on them.
    double worst = 0.0;
    for (std::size_t j = 0; j < axis.states.size(); ++j)
      worst = std::max(
          worst, std::abs(axis.limit[j].value - axis.energy_ev.back()[j]) + axis.limit[j].error);
    std::vector<char> seen(own_.quasiparticles.size(), 0);
    for (std::size_t j = 0; j < axis.states.size(); ++j) {
      seen[axis.states[j]] = 1;
      study_.added_ev[axis.states[j]] += axis.limit[j].value - axis.energy_ev.back()[j];
      study_.error_ev[axis.states[j]] += axis.limit[j].error;
    }
    for (std::size_t i = 0; i < seen.size(); ++i) study_.error_ev[i] += seen[i] ? 0.0 : worst;
  }
}

}  // namespace

ConvergenceStudy study_convergence(const Deck& deck, const Workplace& place, Calculation& own,
                                   Progress& progress) {
  require_studyable(deck);
  if (own.quasiparticles.empty())
    throw InvalidInput(
        "a convergence study (--converge) needs at least one state in sigma.band_min … band_max");
  return AxisStudy(deck, place, own, progress).solve();
}

}  // namespace quasi::gw
