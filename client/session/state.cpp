#include "client/session/state.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "client/failure.hpp"
#include "client/session/durable_file.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kEntryLimitBytes = 64 << 20;  // 1,000 specs of 64 KiB

bool is_entry(const fs::path& path) { return path.extension() == ".json"; }

PendingSubmission read_entry(const fs::path& path) {
  try {
    const Json entry = Json::parse(read_whole(path, kEntryLimitBytes));
    return {.request_id = entry.at("request_id"),
            .created_ms = entry.at("created_ms"),
            .address = entry.at("address"),
            .store_id = entry.at("store_id"),
            .request_json = entry.at("request").dump()};
  } catch (const nlohmann::json::exception& error) {
    throw Failure(ExitStatus::kLocalFile,
                  "'" + path.string() + "' is no pending submission: " + error.what(),
                  "it was not written by this program; move it away");
  }
}

}  // namespace

fs::path State::pending_path(const std::string& request_id) const {
  return directory_ / "pending" / (request_id + ".json");
}

void State::add_pending(const PendingSubmission& submission) const {
  // A relative directory would depend on the working directory, and later commands would not find
  // it.
  if (directory_.empty())
    throw Failure(
        ExitStatus::kLocalFile,
        "nothing was sent: a submission is recorded before it is sent, and HOME, which names "
        "the directory, is not set",
        "set HOME, or QUASI_STATE to a folder of yours");
  make_directory(directory_ / "pending", Access::kOwner);
  const Json entry{
      {"schema", "quasi.pending.v1"},        {"request_id", submission.request_id},
      {"created_ms", submission.created_ms}, {"address", submission.address},
      {"store_id", submission.store_id},     {"request", Json::parse(submission.request_json)}};
  write_durably(pending_path(submission.request_id), entry.dump(1) + "\n");
}

void State::remove_pending(const std::string& request_id) const {
  std::error_code error;
  fs::remove(pending_path(request_id), error);
  if (error)
    throw Failure(ExitStatus::kLocalFile,
                  "cannot remove '" + pending_path(request_id).string() + "': " + error.message());
}

std::vector<PendingSubmission> State::pending() const {
  std::vector<PendingSubmission> entries;
  std::error_code error;
  for (fs::directory_iterator at(directory_ / "pending", error), end; !error && at != end;
       at.increment(error))
    if (is_entry(at->path())) entries.push_back(read_entry(at->path()));
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.created_ms, a.request_id) < std::tie(b.created_ms, b.request_id);
  });
  return entries;
}

std::size_t State::pending_count() const {
  std::size_t count = 0;
  std::error_code error;
  for (fs::directory_iterator at(directory_ / "pending", error), end; !error && at != end;
       at.increment(error))
    if (is_entry(at->path())) ++count;
  return count;
}

void State::remember_last(const std::vector<std::string>& job_ids) const {
  make_directory(directory_, Access::kOwner);
  write_durably(directory_ / "last.json", Json{{"jobs", job_ids}}.dump() + "\n");
}

std::vector<std::string> State::last() const {
  std::error_code error;
  const fs::path path = directory_ / "last.json";
  if (!fs::exists(path, error)) return {};
  try {
    return Json::parse(read_whole(path, kEntryLimitBytes))
        .at("jobs")
        .get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    throw Failure(ExitStatus::kLocalFile, "'" + path.string() + "' is damaged",
                  "remove it; only 'last' depends on it");
  }
}

}  // namespace quasi::client
