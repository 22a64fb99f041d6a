#include "workers/thermal/output/ladder_file.hpp"

#include <algorithm>
#include <cstdio>

#include "workers/io/dataset_descriptions.hpp"
#include "workers/thermal/output/result_file.hpp"
#include "workers/thermal/output/tensors.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {
namespace {

std::string scattering_of(const LadderLevel& level) {
  return std::string(level.four_phonons ? "3ph+4ph" : "3ph") + (level.coherences ? "+coh." : "");
}

std::string phonons_of(const LadderLevel& level) {
  return level.phonons == LadderPhonons::kBare           ? "bare"
         : level.phonons == LadderPhonons::kRenormalised ? "renormalised"
                                                         : "renormalised+bubble";
}

std::string name_of(const LadderLevel& level) {
  return phonons_of(level) + " " + scattering_of(level) + " " + (level.iterated ? "BTE" : "RTA");
}

/// Returns the phonons that give κ of the job: those of the last level.
LadderPhonons final_phonons(const Ladder& ladder) {
  const bool bubble = !ladder.steps.empty() && !ladder.steps.front().bubble.empty();
  return bubble ? LadderPhonons::kBubble : LadderPhonons::kRenormalised;
}

using PairsOfStep = const std::vector<PairCorrection>& (*)(const LadderStep&);

/// Writes the changes of the constants at all temperatures, whose pairs are equal.
void write_corrections(const Ladder& ladder, const std::string& group, PairsOfStep pairs_of,
                       H5Writer& out) {
  std::vector<std::int32_t> atoms, cells;
  for (const PairCorrection& pair : pairs_of(ladder.steps.front())) {
    atoms.insert(atoms.end(), {pair.atom, pair.other});
    cells.insert(cells.end(), pair.cell.begin(), pair.cell.end());
  }
  std::vector<double> values;
  for (const LadderStep& step : ladder.steps)
    for (const PairCorrection& pair : pairs_of(step))
      values.insert(values.end(), pair.value_ev_a2.begin(), pair.value_ev_a2.end());
  const auto n = static_cast<std::int64_t>(atoms.size() / 2);
  const auto n_t = static_cast<std::int64_t>(ladder.steps.size());
  out.write(group + "/atom", atoms, {n, 2}, "1");
  out.write(group + "/cell", cells, {n, 3}, "1");
  out.write(group + "/value", values, {n_t, n, 3, 3}, "eV/angstrom^2");
}

void write_frequencies(const Deck& deck, const Ladder& ladder, H5Writer& out) {
  const std::int64_t nb = deck.crystal.n_branches();
  const std::int64_t n_q = deck.symmetry.mesh.size();
  std::vector<double> omega, bubble_omega, temperature, residual;
  std::vector<std::int64_t> iterations;
  for (const LadderStep& step : ladder.steps) {
    omega.insert(omega.end(), step.omega_rad_ps.begin(), step.omega_rad_ps.end());
    bubble_omega.insert(bubble_omega.end(), step.bubble_omega_rad_ps.begin(),
                        step.bubble_omega_rad_ps.end());
    temperature.push_back(step.temperature_k);
    residual.push_back(step.constants.residual);
    iterations.push_back(step.constants.iterations);
  }
  const auto n_t = static_cast<std::int64_t>(temperature.size());
  out.write("/ladder/temperature", temperature, {n_t}, "K");
  out.write("/ladder/bare_omega", ladder.bare_omega_rad_ps, {n_q, nb}, "rad/ps");
  out.write("/ladder/omega", omega, {n_t, n_q, nb}, "rad/ps");
  if (!bubble_omega.empty())
    out.write("/ladder/bubble_omega", bubble_omega, {n_t, n_q, nb}, "rad/ps");
  out.write("/ladder/iterations", iterations, {n_t}, "1");
  out.write("/ladder/residual", residual, {n_t}, "1");
}

/// Returns the lowest frequency of the mesh without the three translations at Γ, which come first.
double lowest_omega(const std::vector<double>& omega, std::size_t nb) {
  std::vector<double> at_gamma(omega.begin(), omega.begin() + static_cast<std::ptrdiff_t>(nb));
  std::sort(at_gamma.begin(), at_gamma.end(),
            [](double a, double b) { return std::abs(a) < std::abs(b); });
  double lowest = INFINITY;
  for (std::size_t s = 3; s < nb; ++s) lowest = std::min(lowest, at_gamma[s]);
  for (std::size_t i = nb; i < omega.size(); ++i) lowest = std::min(lowest, omega[i]);
  return lowest;
}

double highest_at_gamma(const std::vector<double>& omega, std::size_t nb) {
  return *std::max_element(omega.begin(), omega.begin() + static_cast<std::ptrdiff_t>(nb));
}

/// Lists of a summary with one entry for each temperature.
constexpr const char* kByTemperature[] = {
    "kappa_rta_w_per_mk",   "kappa_w_per_mk", "kappa_coherence_w_per_mk", "iterations", "residual",
    "heat_capacity_j_m3_k", "mean_gruneisen"};

/// Adds the case of one temperature to the summary of the job.
void add_case(const nlohmann::json& own, nlohmann::json& summary) {
  for (const char* key : kByTemperature)
    if (own.contains(key) && own[key].is_array())
      summary[key].insert(summary[key].end(), own[key].begin(), own[key].end());
  for (const char* key : {"mesh", "irreducible_points", "space_group", "scale_broad", "isotopes",
                          "four_phonon_iteration", "compat", "device", "deck_sha256"})
    summary[key] = own[key];
}

/// Returns the wall time by phase: of all cases, and of the self-consistent phonons.
nlohmann::json seconds_of(const Ladder& ladder, const nlohmann::json& cases) {
  nlohmann::json total{{"renormalise", ladder.renormalise_seconds}};
  if (ladder.bubble_seconds > 0.0) total["bubble"] = ladder.bubble_seconds;
  for (const auto& [name, own] : cases.items())
    for (const auto& [phase, seconds] : own["seconds"].items())
      total[phase] = total.value(phase, 0.0) + seconds.get<double>();
  return total;
}

double number_at(const nlohmann::json& values, std::size_t i, std::size_t j) {
  return values[i][j].get<double>();
}

}  // namespace

