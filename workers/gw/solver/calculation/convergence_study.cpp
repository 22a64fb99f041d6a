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

/// Shares of the deck's own settings, where it names no others. Bands and plane waves reach far
/// below the cell's own numbers before their error is not that of the asymptotic law.
constexpr double kBandShares[] = {0.5, 0.7};
constexpr double kCutoffShares[] = {0.6, 0.8};

double energy_of(const Quasiparticle& qp) { return qp.qp1_ev ? *qp.qp1_ev : qp.sigma_ev; }

bool same_state(const Quasiparticle& a, const Quasiparticle& b) {
  const Vec3 d = a.k - b.k;
  return a.band == b.band && a.spin == b.spin && dot(d, d) < 1e-10;
}

void refuse_what_cannot_be_studied(const Deck& deck) {
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

/// Solves the deck with other settings; the mean field goes in and comes back.
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

/// Solutions of one axis, the deck's own last, made into energies of the states that all of them
/// hold.
void finish(StudyAxis& axis, const std::vector<std::vector<Quasiparticle>>& solutions,
            int n_occupied) {
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
  const bool with_gap = own.front().qp1_ev.has_value();
  bool both_sides = with_gap;
  for (const auto& list : found) {
    axis.energy_ev.emplace_back();
    double top = -1e300, bottom = 1e300;
    for (const Quasiparticle* qp : list) {
      axis.energy_ev.back().push_back(energy_of(*qp));
      (qp->band <= n_occupied ? top : bottom) =
          qp->band <= n_occupied ? std::max(top, energy_of(*qp)) : std::min(bottom, energy_of(*qp));
    }
    both_sides = both_sides && top > -1e299 && bottom < 1e299;
    if (both_sides) axis.gap_ev.push_back(bottom - top);
  }
  if (!both_sides) axis.gap_ev.clear();
  for (std::size_t j = 0; j < axis.states.size(); ++j) {
    std::vector<double> y;
    for (const auto& row : axis.energy_ev) y.push_back(row[j]);
    axis.limit.push_back(limit_of_finest(axis.x, y));
  }
  if (both_sides) axis.gap_limit = limit_of_finest(axis.x, axis.gap_ev);
}

/// The settings of one axis below the deck's own.
std::vector<double> axis_settings(const std::vector<double>& listed, double own,
                                  const double (&shares)[2], const std::string& key) {
  return settings_below(listed, own, shares, 1, "converge." + key);
}

}  // namespace

