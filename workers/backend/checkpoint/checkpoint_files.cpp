#include "workers/backend/checkpoint/checkpoint_files.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "workers/backend/error.hpp"
#include "workers/files/durable_file.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "ckpt-";

std::optional<std::int64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  return error == std::errc() && rest == end && step >= 0 ? std::optional(step) : std::nullopt;
}

}  // namespace

std::vector<fs::path> CheckpointFiles::newest_first() const {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code none;  // an absent directory holds no files
  if (keeps())
    for (const auto& entry : fs::directory_iterator(directory_, none))
      if (const auto step = step_of(entry.path())) found.emplace_back(*step, entry.path());
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

void CheckpointFiles::add(const std::function<void(const fs::path&)>& write,
                          Progress& progress) const {
  if (!keeps()) return;
  const auto older = newest_first();
  const std::int64_t step = older.empty() ? 1 : *step_of(older.front()) + 1;
  const fs::path path = directory_ / (std::string(kPrefix) + std::to_string(step));
  const fs::path temporary = directory_ / "next-checkpoint.tmp";
  write(temporary);
  try {
    files::sync_file(temporary);
    files::publish(temporary, path);
  } catch (const files::FileFailure& failure) {
    throw StorageError("cannot complete checkpoint '" + path.string() + "': " + failure.sentence() +
                       "; check the disk");
  }
  std::error_code failure;
  for (std::size_t i = 1; i < older.size(); ++i) fs::remove(older[i], failure);
  progress.checkpoint_ready(path.string(), step);
}

std::int64_t CheckpointFiles::free_disk_bytes() const {
  std::error_code failure;
  const fs::space_info space = fs::space(directory_, failure);
  return failure ? 0 : static_cast<std::int64_t>(space.available);
}

void CheckpointFiles::remove_all() const {
  std::error_code none;
  for (const auto& path : newest_first()) fs::remove(path, none);
}

}  // namespace quasi