void write_ladder(const Deck& deck, const Ladder& ladder, H5Writer& out) {
  const double factor = sheet_factor(deck.crystal, deck.control.sheet_options());
  write_inputs(deck, out);
  write_frequencies(deck, ladder, out);
  if (!ladder.steps.empty())
    write_corrections(
        ladder, "/ladder/correction",
        [](const LadderStep& step) -> const std::vector<PairCorrection>& {
          return step.constants.correction;
        },
        out);
  if (final_phonons(ladder) == LadderPhonons::kBubble)
    write_corrections(
        ladder, "/ladder/bubble",
        [](const LadderStep& step) -> const std::vector<PairCorrection>& { return step.bubble; },
        out);
  const auto n_t = static_cast<std::int64_t>(ladder.steps.size());
  std::vector<std::string> names;
  std::vector<double> kappa;
  for (const LadderLevel& level : ladder.levels) {
    names.push_back(name_of(level));
    const std::vector<double> values = flat(level.kappa_w_per_mk, factor);
    kappa.insert(kappa.end(), values.begin(), values.end());
    if (level.phonons != final_phonons(ladder) || level.coherences ||
        level.four_phonons != ladder.levels.back().four_phonons)
      continue;
    const std::string name = level.iterated ? "/kappa/converged" : "/kappa/rta";
    out.write(name, values, {n_t, 3, 3}, "W/(m K)");
  }
  if (ladder.levels.empty()) return;
  std::vector<double> temperature;
  for (const LadderStep& step : ladder.steps) temperature.push_back(step.temperature_k);
  out.write("/kappa/temperature", temperature, {n_t}, "K");
  write_labels("/ladder/level", names, &out);
  out.write("/ladder/kappa", kappa, {static_cast<std::int64_t>(ladder.levels.size()), n_t, 3, 3},
            "W/(m K)");
}