ConvergenceStudy study_convergence(const Deck& deck, const Workplace& place, Calculation& own,
                                   Progress& progress) {
  refuse_what_cannot_be_studied(deck);
  if (own.quasiparticles.empty())
    throw InvalidInput(
        "a convergence study (--converge) needs at least one state in sigma.band_min … band_max");
  ConvergenceStudy study{.quasiparticle = own.quasiparticles.front().qp1_ev.has_value(),
                         .axes = {},
                         .added_ev = {},
                         .error_ev = {}};
  Solver solver(place, progress);
  const int n_occupied = own.field.n_occupied;
  const Plan plan = own.plan;
  Deck base = deck;  // every other key as the calculation has used it
  base.study.wanted = false;
  base.epsilon.write = false;
  base.epsilon.bands = plan.epsilon.bands;
  base.sigma.bands = plan.sigma.bands;
  base.sigma.bare_cutoff_ry = plan.sigma.bare_cutoff_ry;
  base.sigma.screened_cutoff_ry = plan.sigma.screened_cutoff_ry;
  base.sigma.band_min = plan.sigma.band_min;
  base.sigma.band_max = plan.sigma.band_max;
  base.sigma.path.corners.clear();
  const auto add = [&](StudyAxis axis, std::vector<std::vector<Quasiparticle>> solutions) {
    solutions.push_back(own.quasiparticles);
    finish(axis, solutions, n_occupied);
    study.axes.push_back(std::move(axis));
  };
  // Counts that cut no multiplet, those of ε as near as can be to the same share.
  const std::vector<int> whole =
      whole_band_counts(own.field.waves, n_occupied + 1, plan.sigma.bands - 1);
  const std::vector<int> whole_epsilon =
      whole_band_counts(own.field.waves, n_occupied + 1, plan.epsilon.bands);
  const auto nearest = [](const std::vector<int>& counts, double wanted) {
    return *std::min_element(counts.begin(), counts.end(), [&](int a, int b) {
      return std::abs(a - wanted) < std::abs(b - wanted);
    });
  };
  if (!whole.empty() && !whole_epsilon.empty()) {
    StudyAxis axis{.name = "bands"};
    std::vector<std::vector<Quasiparticle>> solutions;
    for (const double wanted :
         axis_settings(deck.study.bands, plan.sigma.bands, kBandShares, "bands")) {
      const int n = nearest(whole, wanted);
      if (!axis.setting.empty() && n <= axis.setting.back()) continue;
      Deck fewer = base;
      fewer.sigma.bands = n;
      fewer.epsilon.bands = nearest(whole_epsilon, 1.0 * n * plan.epsilon.bands / plan.sigma.bands);
      solutions.push_back(solver.solve("bands " + std::to_string(n), fewer, own.field));
      axis.setting.push_back(n);
    }
    axis.setting.push_back(plan.sigma.bands);
    for (const double n : axis.setting) axis.x.push_back(1.0 / n);
    add(std::move(axis), std::move(solutions));
  } else {
    progress.log(
        "converge: every smaller number of bands cuts a multiplet; the error of sigma.bands is not "
        "studied");
  }
  const auto cutoff_axis = [&](const std::string& name, const std::vector<double>& listed,
                               double own_ry, const std::function<void(Deck&, double)>& set) {
    StudyAxis axis{.name = name};
    std::vector<std::vector<Quasiparticle>> solutions;
    for (const double cutoff_ry : axis_settings(listed, own_ry, kCutoffShares, name)) {
      Deck lower = base;
      set(lower, cutoff_ry);
      solutions.push_back(solver.solve(name + " " + shown(cutoff_ry), lower, own.field));
      axis.setting.push_back(cutoff_ry);
    }
    axis.setting.push_back(own_ry);
    for (const double cutoff_ry : axis.setting) axis.x.push_back(std::pow(cutoff_ry, -1.5));
    add(std::move(axis), std::move(solutions));
  };
  cutoff_axis("cutoff_ry", deck.study.epsilon_cutoffs_ry, plan.epsilon.epsilon_cutoff_ry,
              [&](Deck& lower, double cutoff_ry) {
                lower.epsilon.epsilon_cutoff_ry = cutoff_ry;
                lower.sigma.screened_cutoff_ry = std::min(cutoff_ry, plan.sigma.screened_cutoff_ry);
              });
  cutoff_axis("bare_cutoff_ry", deck.study.bare_cutoffs_ry, plan.sigma.bare_cutoff_ry,
              [](Deck& lower, double cutoff_ry) { lower.sigma.bare_cutoff_ry = cutoff_ry; });

  std::vector<IVec3> grids = deck.study.k_grids;
  if (grids.empty()) grids = coarser_grids(own.field.waves.k_grid);
  if (!grids.empty()) {
    const auto points = [](const IVec3& grid) { return 1.0 * grid[0] * grid[1] * grid[2]; };
    std::sort(grids.begin(), grids.end(),
              [&](const IVec3& a, const IVec3& b) { return points(a) < points(b); });
    grids.push_back(own.field.waves.k_grid);
    StudyAxis axis{.name = "k_grid"};
    std::vector<std::vector<Quasiparticle>> solutions;
    for (std::size_t i = 0; i < grids.size(); ++i) {
      if (i > 0 && points(grids[i]) <= points(grids[i - 1]))
        throw InvalidInput(
            "converge.k_grids must hold different grids coarser than that of the wavefunctions");
      axis.setting.push_back(points(grids[i]));
      axis.x.push_back(1.0 / points(grids[i]));
      if (i + 1 == grids.size()) break;
      Deck coarser = base;
      MeanField coarse = on_sub_grid(own.field, grids[i]);
      coarser.sigma.kpoints.clear();
      for (const Vec3& k : coarse.waves.k)
        for (const Quasiparticle& qp : own.quasiparticles) {
          const Vec3 d = qp.k - k;
          if (dot(d, d) > 1e-10) continue;
          coarser.sigma.kpoints.push_back(k);
          break;
        }
      if (coarser.sigma.kpoints.empty()) {
        progress.log(
            "converge: none of sigma.kpoints lies on the coarser k-grids; the k-grid is not "
            "studied");
        axis.setting.clear();
        break;
      }
      solutions.push_back(
          solver.solve("k_grid of " + shown(points(grids[i])) + " points", coarser, coarse));
    }
    axis.grids = grids;
    if (!axis.setting.empty()) add(std::move(axis), std::move(solutions));
  } else {
    progress.log("converge: the k-grid has no coarser one inside it; its error is not studied");
  }

  study.added_ev.assign(own.quasiparticles.size(), 0.0);
  study.error_ev = study.added_ev;
  for (const StudyAxis& axis : study.axes) {
    // States off the coarser grids get what the worst of those on them shows, as an error.
    double worst = 0.0;
    for (std::size_t j = 0; j < axis.states.size(); ++j)
      worst = std::max(
          worst, std::abs(axis.limit[j].value - axis.energy_ev.back()[j]) + axis.limit[j].error);
    std::vector<char> seen(own.quasiparticles.size(), 0);
    for (std::size_t j = 0; j < axis.states.size(); ++j) {
      seen[axis.states[j]] = 1;
      study.added_ev[axis.states[j]] += axis.limit[j].value - axis.energy_ev.back()[j];
      study.error_ev[axis.states[j]] += axis.limit[j].error;
    }
    for (std::size_t i = 0; i < seen.size(); ++i) study.error_ev[i] += seen[i] ? 0.0 : worst;
  }
  return study;
}

