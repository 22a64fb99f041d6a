#include "workers/thermal/thermal_task.hpp"

#include <optional>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/common_keys.hpp"
#include "workers/thermal/output/bte_files.hpp"
#include "workers/thermal/output/convergence_file.hpp"
#include "workers/thermal/output/dataset_table.hpp"
#include "workers/thermal/output/kappa_table.hpp"
#include "workers/thermal/output/phono3py_file.hpp"
#include "workers/thermal/output/result_4ph.hpp"
#include "workers/thermal/output/result_derived.hpp"
#include "workers/thermal/output/result_file.hpp"
#include "workers/thermal/solver/calculation/convergence_study.hpp"
#include "workers/thermal/solver/calculation/lint.hpp"
#include "workers/thermal/solver/calculation/solve_case.hpp"

namespace quasi {
namespace {

using namespace thermal;

class ThermalTask : public Task {
 public:
  nlohmann::json validate(const DeckSource& source, const Device& device) const override {
    const Deck deck = read_deck(source.path, source.settings);
    const CaseOptions options = deck.control.case_options();
    require_possible_study(options);
    SilentProgress silent;
    ConductivityRun run = start_case(deck, options, silent);
    require_transport(deck, options, run.modes);
    nlohmann::json report = lint(deck, options, run, device);
    report["ok"] = true;
    report["warnings"] = run.warnings;
    report["deck_sha256"] = deck.digest_sha256;
    return report;
  }

  nlohmann::json run(const RunOptions& options, Progress& progress) const override {
    const Device& device = options.devices.front();
    Deck deck = read_deck(options.deck.path, options.deck.settings);
    if (device.backend == Backend::kCuda &&
        static_cast<int>(options.devices.size()) * options.ranks->size() > 1 &&
        !deck.fourth_order && !deck.control.samples_rates_3ph())
      throw InvalidInput(
          "on GPUs only four-phonon sums and samples are shared out, and 'four_phonon' = .false.: "
          "name one device and start one rank");
    const CommonKeys common{.memory_budget_mib = deck.control.memory_budget_mib,
                            .device_memory_fraction = deck.control.device_memory_fraction,
                            .threads = deck.control.threads};
    use_threads(common);
    deck.control.memory_budget_mib =
        static_cast<double>(memory_budget_bytes(common, device, options.memory_budget_bytes)) /
        1048576.0;
    const CaseOptions case_options = deck.control.case_options();
    require_possible_study(case_options);
    const CaseSite site{options.devices, *options.ranks, options.checkpoint_directory};
    const SolvedCase solved = solve_case(deck, case_options, site, progress);
    const ConductivityRun& result = solved.run;
    std::optional<ConvergenceStudy> study;
    if (case_options.study.enabled)
      study = study_convergence(deck, case_options, site, solved, progress);
    if (!options.ranks->leads()) return {};
    H5Writer out(options.output_directory / "result.h5");
    write_result(deck, result, out);
    if (solved.four_phonon) write_result_4ph(deck, *solved.four_phonon, out);
    if (solved.derived) write_result_derived(deck, result, *solved.derived, out);
    if (study) write_study(deck, *study, out);
    const auto write_precision = [&](const std::string& where, const PrecisionError& error) {
      out.write_scalar(where + "/largest_rate_error", error.largest_rate_error, "1");
      out.write_scalar(where + "/rms_rate_error", error.rms_rate_error, "1");
      out.write_scalar(where + "/kappa_error", error.kappa_error, "1");
    };
    if (solved.precision) write_precision("/precision", *solved.precision);
    if (solved.precision_4ph) write_precision("/precision/four_phonon", *solved.precision_4ph);
    write_result_root("thermal", options.inputs, result.warnings, &out);
    describe_result(&out);
    out.commit();
    for (const std::string& format : options.exports) {
      if (format == "bte") write_bte_files(deck, solved, options.output_directory);
      if (format == "phono3py") write_phono3py_file(deck, solved, options.output_directory);
    }
    nlohmann::json summary = summarise(deck, result, device);
    summary["checks"] = solved.checks;
    if (solved.four_phonon) summarise_4ph(*solved.four_phonon, summary);
    if (solved.derived) summarise_derived(deck, *solved.derived, summary);
    const auto summarise_precision = [](const PrecisionError& error) {
      return nlohmann::json{{"sampled_rows", error.sampled_rows},
                            {"largest_rate_error", error.largest_rate_error},
                            {"rms_rate_error", error.rms_rate_error},
                            {"kappa_error", error.kappa_error}};
    };
    if (solved.precision) {
      summary["precision"] = summarise_precision(*solved.precision);
      summary["precision"]["name"] = "mixed";
    }
    if (solved.precision_4ph) {
      summary["precision"]["four_phonon"] = summarise_precision(*solved.precision_4ph);
      summary["precision"]["four_phonon"]["sampled_tiles"] =
          solved.four_phonon->precision_errors->tiles;
    }
    if (study) summary["convergence"] = summarise_study(deck, *study);
    CheckpointFiles(options.checkpoint_directory).remove_all();
    return summary;
  }

  std::vector<std::string> deck_file_patterns() const override {
    return {"CONTROL",
            "FORCE_CONSTANTS_2ND",
            "FORCE_CONSTANTS_3RD",
            "FORCE_CONSTANTS_4TH",
            "POSCAR",
            "espresso.ifc2",
            "BORN",
            "*.toml",
            "fc2.hdf5",
            "force_constants.hdf5",
            "fc3.hdf5",
            "*.yaml"};
  }

  std::vector<std::string> exports() const override { return {"bte", "phono3py"}; }

  int max_devices() const override { return kMaxDevices; }

  std::string table(const nlohmann::json& summary) const override { return kappa_table(summary); }
};

}  // namespace

std::unique_ptr<Task> make_thermal_task() { return std::make_unique<ThermalTask>(); }

}  // namespace quasi
