#include "workers/daemon/attempt/attempt_store.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace quasi {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> parse_fence(const std::string& name) {
  std::uint64_t fence = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, fence);
  return error == std::errc() && rest == end && !name.empty() ? std::optional(fence) : std::nullopt;
}

template <typename Message>
std::optional<Message> read_message(const FileSystem& files, const fs::path& path) {
  const auto bytes = files.read_file(path);
  Message message;
  return bytes && message.ParseFromString(*bytes) ? std::optional(std::move(message))
                                                  : std::nullopt;
}

}  // namespace

AttemptStore::AttemptStore(FileSystem& files, fs::path state_directory)
    : files_(files),
      attempts_(state_directory / "attempts"),
      kept_(state_directory / "kept"),
      trash_(state_directory / "trash") {
  for (const auto& directory : {attempts_, kept_, trash_}) files_.make_directory(directory);
  files_.sync_directory(state_directory);
  files_.sync_directory(state_directory.parent_path());
}

AttemptPaths AttemptStore::paths(std::uint64_t fence) const {
  const fs::path root = attempts_ / std::to_string(fence);
  return {.root = root,
          .inputs = root / "in",
          .outputs = root / "out",
          .checkpoints = root / "ckpt",
          .cache = root / "cache",
          .log = root / "log.txt"};
}

void AttemptStore::create(const v1::Grant& grant) {
  const AttemptPaths at = paths(grant.attempt().fence());
  for (const auto& directory : {at.inputs, at.outputs, at.checkpoints, at.cache})
    files_.make_directory(directory);
  files_.sync_directory(attempts_);
  replace_file_durably(files_, at.root / "grant.pb", grant.SerializeAsString());
}

void AttemptStore::record_child(std::uint64_t fence, const ProcessIdentity& child) {
  // The file is not synced, because a crash of the machine ends the child as well.
  files_.write_file(paths(fence).root / "child",
                    std::to_string(child.pid) + " " + std::to_string(child.start_ticks) + "\n");
}

void AttemptStore::record_outcome(const v1::CompleteAttemptRequest& outcome) {
  replace_file_durably(files_, paths(outcome.attempt().fence()).root / "outcome.pb",
                       outcome.SerializeAsString());
}

std::optional<v1::CompleteAttemptRequest> AttemptStore::outcome(std::uint64_t fence) const {
  return read_message<v1::CompleteAttemptRequest>(files_, paths(fence).root / "outcome.pb");
}

std::optional<AttemptStore::Recovered> AttemptStore::read(const fs::path& directory) const {
  auto grant = read_message<v1::Grant>(files_, directory / "grant.pb");
  if (!grant) return std::nullopt;
  Recovered attempt{.grant = std::move(*grant), .child = {}, .outcome = {}};
  if (const auto text = files_.read_file(directory / "child")) {
    ProcessIdentity child;
    if (std::istringstream(*text) >> child.pid >> child.start_ticks) attempt.child = child;
  }
  return attempt;
}

std::vector<AttemptStore::Recovered> AttemptStore::recover() {
  for (const auto& name : files_.list(trash_)) files_.remove_tree(trash_ / name);
  std::vector<Recovered> found;
  for (const auto& name : files_.list(attempts_)) {
    const auto fence = parse_fence(name);
    auto attempt = read(attempts_ / name);
    if (!fence || !attempt || attempt->grant.attempt().fence() != *fence) {
      // The daemon crashed before it recorded the grant, so nothing was done under this grant.
      files_.remove_tree(attempts_ / name);
      continue;
    }
    attempt->outcome = outcome(*fence);
    found.push_back(std::move(*attempt));
  }
  std::sort(found.begin(), found.end(), [](const Recovered& a, const Recovered& b) {
    return a.grant.attempt().fence() < b.grant.attempt().fence();
  });
  return found;
}

void AttemptStore::move_and_sync(std::uint64_t fence, const char* to) {
  const fs::path target = attempts_.parent_path() / to;
  files_.remove_tree(target / std::to_string(fence));
  files_.rename(paths(fence).root, target / std::to_string(fence));
  files_.sync_directory(attempts_);
  files_.sync_directory(target);
}

void AttemptStore::remove(std::uint64_t fence) {
  // The directory is first renamed and then deleted, so that a crash never leaves half of an
  // attempt.
  move_and_sync(fence, "trash");
  files_.remove_tree(trash_ / std::to_string(fence));
}

void AttemptStore::keep(std::uint64_t fence) { move_and_sync(fence, "kept"); }

std::vector<AttemptStore::Recovered> AttemptStore::kept_engines() const {
  std::vector<Recovered> found;
  for (const std::uint64_t fence : kept()) {
    auto attempt = read(kept_ / std::to_string(fence));
    if (attempt && attempt->child) found.push_back(std::move(*attempt));
  }
  return found;
}

std::vector<std::uint64_t> AttemptStore::kept() const {
  std::vector<std::uint64_t> fences;
  for (const auto& name : files_.list(kept_))
    if (const auto fence = parse_fence(name)) fences.push_back(*fence);
  return fences;
}

void AttemptStore::remove_kept(std::uint64_t fence) {
  files_.remove_tree(kept_ / std::to_string(fence));
}

}  // namespace quasi
