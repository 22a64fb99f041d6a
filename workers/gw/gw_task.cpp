#include "workers/gw/gw_task.hpp"

#include <cmath>
#include <cstdio>

#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/input/text_files.hpp"
#include "workers/gw/output/sigma_results.hpp"
#include "workers/gw/solver/calculation/convergence_study.hpp"
#include "workers/gw/solver/calculation/cost_estimate.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi {
namespace gw {
namespace {

/// Of a GPU most of its memory, a figure that does not depend on what else is there, so that blocks
/// and bits do not either; of the CPU 2 GiB.
std::int64_t default_budget_bytes(const Device& device) {
  return device.backend == Backend::kCuda ? device.memory_bytes / 10 * 6 : std::int64_t{2} << 30;
}

/// What a device has for a job that has it to itself: the driver and the libraries keep some of a
/// GPU.
std::int64_t memory_limit_bytes(const Device& device) {
  return device.backend == Backend::kCuda ? device.memory_bytes / 100 * 96 : device.memory_bytes;
}

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

nlohmann::json plan_of(const Plan& plan) {
  return {{"epsilon_gflop", plan.epsilon_gflop}, {"sigma_evaluations", plan.sigma_evaluations},
          {"memory_bytes", plan.memory_bytes},   {"screening_bytes", plan.screening_bytes},
          {"epsilon_bands", plan.epsilon.bands}, {"sigma_bands", plan.sigma.bands},
          {"band_min", plan.sigma.band_min},     {"band_max", plan.sigma.band_max}};
}

/// ε_M(q → 0) of one frequency, Cartesian, with the symmetry of the crystal.
CMat3 macroscopic_tensor(const Calculation& run, const DielectricMatrix& m, std::size_t frequency) {
  const MeanField& field = run.screening_field ? *run.screening_field : run.field;
  return with_symmetry_of(field.crystal(), field.zone.operations(), m.long_wave[frequency].epsilon);
}

nlohmann::json summary_of(const Calculation& run, const Device& device, int n_devices) {
  nlohmann::json summary{{"method", method_name(run.plan.sigma.method)},
                         {"device", device.name()},
                         {"devices", n_devices},
                         {"warnings", run.plan.notes},
                         {"plan", plan_of(run.plan)}};
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
  summary["quasiparticles"] = std::move(states);
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
  summary["eps_head"] = std::move(heads);
  const Gaps gap = gaps(run.field, run.quasiparticles);
  nlohmann::json direct = nlohmann::json::array();
  for (const GapAtK& at : gap.direct)
    direct.push_back({{"k", at.k},
                      {"spin", at.spin},
                      {"mean_field_ev", at.mean_field_ev},
                      {"quasiparticle_ev", or_null(at.quasiparticle_ev)}});
  summary["gap"] = {{"fundamental_mean_field_ev", or_null(gap.fundamental_mean_field_ev)},
                    {"fundamental_ev", or_null(gap.fundamental_ev)},
                    {"direct", direct}};
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
  add_sigma_summary(run, summary);
  summary["seconds"] = run.seconds;
  summary["seconds"]["epsilon_estimate"] = run.plan.epsilon_seconds;
  summary["seconds"]["sigma_estimate"] = run.plan.sigma_seconds;
  return summary;
}

void write_result(const std::filesystem::path& path, const Calculation& run,
                  const std::optional<ConvergenceStudy>& study) {
  H5Writer file(path);
  const auto n = static_cast<std::int64_t>(run.quasiparticles.size());
  const auto column = [&](const std::string& name, const char* units, const auto& value) {
    std::vector<double> values;
    for (const Quasiparticle& qp : run.quasiparticles) values.push_back(value(qp));
    file.write("/quasiparticles/" + name, values, {n}, units);
  };
  std::vector<double> k;
  std::vector<std::int32_t> band, spin;
  for (const Quasiparticle& qp : run.quasiparticles) {
    k.insert(k.end(), qp.k.begin(), qp.k.end());
    band.push_back(qp.band);
    spin.push_back(qp.spin);
  }
  file.write("/quasiparticles/k", k, {n, 3}, "1");
  file.write("/quasiparticles/band", band, {n}, "1");
  file.write("/quasiparticles/spin", spin, {n}, "1");
  column("mean_field_ev", "eV", [](const Quasiparticle& qp) { return qp.mean_field_ev; });
  column("x_ev", "eV", [](const Quasiparticle& qp) { return qp.x_ev; });
  column("sx_ev", "eV", [](const Quasiparticle& qp) { return qp.sx_ev; });
  column("ch_ev", "eV", [](const Quasiparticle& qp) { return qp.ch_ev; });
  column("sigma_ev", "eV", [](const Quasiparticle& qp) { return qp.sigma_ev; });
  column("z", "1", [](const Quasiparticle& qp) { return qp.z; });
  // Absent where the mean field has no V_xc.
  if (n > 0 && run.quasiparticles.front().vxc_ev) {
    column("vxc_ev", "eV", [](const Quasiparticle& qp) { return *qp.vxc_ev; });
    column("qp0_ev", "eV", [](const Quasiparticle& qp) { return *qp.qp0_ev; });
    column("qp1_ev", "eV", [](const Quasiparticle& qp) { return *qp.qp1_ev; });
  }
  std::vector<double> q, head, head_inverse;
  std::vector<Cplx> of_frequency;
  for (const DielectricMatrix& m : run.epsilon) {
    q.insert(q.end(), m.q.begin(), m.q.end());
    if (!m.epsilon_diagonal.empty()) head.push_back(m.epsilon_diagonal[0].real());
    head_inverse.push_back(m.inverse[0][0].real());
    for (std::size_t f = 0; f < m.n_frequencies(); ++f) of_frequency.push_back(head_of(m, f));
  }
  const auto n_q = static_cast<std::int64_t>(run.epsilon.size());
  file.write("/epsilon/q", q, {n_q, 3}, "1");
  if (!head.empty()) file.write("/epsilon/head", head, {n_q}, "1");
  // ε⁻¹_00(q, ω): its inverse at q → 0 is the macroscopic dielectric function, −Im of it the loss
  // function.
  const auto n_f = static_cast<std::int64_t>(run.plan.epsilon.frequencies_ry.size());
  std::vector<Cplx> frequencies;
  for (const Cplx& omega : run.plan.epsilon.frequencies_ry)
    frequencies.push_back(omega * kRydberg_ev);
  file.write("/epsilon/frequencies", frequencies, {n_f}, "eV");
  file.write("/epsilon/head_inverse_of_frequency", of_frequency, {n_q, n_f}, "1");
  file.write("/epsilon/head_inverse", head_inverse, {n_q}, "1");
  for (const DielectricMatrix& m : run.epsilon) {
    if (m.long_wave.empty()) continue;
    std::vector<Cplx> tensors;
    for (std::size_t f = 0; f < m.long_wave.size(); ++f)
      for (const auto& row : macroscopic_tensor(run, m, f))
        tensors.insert(tensors.end(), row.begin(), row.end());
    file.write("/epsilon/macroscopic_tensor", tensors, {n_f, 3, 3}, "1");
  }
  write_sigma_results(run, file);
  if (study) write_study(run, *study, file);
  file.commit();
}

void write_energies(const std::filesystem::path& directory, const Calculation& run) {
  std::vector<QuasiparticleEntry> qp0, qp1;
  for (const Quasiparticle& qp : run.quasiparticles) {
    if (!qp.qp0_ev) return;
    qp0.push_back({qp.k, qp.spin, qp.band, qp.mean_field_ev, *qp.qp0_ev});
    qp1.push_back({qp.k, qp.spin, qp.band, qp.mean_field_ev, *qp.qp1_ev});
  }
  write_quasiparticles(directory / "eqp0.dat", qp0);
  write_quasiparticles(directory / "eqp1.dat", qp1);
}

class GwTask : public Task {
 public:
  nlohmann::json validate(const DeckSource& source, const Device& device) const override {
    const Deck deck = read_deck(source.path, source.settings);
    const auto kernels = make_gw_kernels(device);
    SilentProgress silent;
    const MeanField field = load_mean_field(deck.mean_field, demand_of(deck), *kernels, silent);
    const std::optional<MeanField> outer = load_outer_mean_field(deck.mean_field, field);
    Plan plan = make_plan(deck, field, default_budget_bytes(device), outer ? &*outer : nullptr);
    require_room(plan, memory_limit_bytes(device));
    DeviceTeam team(*kernels);
    if (!outer) estimate_seconds(field, team, &plan);
    nlohmann::json planned = plan_of(plan);
    planned["epsilon_seconds"] = plan.epsilon_seconds;
    planned["sigma_seconds"] = plan.sigma_seconds;
    return {{"ok", true}, {"warnings", plan.notes}, {"plan", planned}};
  }

