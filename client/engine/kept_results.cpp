#include "client/engine/kept_results.hpp"

#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "client/failure.hpp"
#include "client/input/deck.hpp"
#include "client/session/durable_file.hpp"
#include "proto/wire/action/action.hpp"
#include "proto/wire/digest.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "quasi.kept-run.v1";
constexpr std::size_t kEntryBytes = 16 << 20;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// One file of a kept result.
struct KeptFile {
  fs::path name;  ///< relative to the folder of the results
  std::string digest;
};

/// Reads the files of an entry; empty unless this version wrote it.
std::vector<KeptFile> files_of(const Json& entry) {
  if (entry.value("schema", "") != kSchema || entry.value("version", "") != QUASI_VERSION)
    return {};
  std::vector<KeptFile> files;
  for (const Json& file : entry.at("files")) {
    const fs::path name = fs::path(file.at("name").get<std::string>()).lexically_normal();
    const auto digest = file.at("digest").get<std::string>();
    if (name.is_absolute() || *name.begin() == ".." || !wire::is_digest(digest)) return {};
    files.push_back({name, digest});
  }
  return files;
}

/// Copies a file and checks its digest.
bool copy_checked(const fs::path& from, const fs::path& to, const std::string& digest) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  return !error && wire::digest_file(to).digest == digest;
}

}  // namespace

std::optional<LocalAction> local_action(Console& console, v1::JobSpec spec, const fs::path& deck) {
  try {
    const Deck collected = collect_deck(std::string(wire::kind_of(spec)), deck);
    wire::mutable_deck_of(spec)->set_deck(collected.slot);
    for (const LocalInput& file : collected.inputs) {
      v1::Input& input = *spec.add_inputs();
      input.set_slot(file.slot);
      input.set_digest(wire::digest_file(file.path).digest);
      input.set_size_bytes(file.size_bytes);
    }
  } catch (const Failure& failure) {
    console.warn(std::string("the result is not kept: ") + failure.what());
    return std::nullopt;
  } catch (const std::system_error& error) {
    console.warn(std::string("the result is not kept: ") + error.what());
    return std::nullopt;
  }
  return LocalAction{.digest = wire::action_digest(spec), .spec = std::move(spec)};
}

KeptResults::KeptResults(fs::path folder) : folder_(std::move(folder)) {
  for (const char* name : {"runs", "blobs/sha256"}) make_directory(folder_ / name, Access::kUmask);
}

fs::path KeptResults::entry_of(const LocalAction& action) const {
  return folder_ / "runs" / (action.digest + ".json");
}

fs::path KeptResults::blob_of(const std::string& digest) const {
  return folder_ / "blobs" / "sha256" / digest.substr(0, 2) / digest.substr(2, 2) / digest;
}

std::optional<std::int64_t> KeptResults::take(Console& console, const LocalAction& action,
                                              const fs::path& output) const {
  std::error_code ignored;
  const fs::path path = entry_of(action);
  if (!fs::exists(path, ignored)) return std::nullopt;
  std::vector<KeptFile> files;
  std::int64_t made_ms = 0;
  try {
    const Json entry = Json::parse(read_whole(path, kEntryBytes));
    files = files_of(entry);
    made_ms = entry.at("kept_ms").get<std::int64_t>();
  } catch (const nlohmann::json::exception&) {
    files.clear();
  }
  if (files.empty()) return std::nullopt;
  for (const KeptFile& file : files) {
    if (copy_checked(blob_of(file.digest), output / file.name, file.digest)) continue;
    console.warn("a kept file of an equal run is damaged or gone: '" +
                 blob_of(file.digest).string() + "'; the job runs again");
    fs::remove(blob_of(file.digest), ignored);
    fs::remove(path, ignored);
    for (const KeptFile& copied : files) fs::remove(output / copied.name, ignored);
    return std::nullopt;
  }
  return made_ms;
}

void KeptResults::keep(const LocalAction& action, const fs::path& output,
                       const std::set<fs::path>& names) const {
  Json entry{{"schema", kSchema},
             {"version", QUASI_VERSION},
             {"kept_ms", now_ms()},
             {"action", Json::array()},
             {"files", Json::array()}};
  for (const wire::ActionField& field : wire::action_fields(action.spec))
    entry["action"].push_back({{"name", field.name}, {"value", field.value}});
  for (const fs::path& name : names) {
    const wire::FileDigest file = wire::digest_file(output / name);
    entry["files"].push_back({{"name", name.generic_string()},
                              {"digest", file.digest},
                              {"size_bytes", file.size_bytes}});
    const fs::path blob = blob_of(file.digest);
    std::error_code ignored;
    if (fs::exists(blob, ignored)) continue;
    make_directory(blob.parent_path(), Access::kUmask);
    const fs::path aside = blob.string() + ".tmp" + std::to_string(::getpid());
    copy_durably(output / name, aside);
    publish(aside, blob);
  }
  write_durably(entry_of(action), entry.dump(1) + "\n");
}

}  // namespace quasi::client