nlohmann::json summarise_ladder(const Deck& deck, const Ladder& ladder, nlohmann::json cases) {
  const double factor = sheet_factor(deck.crystal, deck.control.sheet_options());
  const auto nb = static_cast<std::size_t>(deck.crystal.n_branches());
  nlohmann::json summary{{"temperatures_k", deck.control.temperatures_k},
                         {"seconds", seconds_of(ladder, cases)}};
  nlohmann::json steps = nlohmann::json::array();
  for (const char* key : kByTemperature) summary[key] = nlohmann::json::array();
  for (const LadderStep& step : ladder.steps) {
    const std::string name = ladder_case_name(final_phonons(ladder), step.temperature_k);
    add_case(cases[name], summary);
    nlohmann::json low{lowest_omega(ladder.bare_omega_rad_ps, nb),
                       lowest_omega(step.omega_rad_ps, nb)};
    nlohmann::json high{highest_at_gamma(ladder.bare_omega_rad_ps, nb),
                        highest_at_gamma(step.omega_rad_ps, nb)};
    if (!step.bubble.empty()) {
      low.push_back(lowest_omega(step.bubble_omega_rad_ps, nb));
      high.push_back(highest_at_gamma(step.bubble_omega_rad_ps, nb));
    }
    steps.push_back({{"temperature_k", step.temperature_k},
                     {"case", name},
                     {"iterations", step.constants.iterations},
                     {"residual", step.constants.residual},
                     {"memory_bytes", step.constants.memory_bytes},
                     {"lowest_omega_rad_ps", std::move(low)},
                     {"highest_omega_at_gamma_rad_ps", std::move(high)}});
  }
  for (const char* key : {"kappa_w_per_mk", "iterations", "residual"})
    if (summary[key].empty()) summary[key] = nullptr;
  if (summary["kappa_coherence_w_per_mk"].empty()) summary.erase("kappa_coherence_w_per_mk");
  nlohmann::json levels = nlohmann::json::array();
  for (const LadderLevel& level : ladder.levels) {
    nlohmann::json kappa = nlohmann::json::array();
    for (const Mat3& tensor : level.kappa_w_per_mk) kappa.push_back(json_of(tensor, factor));
    levels.push_back({{"phonons", phonons_of(level)},
                      {"scattering", scattering_of(level)},
                      {"solution", level.iterated ? "BTE" : "RTA"},
                      {"kappa_w_per_mk", std::move(kappa)}});
  }
  summary["ladder"] = {{"temperatures", std::move(steps)}, {"levels", std::move(levels)}};
  std::vector<std::string> warnings = ladder.warnings;
  for (const auto& [name, own] : cases.items())
    for (const nlohmann::json& warning : own["warnings"])
      if (std::find(warnings.begin(), warnings.end(), warning.get<std::string>()) == warnings.end())
        warnings.push_back(warning.get<std::string>());
  summary["warnings"] = warnings;
  summary["cases"] = std::move(cases);
  return summary;
}

std::string ladder_table(const nlohmann::json& summary) {
  const nlohmann::json& ladder = summary["ladder"];
  char line[256];
  std::string text =
      "phonons renormalised at each temperature (self-consistent phonons of first order)\n"
      "      T (K)  steps   lowest ω (rad/ps): bare, ren.    highest at Γ: bare, ren.";
  const bool bubble = !ladder["temperatures"].empty() &&
                      ladder["temperatures"][0]["lowest_omega_rad_ps"].size() > 2;
  text += bubble ? "    with bubble: lowest, highest\n" : "\n";
  for (const nlohmann::json& step : ladder["temperatures"]) {
    const nlohmann::json& low = step["lowest_omega_rad_ps"];
    const nlohmann::json& high = step["highest_omega_at_gamma_rad_ps"];
    std::snprintf(line, sizeof line, "%11.2f%7d%20.4f%12.4f%16.4f%12.4f",
                  step["temperature_k"].get<double>(), step["iterations"].get<int>(),
                  low[0].get<double>(), low[1].get<double>(), high[0].get<double>(),
                  high[1].get<double>());
    text += line;
    if (bubble) {
      std::snprintf(line, sizeof line, "%20.4f%12.4f", low[2].get<double>(), high[2].get<double>());
      text += line;
    }
    text += '\n';
  }
  if (ladder["levels"].empty())
    return text + "harmonic quantities alone ('onlyharmonic'): in result.h5\n";
  text += "thermal conductivity by level of theory (W/m/K)\n";
  text += bubble
              ? "      T (K)  phonons              scattering    solution          xx          yy"
                "          zz\n"
              : "      T (K)  phonons       scattering    solution          xx          yy         "
                " zz\n";
  for (std::size_t t = 0; t < ladder["temperatures"].size(); ++t)
    for (const nlohmann::json& level : ladder["levels"]) {
      const nlohmann::json& kappa = level["kappa_w_per_mk"][t];
      std::snprintf(line, sizeof line, "%11.2f  %-*s%-14s%-8s%12.4f%12.4f%12.4f\n",
                    ladder["temperatures"][t]["temperature_k"].get<double>(), bubble ? 21 : 14,
                    level["phonons"].get<std::string>().c_str(),
                    level["scattering"].get<std::string>().c_str(),
                    level["solution"].get<std::string>().c_str(), number_at(kappa, 0, 0),
                    number_at(kappa, 1, 1), number_at(kappa, 2, 2));
      text += line;
    }
  return text;
}

}  // namespace quasi::thermal
