#include <algorithm>
#include <cmath>
#include <cstdio>

#include "workers/gw/solver/calculation/convergence_study.hpp"

// Writes a convergence study to result.h5, to the summary and as a table.
namespace quasi::gw {

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
