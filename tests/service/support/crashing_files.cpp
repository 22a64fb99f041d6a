#include "tests/service/support/crashing_files.hpp"

#include <set>

#include "proto/wire/digest.hpp"
#include "workers/daemon/error.hpp"

namespace quasi::test {

namespace fs = std::filesystem;

CrashingFiles::CrashingFiles(CrashPoints& points)
    : points_(points), root_(std::make_shared<Node>()) {
  root_->directory = true;
}

CrashingFiles::NodePointer CrashingFiles::find(const fs::path& path) const {
  NodePointer node = root_;
  for (const auto& part : path.relative_path()) {
    if (part.empty() || part == ".") continue;
    if (!node->directory) return nullptr;
    const auto entry = node->entries.find(part.string());
    if (entry == node->entries.end()) return nullptr;
    node = entry->second;
  }
  return node;
}

CrashingFiles::NodePointer CrashingFiles::parent_of(const fs::path& path) const {
  const auto parent = find(path.parent_path());
  if (!parent || !parent->directory)
    throw StorageFailure("no directory '" + path.parent_path().string() + "'");
  return parent;
}

CrashingFiles::NodePointer CrashingFiles::file(const fs::path& path) const {
  const auto node = find(path);
  if (!node || node->directory) throw StorageFailure("no file '" + path.string() + "'");
  return node;
}

void CrashingFiles::put(const fs::path& path, std::string_view bytes, bool append) {
  if (refuse_writes) throw StorageFailure("cannot write '" + path.string() + "': no space");
  auto& entry = parent_of(path)->entries[path.filename().string()];
  if (!entry) entry = std::make_shared<Node>();
  if (entry->directory) throw StorageFailure("'" + path.string() + "' is a directory");
  if (!append) entry->bytes.clear();
  entry->bytes += bytes;
}

void CrashingFiles::write_from_outside(const fs::path& path, const std::string& bytes) {
  NodePointer node = root_;
  for (const auto& part : path.parent_path().relative_path()) {
    NodePointer& entry = node->entries[part.string()];
    if (!entry) {
      entry = std::make_shared<Node>();
      entry->directory = true;
    }
    node = entry;
  }
  put(path, bytes, false);
}

void CrashingFiles::sync_from_outside(const fs::path& path) {
  NodePointer node = root_;
  for (const auto& part : path.relative_path()) {
    const NodePointer entry = node->entries.at(part.string());
    node->synced_entries[part.string()] = entry;
    node = entry;
  }
  node->synced_bytes = node->bytes;
}

void CrashingFiles::make_directory(const fs::path& path) {
  NodePointer node = root_;
  for (const auto& part : path.relative_path()) {
    if (!node->entries.contains(part.string())) {
      if (refuse_writes) throw StorageFailure("cannot make '" + path.string() + "': no space");
      points_.pass();
      node->entries[part.string()] = std::make_shared<Node>();
      node->entries[part.string()]->directory = true;
    }
    node = node->entries[part.string()];
  }
}

void CrashingFiles::write_file(const fs::path& path, std::string_view bytes) {
  points_.pass();
  put(path, "", false);  // the file is created or truncated, and then the process may die
  points_.pass();
  put(path, bytes, false);
}

void CrashingFiles::append_file(const fs::path& path, std::string_view bytes) {
  points_.pass();
  put(path, bytes, true);
}

void CrashingFiles::sync_file(const fs::path& path) {
  points_.pass();
  const auto node = file(path);
  node->synced_bytes = node->bytes;
}

void CrashingFiles::sync_directory(const fs::path& path) {
  points_.pass();
  const auto node = find(path);
  if (!node || !node->directory) throw StorageFailure("no directory '" + path.string() + "'");
  node->synced_entries = node->entries;
}

void CrashingFiles::rename(const fs::path& from, const fs::path& to) {
  points_.pass();
  const auto node = find(from);
  if (!node) throw StorageFailure("no '" + from.string() + "' to rename");
  parent_of(to)->entries[to.filename().string()] = node;
  parent_of(from)->entries.erase(from.filename().string());
}

void CrashingFiles::remove_tree(const fs::path& path) {
  const auto node = find(path);
  if (!node) return;
  if (node->directory)
    for (const auto& name : list(path)) remove_tree(path / name);
  points_.pass();
  parent_of(path)->entries.erase(path.filename().string());
}

void CrashingFiles::link_or_copy(const fs::path& from, const fs::path& to) {
  make_directory(to.parent_path());
  points_.pass();
  parent_of(to)->entries[to.filename().string()] = file(from);
}

void CrashingFiles::make_read_only(const fs::path&) { points_.pass(); }

std::optional<std::string> CrashingFiles::read_file(const fs::path& path) const {
  const auto node = find(path);
  return node && !node->directory ? std::optional(node->bytes) : std::nullopt;
}

std::string CrashingFiles::read_range(const fs::path& path, std::uint64_t offset,
                                      std::uint64_t most) const {
  const auto bytes = read_file(path).value_or("");
  return offset < bytes.size() ? bytes.substr(offset, most) : std::string();
}

bool CrashingFiles::exists(const fs::path& path) const { return find(path) != nullptr; }

bool CrashingFiles::is_directory(const fs::path& path) const {
  const auto node = find(path);
  return node && node->directory;
}

std::uint64_t CrashingFiles::size_bytes(const fs::path& path) const {
  return file(path)->bytes.size();
}

std::vector<std::string> CrashingFiles::list(const fs::path& path) const {
  std::vector<std::string> names;
  if (const auto node = find(path); node && node->directory)
    for (const auto& [name, entry] : node->entries) names.push_back(name);
  return names;
}

std::string CrashingFiles::digest(const fs::path& path) const {
  return wire::sha256_hex(file(path)->bytes);
}

void CrashingFiles::lose(Loss loss, std::mt19937_64& random) { lose(*root_, loss, random); }

void CrashingFiles::lose(Node& node, Loss loss, std::mt19937_64& random) {
  const auto survives = [&] {
    return loss == Loss::kNothing || (loss == Loss::kSome && random() % 2 == 0);
  };
  if (!node.directory) {
    if (node.bytes == node.synced_bytes) return;
    if (!survives()) {
      // Bytes that were not synced may exist in part, or the file may hold its earlier bytes.
      const bool torn = loss == Loss::kSome && !node.bytes.empty() && random() % 2 == 0;
      node.bytes = torn ? node.bytes.substr(0, random() % node.bytes.size()) : node.synced_bytes;
    }
    node.synced_bytes = node.bytes;
    return;
  }
  std::set<std::string> names;
  for (const auto& [name, entry] : node.entries) names.insert(name);
  for (const auto& [name, entry] : node.synced_entries) names.insert(name);
  Entries left;
  for (const auto& name : names) {
    const auto now = node.entries.find(name);
    const auto synced = node.synced_entries.find(name);
    const bool same = now != node.entries.end() && synced != node.synced_entries.end() &&
                      now->second == synced->second;
    const auto& from = same || survives() ? node.entries : node.synced_entries;
    if (const auto entry = from.find(name); entry != from.end()) left[name] = entry->second;
  }
  node.entries = node.synced_entries = left;
  for (auto& [name, entry] : node.entries) lose(*entry, loss, random);
}

}  // namespace quasi::test