  nlohmann::json run(const RunOptions& options, Progress& progress) const override {
    const Deck deck = read_deck(options.deck.path, options.deck.settings);
    DeviceTeam team(options.devices, *options.ranks);
    const std::int64_t budget = options.memory_budget_bytes > 0
                                    ? options.memory_budget_bytes
                                    : default_budget_bytes(options.devices.front());
    const std::int64_t limit = options.memory_budget_bytes > 0
                                   ? options.memory_budget_bytes
                                   : memory_limit_bytes(options.devices.front());
    const Workplace place{.team = team,
                          .memory_budget_bytes = budget,
                          .memory_limit_bytes = limit,
                          .checkpoint_directory = options.ranks->leads()
                                                      ? options.checkpoint_directory
                                                      : std::filesystem::path{}};
    Calculation run = run_calculation(deck, place, progress);
    std::optional<ConvergenceStudy> study;
    if (deck.study.wanted) study = study_convergence(deck, place, run, progress);
    if (!options.ranks->leads()) return {};
    if (deck.epsilon.write)
      write_epsilon(
          {options.output_directory / "eps0mat.h5", options.output_directory / "epsmat.h5"},
          run.screening_field ? *run.screening_field : run.field, run.epsilon, run.plan.epsilon,
          CoulombInteraction(run.field.crystal(), run.field.waves.k_grid, deck.coulomb));
    if (!deck.stop_after_epsilon) write_energies(options.output_directory, run);
    write_sigma_tables(options.output_directory, run);
    write_result(options.output_directory / "result.h5", run, study);
    nlohmann::json summary = summary_of(run, options.devices.front(), team.size());
    if (study) summary["convergence"] = summarise_study(run, *study);
    return summary;
  }

