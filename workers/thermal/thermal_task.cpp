#include "workers/thermal/thermal_task.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/common_keys.hpp"
#include "workers/thermal/input/force_constants/covariance.hpp"
#include "workers/thermal/output/bte_files.hpp"
#include "workers/thermal/output/convergence_file.hpp"
#include "workers/thermal/output/dataset_table.hpp"
#include "workers/thermal/output/derivative/derivative_file.hpp"
#include "workers/thermal/output/kappa_table.hpp"
#include "workers/thermal/output/ladder_file.hpp"
#include "workers/thermal/output/path/path_file.hpp"
#include "workers/thermal/output/phono3py_file.hpp"
#include "workers/thermal/output/phonopy/phonopy_files.hpp"
#include "workers/thermal/output/result_4ph.hpp"
#include "workers/thermal/output/result_derived.hpp"
#include "workers/thermal/output/result_file.hpp"
#include "workers/thermal/solver/calculation/convergence_study.hpp"
#include "workers/thermal/solver/calculation/ladder.hpp"
#include "workers/thermal/solver/calculation/lint.hpp"
#include "workers/thermal/solver/calculation/solve_case.hpp"
#include "workers/thermal/solver/displacements/computed_constants.hpp"

namespace quasi {
namespace {

using namespace thermal;

nlohmann::json json_of(const PrecisionError& error) {
  return {{"sampled_rows", error.sampled_rows},
          {"largest_rate_error", error.largest_rate_error},
          {"rms_rate_error", error.rms_rate_error},
          {"kappa_error", error.kappa_error}};
}

/// Reads the covariance of the third order that lies beside a deck with `derivative`, if there is
/// one.
std::optional<ConstantsCovariance> covariance_beside(const Deck& deck,
                                                     const std::filesystem::path& path) {
  const std::filesystem::path file =
      (std::filesystem::is_directory(path) ? path : path.parent_path()) / "covariance.hdf5";
  if (!deck.control.derivative || !std::filesystem::exists(file)) return {};
  return read_covariance(file, deck.third_order);
}

/// Writes result.h5 and the exports of one case into `directory`. Returns its summary.
/// @param study  null: the case has none
nlohmann::json write_case(const Deck& deck, const SolvedCase& solved, const ConvergenceStudy* study,
                          const RunOptions& options, const std::filesystem::path& directory) {
  const ConductivityRun& result = solved.run;
  H5Writer out(directory / "result.h5");
  write_result(deck, result, out);
  if (solved.four_phonon) write_result_4ph(deck, *solved.four_phonon, out);
  if (solved.derived) write_result_derived(deck, result, *solved.derived, out);
  const std::optional<ConstantsCovariance> covariance = covariance_beside(deck, options.deck.path);
  write_derivative(deck, solved, covariance, out);
  if (study) write_study(deck, *study, out);
  write_path(deck, result, directory, out);
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
    if (format == "bte") write_bte_files(deck, solved, directory);
    if (format != "phono3py") continue;
    write_phono3py_file(deck, solved, directory);
    write_phonopy_files(deck, solved, directory);
  }
  nlohmann::json summary = summarise(deck, result, options.devices.front());
  summary["checks"] = solved.checks;
  if (solved.four_phonon) summarise_4ph(*solved.four_phonon, summary);
  if (solved.derived) summarise_derived(deck, *solved.derived, summary);
  summarise_derivative(deck, solved, covariance, summary);
  if (solved.precision) {
    summary["precision"] = json_of(*solved.precision);
    summary["precision"]["name"] = "mixed";
  }
  if (solved.precision_4ph) {
    summary["precision"]["four_phonon"] = json_of(*solved.precision_4ph);
    summary["precision"]["four_phonon"]["sampled_tiles"] =
        solved.four_phonon->precision_errors->tiles;
  }
  if (study) summary["convergence"] = summarise_study(deck, *study);
  return summary;
}

/// Makes the directory of one case. @throws StorageError
std::filesystem::path case_directory(const std::filesystem::path& job, const std::string& name) {
  std::error_code failure;
  std::filesystem::create_directories(job / name, failure);
  if (failure)
    throw StorageError("cannot create '" + (job / name).string() + "': " + failure.message());
  return job / name;
}

/// Removes the checkpoints of a finished job, and those of its cases with their directories.
void remove_checkpoints(const std::filesystem::path& directory) {
  std::error_code none;
  std::vector<std::filesystem::path> cases;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none))
    if (entry.is_directory(none)) cases.push_back(entry.path());
  for (const std::filesystem::path& one : cases) {
    CheckpointFiles(one).remove_all();
    std::filesystem::remove(one, none);
  }
  CheckpointFiles(directory).remove_all();
}

