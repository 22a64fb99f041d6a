#include "workers/thermal/thermal_task.hpp"

#include <algorithm>
#include <optional>

#include "workers/backend/error.hpp"
#include "workers/thermal/convergence_study.hpp"
#include "workers/thermal/output/bte_files.hpp"
#include "workers/thermal/output/result_4ph.hpp"
#include "workers/thermal/output/result_derived.hpp"
#include "workers/thermal/output/result_file.hpp"
#include "workers/thermal/solve_case.hpp"
#include "workers/thermal/solver/scattering.hpp"

namespace quasi {
namespace {

using namespace thermal;

class ThermalTask : public Task {
 public:
  nlohmann::json validate(const DeckSource& source, const Device& device) const override {
    const Deck deck = read_deck(source.path, source.settings);
    require_supported_4ph(deck.control);
    SilentProgress silent;
    ConductivityRun run = start_run(deck, silent);
    nlohmann::json plan{{"mesh", {deck.control.mesh[0], deck.control.mesh[1], deck.control.mesh[2]}},
                        {"irreducible_points", deck.symmetry.n_irreducible()},
                        {"modes", run.modes.n_modes()},
                        {"space_group", deck.symmetry.space_group},
                        {"symmetry_operations", deck.symmetry.operations.size()},
                        {"temperatures_k", deck.control.temperatures_k},
                        {"third_order_blocks", deck.third_order.n_blocks()},
                        {"omega_max_rad_ps", *std::max_element(run.modes.omega_rad_ps.begin(), run.modes.omega_rad_ps.end())},
                        {"acoustic_sum_2nd", deck.second_order.raw_acoustic_sum},
                        {"device", device.name()}};
    if (!deck.control.only_harmonic) {
      ThreePhononProblem problem = make_three_phonon_problem(deck.crystal, deck.third_order, deck.symmetry, run.modes, deck.control);
      const auto kernels = make_three_phonon_kernels(Device{});  // counting a sample is a matter of milliseconds
      kernels->load(problem);
      std::vector<std::int64_t> sample;
      const std::int64_t n_rows = problem.n_rows();
      const std::int64_t n_sampled = std::min<std::int64_t>(n_rows, 96);
      for (std::int64_t i = 0; i < n_sampled; ++i) sample.push_back(i * n_rows / n_sampled);
      std::int64_t counted = 0;
      for (const std::int64_t count : kernels->count(sample)) counted += count;
      const auto processes = static_cast<std::int64_t>(static_cast<double>(counted) * static_cast<double>(n_rows) / static_cast<double>(n_sampled));
      plan["processes_3ph_estimate"] = processes;
      plan["memory_bytes"] = (deck.control.converge ? processes * 16 : 0) + run.modes.n_modes() * (16 * run.modes.n_branches + 160);
      plan["free_memory_bytes"] = free_memory_bytes(device);
      sum_rule(deck, plan);
    }
    return {{"ok", true}, {"warnings", run.warnings}, {"deck_sha256", deck.digest_sha256}, {"plan", plan}};
  }

  nlohmann::json run(const RunOptions& options, Progress& progress) const override {
    const Device& device = options.devices.front();
    Deck deck = read_deck(options.deck.path, options.deck.settings);
    require_supported_4ph(deck.control);
    if (options.memory_budget_bytes > 0 && deck.control.memory_budget_mib == 0.0)
      deck.control.memory_budget_mib = static_cast<double>(options.memory_budget_bytes) / 1048576.0;
    const SolvedCase solved = solve_case(deck, device, options.checkpoint_directory, progress);
    const ConductivityRun& result = solved.run;
    std::optional<ConvergenceStudy> study;
    if (deck.control.convergence_study)
      study = study_convergence(deck, device, solved, options.checkpoint_directory, progress);
    H5Writer out(options.output_directory / "result.h5");
    write_result(deck, result, device, out);
    if (solved.four_phonon) write_result_4ph(deck, *solved.four_phonon, out);
    if (solved.derived) write_result_derived(deck, result, *solved.derived, out);
    if (study) write_study(deck, *study, out);
    out.commit();
    if (!options.exports.empty()) write_bte_files(deck, result, options.output_directory);
    nlohmann::json summary = summarise(deck, result, device);
    if (solved.four_phonon) summarise_4ph(*solved.four_phonon, summary);
    if (solved.derived) summarise_derived(deck, *solved.derived, summary);
    if (study) summary["convergence"] = summarise_study(deck, *study);
    return summary;
  }

  std::vector<std::string> exports() const override { return {"bte"}; }

  std::string table(const nlohmann::json& summary) const override { return kappa_table(summary); }

 private:
  static void sum_rule(const Deck& deck, nlohmann::json& plan) {
    plan["sum_rule_3rd"] = sum_rule_violation(deck.third_order);
  }
};

}  // namespace

std::unique_ptr<Task> make_thermal_task() { return std::make_unique<ThermalTask>(); }

}  // namespace quasi