  std::vector<std::string> deck_file_patterns() const override {
    return {"epsilon.inp", "sigma.inp", "*.toml",  "WFN*",           "wfn*",       "RHO",
            "VXC",         "VSC",       "VKB",     "vxc.dat",        "vxc2.dat",   "rho*.h5",
            "vxc*.h5",     "vsc*.h5",   "vkb*.h5", "subweights.dat", "eps0mat.h5", "epsmat.h5",
            "vcoul*"};
  }

  int max_devices() const override { return 64; }

  bool shared_by_ranks() const override { return true; }

  std::string table(const nlohmann::json& summary) const override {
    std::string text;
    char line[200];
    const auto cell = [](const nlohmann::json& value) {
      char number[24];
      if (value.is_null()) return std::string("         -");
      std::snprintf(number, sizeof number, "%10.4f", value.get<double>());
      return std::string(number);
    };
    nlohmann::json last_k;
    for (const auto& qp : summary.at("quasiparticles")) {
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
    const auto& gap = summary.at("gap");
    if (summary.contains("self_test")) {
      int sound = 0, tried = 0;
      for (const auto& check : summary.at("self_test"))
        if (!check.at("value").is_null()) sound += check.at("passed").get<bool>(), ++tried;
      text +=
          "\nself-test: " + std::to_string(sound) + " of " + std::to_string(tried) + " laws hold\n";
    }
    text += "\nfundamental gap: mean field" + cell(gap.at("fundamental_mean_field_ev")) +
            " eV, quasiparticle" + cell(gap.at("fundamental_ev")) + " eV\n";
    if (summary.contains("convergence")) text += study_table(summary.at("convergence"));
    return text;
  }
};

}  // namespace
}  // namespace gw

std::unique_ptr<Task> make_gw_task() { return std::make_unique<gw::GwTask>(); }

}  // namespace quasi
