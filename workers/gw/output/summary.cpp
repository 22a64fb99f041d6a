#include "workers/gw/output/summary.hpp"

#include <algorithm>
#include <cstdio>

#include "workers/gw/output/displacement_results.hpp"
#include "workers/gw/output/error_report.hpp"
#include "workers/gw/output/mode_results.hpp"
#include "workers/gw/output/sigma_results.hpp"
#include "workers/gw/output/wave_vector_results.hpp"
#include "workers/gw/solver/calculation/convergence_study.hpp"

namespace quasi::gw {
namespace {

const char* method_name(SigmaMethod method) {
  switch (method) {
    case SigmaMethod::kCohsex:
      return "cohsex";
    case SigmaMethod::kHybertsenLouie:
      return "hl-gpp";
    case SigmaMethod::kGodbyNeeds:
      return "gn-gpp";
    case SigmaMethod::kContour:
      return "contour";
    case SigmaMethod::kRealAxis:
      return "real-axis";
    case SigmaMethod::kImaginaryAxis:
      return "imaginary-axis";
  }
  return "";
}

nlohmann::json or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json summary_of_states(const Calculation& run) {
  nlohmann::json states = nlohmann::json::array();
  for (const Quasiparticle& qp : run.quasiparticles)
    states.push_back({{"k", qp.k},
                      {"band", qp.band},
                      {"spin", qp.spin},
                      {"e_mf_ev", qp.mean_field_ev},
                      {"vxc_ev", or_null(qp.vxc_ev)},
                      {"x_ev", qp.x_ev},
                      {"sx_ev", qp.sx_ev},
                      {"ch_ev", qp.ch_ev},
                      {"ch_bare_ev", qp.ch_bare_ev},
                      {"sigma_ev", qp.sigma_ev},
                      {"e_qp0_ev", or_null(qp.qp0_ev)},
                      {"e_qp1_ev", or_null(qp.qp1_ev)},
                      {"z", qp.z}});
  return states;
}

nlohmann::json summary_of_heads(const Calculation& run) {
  nlohmann::json heads = nlohmann::json::array();
  for (const DielectricMatrix& m : run.epsilon)
    heads.push_back(
        {{"q", m.q},
         {"n_g", m.size()},
         {"epsilon", m.epsilon_diagonal.empty() ? nlohmann::json(nullptr)
                                                : nlohmann::json(m.epsilon_diagonal[0].real())},
         {"epsilon_inverse", m.inverse[0][0].real()}});
  for (std::size_t i = 0; i < heads.size(); ++i)
    if (run.epsilon[i].subspace_vectors > 0) {
      heads[i]["subspace_vectors"] = run.epsilon[i].subspace_vectors;
      heads[i]["subspace_error"] = run.epsilon[i].subspace_error;
    }
  for (std::size_t i = 0; i < heads.size(); ++i)
    if (!run.epsilon[i].long_wave.empty()) {
      nlohmann::json tensor = nlohmann::json::array();
      for (const auto& row : macroscopic_tensor(run, run.epsilon[i], 0))
        tensor.push_back({row[0].real(), row[1].real(), row[2].real()});
      heads[i]["macroscopic_tensor"] = std::move(tensor);
    }
  return heads;
}

nlohmann::json summary_of_gaps(const Calculation& run) {
  const Gaps gap = gaps(run.field, run.quasiparticles);
  nlohmann::json direct = nlohmann::json::array();
  for (const GapAtK& at : gap.direct)
    direct.push_back({{"k", at.k},
                      {"spin", at.spin},
                      {"mean_field_ev", at.mean_field_ev},
                      {"quasiparticle_ev", or_null(at.quasiparticle_ev)},
                      {"inverted", at.inverted}});
  nlohmann::json of_spin = nlohmann::json::array();
  for (const auto& value : gap.fundamental_of_spin_ev) of_spin.push_back(or_null(value));
  return {{"fundamental_mean_field_ev", or_null(gap.fundamental_mean_field_ev)},
          {"fundamental_ev", or_null(gap.fundamental_ev)},
          {"fundamental_of_spin_ev", of_spin},
          {"over_all_k", gap.over_all_k()},
          {"listed_k", gap.listed_k},
          {"all_k", gap.all_k},
          {"direct", direct}};
}

void add_statistics(const Calculation& run, nlohmann::json& summary) {
  if (run.statistics.elements > 0)
    summary["plasmon_poles"] = {{"elements", run.statistics.elements},
                                {"skipped", run.statistics.skipped},
                                {"invalid", run.statistics.invalid}};
  if (run.statistics.subspace_vectors > 0) {
    double worst_ry = 0.0;
    for (const SelfEnergyAtK& sum : run.sigma)
      worst_ry = std::max(
          worst_ry, *std::max_element(sum.subspace_error_ry.begin(), sum.subspace_error_ry.end()));
    summary["sigma_subspace"] = {{"vectors", run.statistics.subspace_vectors},
                                 {"plane_waves", run.statistics.plane_waves},
                                 {"error_ev", worst_ry * kRydberg_ev}};
  }
}

void add_pseudobands(const Calculation& run, nlohmann::json& summary) {
  if (!run.pseudobands) return;
  const PseudobandPlan& p = *run.pseudobands;
  summary["pseudobands"] = {{"given_bands", p.given},
                            {"protected_bands", p.kept},
                            {"windows", p.used.size()},
                            {"vectors", p.vectors},
                            {"sigma_vectors", p.sigma_factor * p.vectors},
                            {"seed", p.seed},
                            {"identity_error", p.identity_error},
                            {"statistical_error", "not examined"}};
  if (p.filter != nullptr) {
    summary["pseudobands"]["degree"] = p.filter->degree();
    summary["pseudobands"]["lost_weight"] = p.filter->lost_weight();
  }
  if (!run.pseudoband_errors) return;
  const PseudobandErrors& e = *run.pseudoband_errors;
  summary["pseudobands"]["statistical_error"] = {
      {"blocks", e.blocks},           {"confidence", 0.95},
      {"estimate_ev", e.estimate_ev}, {"half_width_ev", e.half_width_ev},
      {"gap_ev", or_null(e.gap_ev)},  {"gap_half_width_ev", or_null(e.gap_half_width_ev)}};
}

/// Formats a number for a column of the table, or a dash.
std::string cell(const nlohmann::json& value) {
  char number[24];
  if (value.is_null()) return std::string("         -");
  std::snprintf(number, sizeof number, "%10.4f", value.get<double>());
  return std::string(number);
}

std::string table_of_states(const nlohmann::json& states) {
  std::string text;
  char line[200];
  nlohmann::json last_k;
  for (const auto& qp : states) {
    if (qp.at("k") != last_k) {
      last_k = qp.at("k");
      std::snprintf(line, sizeof line,
                    "\nk = %9.6f %9.6f %9.6f   (eV)\n band      E_mf      V_xc         X      "
                    "SX-X        CH     Sigma     E_qp0     E_qp1      Z\n",
                    last_k[0].get<double>(), last_k[1].get<double>(), last_k[2].get<double>());
      text += line;
    }
    std::snprintf(line, sizeof line, "%5d", qp.at("band").get<int>());
    text += line;
    for (const char* name :
         {"e_mf_ev", "vxc_ev", "x_ev", "sx_ev", "ch_ev", "sigma_ev", "e_qp0_ev", "e_qp1_ev"})
      text += cell(qp.at(name));
    std::snprintf(line, sizeof line, " %6.3f\n", qp.at("z").get<double>());
    text += line;
  }
  return text;
}

/// Formats the statistical errors of the energies beside the sums of the systematic ones.
std::string table_of_errors(const nlohmann::json& summary) {
  const auto& found = summary.at("pseudobands").at("statistical_error");
  if (!found.is_object()) return "\nstatistical error of the energies: not examined\n";
  const auto& states = summary.at("quasiparticles");
  std::string text = "\n95 % intervals of the random vectors, by " +
                     std::to_string(found.at("blocks").get<int>()) +
                     " blocks (eV)\n spin band  estimate      +/-  systematic\n";
  char line[80];
  for (std::size_t i = 0; i < states.size(); ++i) {
    std::snprintf(line, sizeof line, "%5d%5d", states[i].at("spin").get<int>(),
                  states[i].at("band").get<int>());
    text += line + cell(found.at("estimate_ev")[i]) + cell(found.at("half_width_ev")[i]) + "  " +
            cell(summary.at("errors").at("systematic_ev")[i]) + "\n";
  }
  return text + "gap       " + cell(found.at("gap_ev")) + cell(found.at("gap_half_width_ev")) +
         "  " + cell(summary.at("errors").at("systematic_gap_ev")) + "\n";
}

}  // namespace

CMat3 macroscopic_tensor(const Calculation& run, const DielectricMatrix& m, std::size_t frequency) {
  const MeanField& field = run.screening_field ? *run.screening_field : run.field;
  return with_symmetry_of(field.crystal(), field.zone.operations(), m.long_wave[frequency].epsilon);
}

nlohmann::json summary_of_plan(const Plan& plan) {
  return {{"epsilon_gflop", plan.epsilon_gflop}, {"sigma_evaluations", plan.sigma_evaluations},
          {"memory_bytes", plan.memory_bytes},   {"screening_bytes", plan.screening_bytes},
          {"host_bytes", plan.host_bytes},       {"epsilon_bands", plan.epsilon.bands},
          {"sigma_bands", plan.sigma.bands},     {"band_min", plan.sigma.band_min},
          {"band_max", plan.sigma.band_max}};
}

nlohmann::json summary_of(const Calculation& run, const Device& device, int n_devices) {
  nlohmann::json summary{{"method", method_name(run.plan.sigma.method)},
                         {"device", device.name()},
                         {"devices", n_devices},
                         {"warnings", run.plan.notes},
                         {"plan", summary_of_plan(run.plan)}};
  summary["quasiparticles"] = summary_of_states(run);
  summary["eps_head"] = summary_of_heads(run);
  summary["gap"] = summary_of_gaps(run);
  add_statistics(run, summary);
  add_pseudobands(run, summary);
  if (!run.errors.rows.empty()) summary["errors"] = summary_of_errors(run.errors);
  add_sigma_summary(run, summary);
  if (run.displacements)
    summary["perturbations"] = summary_of_displacements(*run.displacements, run.field);
  if (run.phonons) summary["modes"] = summary_of_modes(*run.phonons, *run.displacements, run.field);
  if (!run.wave_vectors.empty())
    summary["perturbations_at_q"] = summary_of_wave_vectors(run.wave_vectors, run.field);
  summary["seconds"] = run.seconds;
  summary["seconds"]["epsilon_estimate"] = run.plan.epsilon_seconds;
  summary["seconds"]["sigma_estimate"] = run.plan.sigma_seconds;
  if (run.plan.error_bar_seconds > 0.0)
    summary["seconds"]["pseudoband_errors_estimate"] = run.plan.error_bar_seconds;
  return summary;
}

std::string table_of(const nlohmann::json& summary) {
  std::string text = table_of_states(summary.at("quasiparticles"));
  if (summary.contains("pseudobands")) text += table_of_errors(summary);
  if (summary.contains("perturbations"))
    text += table_of_displacements(summary.at("perturbations"));
  if (summary.contains("modes")) text += table_of_modes(summary.at("modes"));
  if (summary.contains("perturbations_at_q"))
    text += table_of_wave_vectors(summary.at("perturbations_at_q"));
  if (summary.contains("errors")) text += table_of_error_rows(summary.at("errors"));
  const auto& gap = summary.at("gap");
  if (summary.contains("self_test")) {
    int sound = 0, tried = 0;
    std::string violated, truncation;
    for (const auto& check : summary.at("self_test")) {
      if (check.at("value").is_null()) continue;
      const bool passed = check.at("passed").get<bool>();
      const std::string name = check.at("name").get<std::string>();
      sound += passed;
      ++tried;
      if (!passed) violated += (violated.empty() ? "" : ", ") + name;
      if (name == "ch_truncation")
        truncation = "static CH of the bands beyond sigma.bands:" + cell(check.at("value")) +
                     " eV (ch_truncation; bounds the CH that they add)\n";
    }
    text +=
        "\nself-test: " + std::to_string(sound) + " of " + std::to_string(tried) + " laws hold\n";
    if (!violated.empty()) text += "violated: " + violated + "\n";
    text += truncation;
  }
  if (gap.at("listed_k") == 0) return text;  // ε⁻¹ alone has no gap
  text += "\nfundamental gap: mean field" + cell(gap.at("fundamental_mean_field_ev")) +
          " eV, quasiparticle" + cell(gap.at("fundamental_ev")) + " eV\n";
  const auto& of_spin = gap.at("fundamental_of_spin_ev");
  if (of_spin.size() > 1)
    text += "of each spin: up" + cell(of_spin[0]) + " eV, down" + cell(of_spin[1]) + " eV\n";
  if (!gap.at("over_all_k").get<bool>())
    text += "gaps are those of the " + std::to_string(gap.at("listed_k").get<int>()) +
            " listed k-points of " + std::to_string(gap.at("all_k").get<int>()) +
            "; other k-points may close them further\n";
  if (summary.contains("convergence")) text += study_table(summary.at("convergence"));
  return text;
}

}  // namespace quasi::gw
