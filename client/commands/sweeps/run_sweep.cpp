#include "client/commands/sweeps/run_sweep.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "client/engine/interrupt.hpp"
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

/// The row of a job in sweep.csv.
Cells row_of(const v1::Sweep& sweep, std::size_t index, const fs::path& folder, ExitStatus status) {
  Cells cells = {{"folder", folder.filename().string()}};
  const std::vector<std::size_t> points = wire::points_of_job(sweep, index);
  for (std::size_t a = 0; a < points.size(); ++a) {
    const v1::SweepAxis& axis = sweep.axes(static_cast<int>(a));
    for (int k = 0; k < axis.keys_size(); ++k)
      cells.emplace_back(axis.keys(k), axis.points(static_cast<int>(points[a])).values(k));
  }
  cells.emplace_back("state", status == ExitStatus::kOk ? "succeeded" : "failed");
  std::error_code ignored;
  if (status == ExitStatus::kOk && fs::exists(folder / "summary.json", ignored))
    for (auto& figure : figures_of(
             Json::parse(read_whole(folder / "summary.json", kSummaryBytes), nullptr, false)))
      cells.push_back(std::move(figure));
  return cells;
}

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
    csv.add(row_of(sweep, done, folder, status));
    write_durably(base / "sweep.csv", csv.text());
    const unsigned most = options.sweep.stop_after_failures.value_or(0);
    if (most == 0 || failures < most || done + 1 == n_jobs) continue;
    console.warn("stopped after " + std::to_string(failures) + " failures; " +
                 std::to_string(n_jobs - done - 1) + " jobs were not run");
    break;
  }
  console.note("the table of the sweep: '" + (base / "sweep.csv").string() + "'");
  if (failures == 0) return ExitStatus::kOk;
  return failures == n_jobs ? ExitStatus::kJobFailed : ExitStatus::kPartial;
}

}  // namespace quasi::client
