#include "client/commands/sweeps/table.hpp"

#include <nlohmann/json.hpp>

#include "client/input/job_ids.hpp"
#include "client/input/sweeps/set_ids.hpp"
#include "client/session/durable_file.hpp"
#include "client/views/figures.hpp"
#include "client/views/job_view.hpp"
#include "proto/wire/sweeps/figures.hpp"

namespace quasi::client {
namespace {

using Cells = std::vector<std::pair<std::string, std::string>>;

/// The jobs of the words; those of a set come without a call for each of them.
std::vector<v1::Job> jobs_of(Session& session, const std::vector<std::string>& words,
                             const std::optional<v1::JobSet>& set) {
  if (set) return jobs_of_set(session, set->id());
  std::vector<v1::Job> jobs;
  for (const std::string& id : resolve_job_ids(session, words)) {
    jobs.emplace_back().set_id(id);
    jobs.back().set_state(v1::JOB_STATE_SUCCEEDED);  // the whole job is asked for below
  }
  return jobs;
}

}  // namespace

ExitStatus table(Session& session, const TableOptions& options) {
  const std::optional<v1::JobSet> set = only_set(session, options.jobs);
  const std::vector<std::string> keys = set ? keys_of(*set) : std::vector<std::string>{};
  Csv csv;
  Json rows = Json::array();
  for (v1::Job& job : jobs_of(session, options.jobs, set)) {
    if (job.state() == v1::JOB_STATE_SUCCEEDED) {
      v1::GetJobRequest request;
      request.set_job_id(job.id());
      job = session.server.call(&Jobs::GetJob, request).job();
    }
    Cells cells = {{"job", job.id()}, {"name", job.spec().name()}};
    for (const std::string& key : keys) cells.emplace_back(key, value_in(job, key));
    cells.emplace_back("state", state_word(job.state()));
    for (auto& figure : wire::figures_in(job.summary_json())) cells.push_back(std::move(figure));
    csv.add(cells);
    Json row = Json::object();
    for (const auto& [name, value] : cells) row[name] = value;
    if (session.console.format() == Format::kJsonl) session.console.record(row);
    rows.push_back(std::move(row));
  }
  if (session.console.format() == Format::kJson) {
    session.console.document({{"set", set ? Json(set->id()) : Json()}, {"rows", rows}});
  } else if (!options.output.empty()) {
    write_durably(options.output, csv.text());
    session.console.note("wrote " + std::to_string(rows.size()) + " rows to '" + options.output +
                         "'");
  } else if (session.console.format() != Format::kJsonl) {
    session.console.data(csv.text());
  }
  return ExitStatus::kOk;
}

}  // namespace quasi::client
