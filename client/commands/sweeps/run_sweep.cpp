#include "client/commands/sweeps/run_sweep.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "client/engine/interrupt.hpp"
#include "client/input/sweeps/stop_rules.hpp"
#include "client/session/durable_file.hpp"
#include "client/views/figures.hpp"
#include "proto/wire/sweeps/sweep.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;
using Cells = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t kSummaryBytes = std::size_t{64} << 20;

/// The folder of a job below the output: its indices, e.g. "0-3".
std::string folder_of_job(const v1::Sweep& sweep, std::size_t index) {
  std::string name;
  for (const std::size_t point : wire::points_of_job(sweep, index))
    name += (name.empty() ? "" : "-") + std::to_string(point);
  return name;
}

void refuse_violations(const v1::Sweep& sweep) {
  v1::Sweep checked = sweep;
  // The deck is used where it is, so that it has no inputs.
  v1::DeckWork* deck = wire::mutable_deck_of(*checked.mutable_job());
  if (deck != nullptr) deck->set_deck("deck");
  v1::Input& input = *checked.mutable_job()->add_inputs();
  input.set_slot("deck");
  input.set_digest(std::string(64, '0'));
  wire::Violations violations;
  wire::validate_sweep(checked, "sweep", {}, violations);
  if (violations.empty()) return;
  throw Failure(ExitStatus::kInvalidInput,
                violations.list().front().field + ": " + violations.list().front().description,
                "see: quasi help run");
}

/// Runs one job. A job that cannot start ends the sweep; one that fails does not.
ExitStatus run_one(Console& console, const RunCommandOptions& options) {
  try {
    return run(console, options);
  } catch (const Failure& failure) {
    if (failure.status == ExitStatus::kConflict || failure.status == ExitStatus::kUsage ||
        failure.status == ExitStatus::kLocalFile)
      throw;
    console.warn(failure.what());
    return failure.status;
  }
}

/// The figures of a job that succeeded.
Cells figures_of_job(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / "summary.json", ignored)) return {};
  return wire::figures_in(read_whole(folder / "summary.json", kSummaryBytes));
}

/// The row of a job in sweep.csv.
Cells row_of(const v1::Sweep& sweep, std::size_t index, const fs::path& folder, ExitStatus status,
             const Cells& figures) {
  Cells cells = {{"folder", folder.filename().string()}};
  const std::vector<std::size_t> points = wire::points_of_job(sweep, index);
  for (std::size_t a = 0; a < points.size(); ++a) {
    const v1::SweepAxis& axis = sweep.axes(static_cast<int>(a));
    for (int k = 0; k < axis.keys_size(); ++k)
      cells.emplace_back(axis.keys(k), axis.points(static_cast<int>(points[a])).values(k));
  }
  cells.emplace_back("state", status == ExitStatus::kOk ? "succeeded" : "failed");
  cells.insert(cells.end(), figures.begin(), figures.end());
  return cells;
}

/// Counts the jobs that met each stop rule.
class StopRules {
 public:
  explicit StopRules(const v1::Sweep& sweep) {
    for (const v1::StopRule& rule : sweep.stop_rules()) rules_.push_back({condition_of(rule), 0});
  }
  /// Counts a job that succeeded for each rule that its figures meet.
  /// @return the reason for which the sweep stops, to follow "stopped"; "" if it goes on
  std::string count(const Cells& figures) {
    for (auto& [condition, met] : rules_) {
      const auto figure = wire::number_of(figures, condition.figure);
      if (!figure || !wire::holds(*figure, condition.comparison, condition.value)) continue;
      if (++met >= condition.jobs)
        return "because " + wire::text_of(condition) + ": " + wire::shortest(*figure) +
               " in the last job";
    }
    return "";
  }

 private:
  std::vector<std::pair<wire::StopCondition, std::int64_t>> rules_;
};

}  // namespace

ExitStatus run_sweep(Console& console, const RunCommandOptions& options, const v1::JobSpec& job) {
  if (console.json())
    throw Failure(ExitStatus::kUsage, "--json: a sweep prints one result after the other",
                  "leave --json out, and read sweep.csv in the output folder");
  if (options.sweep.max_concurrent)
    throw Failure(ExitStatus::kUsage, "--max-concurrent: quasi run runs one job at a time",
                  "leave it out, or submit the sweep to a server");
  const v1::Sweep sweep = sweep_of(options.sweep, job);
  refuse_violations(sweep);
  const fs::path base = options.output.empty() ? "quasi-out" : options.output;
  make_directory(base, Access::kUmask);
  const std::size_t n_jobs = wire::jobs_in_sweep(sweep);
  Csv csv;
  StopRules rules(sweep);
  std::size_t failures = 0, done = 0;
  for (; done < n_jobs; ++done) {
    RunCommandOptions one = options;
    one.sweep = {};
    const fs::path folder = base / folder_of_job(sweep, done);
    one.output = folder.string();
    const v1::JobSpec spec = wire::job_of_sweep(sweep, done);
    one.settings.clear();
    for (const v1::Setting& setting : wire::deck_of(spec)->settings())
      one.settings.push_back(setting.key() + "=" + setting.value());
    console.note(std::to_string(done + 1) + " of " + std::to_string(n_jobs) + ": " +
                 point_text(sweep, done));
    const ExitStatus status = run_one(console, one);
    if (interrupt::requested()) return static_cast<ExitStatus>(interrupt::exit_status());
    if (status != ExitStatus::kOk) ++failures;
    const bool succeeded = status == ExitStatus::kOk;
    const Cells figures = succeeded ? figures_of_job(folder) : Cells{};
    csv.add(row_of(sweep, done, folder, status, figures));
    write_durably(base / "sweep.csv", csv.text());
    const unsigned most = options.sweep.stop_after_failures.value_or(0);
    std::string why = succeeded ? rules.count(figures) : "";
    if (most > 0 && failures >= most) why = "after " + std::to_string(failures) + " failures";
    if (why.empty() || done + 1 == n_jobs) continue;
    console.warn("stopped " + why + "; " + std::to_string(n_jobs - done - 1) +
                 " jobs were not run");
    break;
  }
  console.note("the table of the sweep: '" + (base / "sweep.csv").string() + "'");
  if (failures == 0) return ExitStatus::kOk;
  return failures == n_jobs ? ExitStatus::kJobFailed : ExitStatus::kPartial;
}

}  // namespace quasi::client
