#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

#include "workers/daemon/ports/file_system.hpp"

namespace quasi::test {

/// The exception that ends the process. The code under test never catches it.
struct Crash {};

/// Counts the points where a process could die, and throws Crash at a chosen one.
class CrashPoints {
 public:
  void die_at(std::int64_t point) { die_at_ = point; }
  void never() { die_at_ = -1; }
  void pass() {
    if (++passed_ == die_at_) throw Crash{};
  }
  std::int64_t passed() const { return passed_; }
  void restart() { passed_ = 0; }

 private:
  std::int64_t passed_ = 0;
  std::int64_t die_at_ = -1;
};

/// The fate of unsynced changes in a power cut.
enum class Loss { kNothing, kEverything, kSome };

/// A file system in memory that distinguishes what is on disk: the bytes of a file once it was
/// synced, and the entries of a directory once it was synced. Every change passes a crash point
/// before it happens.
class CrashingFiles : public FileSystem {
 public:
  explicit CrashingFiles(CrashPoints& points);

  bool refuse_writes = false;  ///< the disk is full: no file can be created or written

  /// Leaves the state after a crash.
  void lose(Loss loss, std::mt19937_64& random);
  /// Makes a change from another process, without a crash point.
  void write_from_outside(const std::filesystem::path& path, const std::string& bytes);
  /// Syncs a file and the directories above it, as another process does.
  void sync_from_outside(const std::filesystem::path& path);

  void make_directory(const std::filesystem::path& path) override;
  void write_file(const std::filesystem::path& path, std::string_view bytes) override;
  void append_file(const std::filesystem::path& path, std::string_view bytes) override;
  void sync_file(const std::filesystem::path& path) override;
  void sync_directory(const std::filesystem::path& path) override;
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  void remove_tree(const std::filesystem::path& path) override;
  void link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to) override;
  void make_read_only(const std::filesystem::path& path) override;
  std::optional<std::string> read_file(const std::filesystem::path& path) const override;
  std::string read_range(const std::filesystem::path& path, std::uint64_t offset,
                         std::uint64_t most) const override;
  bool exists(const std::filesystem::path& path) const override;
  bool is_directory(const std::filesystem::path& path) const override;
  std::uint64_t size_bytes(const std::filesystem::path& path) const override;
  std::vector<std::string> list(const std::filesystem::path& path) const override;
  std::string digest(const std::filesystem::path& path) const override;

 private:
  struct Node;
  using NodePointer = std::shared_ptr<Node>;
  using Entries = std::map<std::string, NodePointer>;
  struct Node {
    bool directory = false;
    std::string bytes, synced_bytes;
    Entries entries, synced_entries;
  };

  NodePointer find(const std::filesystem::path& path) const;
  NodePointer parent_of(const std::filesystem::path& path) const;
  NodePointer file(const std::filesystem::path& path) const;
  void put(const std::filesystem::path& path, std::string_view bytes, bool append);
  static void lose(Node& node, Loss loss, std::mt19937_64& random);

  CrashPoints& points_;
  NodePointer root_;
};

}  // namespace quasi::test