void write_study(const Calculation& own, const ConvergenceStudy& study, H5Writer& out) {
  const auto n_own = static_cast<std::int64_t>(own.quasiparticles.size());
  out.write("/convergence/added", study.added_ev, {n_own}, "eV");
  out.write("/convergence/error", study.error_ev, {n_own}, "eV");
  for (const StudyAxis& axis : study.axes) {
    const std::string at = "/convergence/" + axis.name + "/";
    const auto n = static_cast<std::int64_t>(axis.setting.size()),
               n_states = static_cast<std::int64_t>(axis.states.size());
    std::vector<double> energies, limit, error;
    for (const auto& row : axis.energy_ev) energies.insert(energies.end(), row.begin(), row.end());
    for (const ConvergenceLimit& l : axis.limit) {
      limit.push_back(l.value);
      error.push_back(l.error);
    }
    out.write(at + "setting", axis.setting, {n}, axis.name.ends_with("_ry") ? "Ry" : "1");
    out.write(at + "state", std::vector<std::int64_t>(axis.states.begin(), axis.states.end()),
              {n_states}, "1");
    out.write(at + (study.quasiparticle ? "qp1" : "sigma"), energies, {n, n_states}, "eV");
    out.write(at + "limit", limit, {n_states}, "eV");
    out.write(at + "limit_error", error, {n_states}, "eV");
  }
}

nlohmann::json summarise_study(const Calculation& own, const ConvergenceStudy& study) {
  nlohmann::json axes = nlohmann::json::array();
  for (const StudyAxis& axis : study.axes) {
    nlohmann::json one{
        {"name", axis.name}, {"setting", axis.setting}, {"energy_ev", axis.energy_ev}};
    if (!axis.grids.empty()) one["k_grids"] = axis.grids;
    nlohmann::json states = nlohmann::json::array(), limit = nlohmann::json::array(),
                   error = nlohmann::json::array();
    double worst = 0.0;
    for (std::size_t j = 0; j < axis.states.size(); ++j) {
      const Quasiparticle& qp = own.quasiparticles[axis.states[j]];
      states.push_back({{"k", qp.k}, {"band", qp.band}, {"spin", qp.spin}});
      limit.push_back(axis.limit[j].value);
      error.push_back(axis.limit[j].error);
      worst = std::max(
          worst, std::abs(axis.limit[j].value - axis.energy_ev.back()[j]) + axis.limit[j].error);
    }
    one["states"] = std::move(states);
    one["limit_ev"] = std::move(limit);
    one["error_ev"] = std::move(error);
    one["largest_error_of_deck_ev"] = worst;
    one["gap_ev"] = axis.gap_ev.empty() ? nlohmann::json(nullptr) : nlohmann::json(axis.gap_ev);
    one["gap_limit_ev"] =
        axis.gap_ev.empty() ? nlohmann::json(nullptr) : nlohmann::json(axis.gap_limit.value);
    one["gap_error_ev"] =
        axis.gap_ev.empty() ? nlohmann::json(nullptr) : nlohmann::json(axis.gap_limit.error);
    axes.push_back(std::move(one));
  }
  return {{"energy", study.quasiparticle ? "e_qp1_ev" : "sigma_ev"},
          {"axes", axes},
          {"added_ev", study.added_ev},
          {"error_ev", study.error_ev}};
}

std::string study_table(const nlohmann::json& convergence) {
  std::string text =
      "\nconvergence (one parameter at a time; limit ± what the sequence implies, eV)\n";
  char line[256];
  for (const auto& axis : convergence.at("axes")) {
    const auto& settings = axis.at("setting");
    const bool gap = !axis.at("gap_ev").is_null();
    // Without a gap: the state that the limit moves most.
    std::size_t shown_state = 0;
    double most = -1.0;
    for (std::size_t j = 0; j < axis.at("states").size(); ++j) {
      const double moved = std::abs(axis.at("limit_ev")[j].get<double>() -
                                    axis.at("energy_ev").back()[j].get<double>());
      if (moved > most) {
        most = moved;
        shown_state = j;
      }
    }
    const std::string what =
        gap ? "gap"
            : "band " + std::to_string(axis.at("states")[shown_state].at("band").get<int>());
    std::snprintf(line, sizeof line, " %-15s %-8s", axis.at("name").get<std::string>().c_str(),
                  what.c_str());
    text += line;
    for (std::size_t i = 0; i < settings.size(); ++i) {
      const double value = gap ? axis.at("gap_ev")[i].get<double>()
                               : axis.at("energy_ev")[i][shown_state].get<double>();
      std::snprintf(line, sizeof line, "  %g: %.4f", settings[i].get<double>(), value);
      text += line;
    }
    const double limit = gap ? axis.at("gap_limit_ev").get<double>()
                             : axis.at("limit_ev")[shown_state].get<double>();
    const double error = gap ? axis.at("gap_error_ev").get<double>()
                             : axis.at("error_ev")[shown_state].get<double>();
    std::snprintf(line, sizeof line,
                  "  limit: %.4f ± %.4f; any state, error at the deck's setting: %.4f\n", limit,
                  error, axis.at("largest_error_of_deck_ev").get<double>());
    text += line;
  }
  return text;
}

}  // namespace quasi::gw