/// Runs a job with renormalised phonons. Each case gets a directory with files of its own.
nlohmann::json run_ladder(const Deck& deck, const CaseSite& site, const RunOptions& options,
                          Progress& progress) {
  nlohmann::json cases = nlohmann::json::object();
  const auto take = [&](const LadderCase& one) {
    if (!options.ranks->leads()) return;
    Deck own = deck;
    own.second_order = one.model.second_order;
    own.control.temperatures_k = one.temperatures_k;
    cases[one.name] = write_case(own, one.solved, nullptr, options,
                                 case_directory(options.output_directory, one.name));
  };
  const Ladder ladder = solve_ladder(deck, *deck.renormalising_order, deck.control.case_options(),
                                     site, take, progress);
  if (!options.ranks->leads()) return {};
  for (const std::string& warning : ladder.warnings) progress.log("warning: " + warning);
  nlohmann::json summary = summarise_ladder(deck, ladder, std::move(cases));
  H5Writer out(options.output_directory / "result.h5");
  write_ladder(deck, ladder, out);
  write_result_root("thermal", options.inputs, summary["warnings"].get<std::vector<std::string>>(),
                    &out);
  describe_result(&out);
  out.commit();
  remove_checkpoints(options.checkpoint_directory);
  return summary;
}

/// Renormalises the constants of a deck at its lowest temperature, which is then its only one.
/// Returns the plan of all temperatures, of which that one is measured.
nlohmann::json plan_ladder(Deck& deck, const Device& device) {
  const CaseOptions options = deck.control.case_options();
  const HarmonicOptions& harmonic = options.transport.harmonic;
  const std::vector<double> temperatures_k = deck.control.temperatures_k;
  const double lowest_k = *std::min_element(temperatures_k.begin(), temperatures_k.end());
  const auto start = std::chrono::steady_clock::now();
  const SelfConsistentConstants constants =
      SelfConsistentPhonons(deck.crystal, deck.second_order, *deck.renormalising_order, harmonic,
                            self_consistent_options(options.renormalisation), device)
          .solve(lowest_k);
  deck.second_order = with_correction(deck.second_order, constants.correction, harmonic.constants);
  const bool bubble = options.renormalisation.bubble;
  if (bubble)
    deck.second_order = with_correction(
        deck.second_order, bubble_pairs(deck, options, lowest_k, device), harmonic.constants);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  deck.control.temperatures_k = {lowest_k};
  return {{"cases", temperatures_k.size() * (bubble ? 2 : 1) + 1},
          {"checked_temperature_k", lowest_k},
          {"mesh", options.renormalisation.mesh},
          {"iterations", constants.iterations},
          {"memory_bytes", constants.memory_bytes},
          {"seconds_estimate", seconds * static_cast<double>(temperatures_k.size())}};
}

class ThermalTask : public Task {
 public:
  nlohmann::json validate(const DeckSource& source, const Device& device) const override {
    Deck deck = read_deck(source.path, source.settings, computed_constants);
    require_possible_study(deck.control.case_options());
    covariance_beside(deck, source.path);
    const std::vector<double> temperatures_k = deck.control.temperatures_k;
    const nlohmann::json ladder =
        deck.control.renormalise ? plan_ladder(deck, device) : nlohmann::json();
    const CaseOptions options = deck.control.case_options();
    SilentProgress silent;
    ConductivityRun run = start_case(deck, options, silent);
    require_transport(deck, options, run.modes);
    nlohmann::json report = lint(deck, options, run, device);
    if (!ladder.is_null()) {
      nlohmann::json& plan = report["plan"];
      plan["temperatures_k"] = temperatures_k;
      plan["ladder"] = ladder;
      for (const char* key : {"seconds_3ph_estimate", "seconds_4ph_estimate"})
        if (plan.contains(key)) plan[key] = plan[key].get<double>() * ladder["cases"].get<double>();
    }
    report["ok"] = true;
    report["warnings"] = run.warnings;
    report["deck_sha256"] = deck.digest_sha256;
    return report;
  }

  nlohmann::json run(const RunOptions& options, Progress& progress) const override {
    const Device& device = options.devices.front();
    Deck deck = read_deck(options.deck.path, options.deck.settings, computed_constants);
    if (device.backend == Backend::kCuda &&
        static_cast<int>(options.devices.size()) * options.ranks->size() > 1 &&
        !deck.fourth_order && !deck.control.samples_rates_3ph())
      throw InvalidInput(
          "on GPUs only four-phonon sums and samples are shared out, and 'four_phonon' = .false.: "
          "name one device and start one rank");
    covariance_beside(deck, options.deck.path);  // refuses a broken file before the sums
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
    if (deck.control.renormalise) return run_ladder(deck, site, options, progress);
    const SolvedCase solved = solve_case(deck, case_options, site, progress);
    std::optional<ConvergenceStudy> study;
    if (case_options.study.enabled)
      study = study_convergence(deck, case_options, site, solved, progress);
    if (!options.ranks->leads()) return {};
    nlohmann::json summary =
        write_case(deck, solved, study ? &*study : nullptr, options, options.output_directory);
    remove_checkpoints(options.checkpoint_directory);
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
            "FORCE_CONSTANTS",
            "fc2.hdf5",
            "force_constants.hdf5",
            "fc3.hdf5",
            "fc4.hdf5",
            "covariance.hdf5",
            "*.yaml",
            "*.yaml.xz",
            "*.yaml.gz",
            "infile.*",
            "outfile.*"};
  }

  std::vector<std::string> exports() const override { return {"bte", "phono3py"}; }

  int max_devices() const override { return kMaxDevices; }

  std::string table(const nlohmann::json& summary) const override { return kappa_table(summary); }
};

}  // namespace

std::unique_ptr<Task> make_thermal_task() { return std::make_unique<ThermalTask>(); }

}  // namespace quasi
