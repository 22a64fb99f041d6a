#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "server/store/file_system.hpp"

struct sqlite3_vfs;

namespace quasi::server::test {

/// A disk in memory whose power can be cut before any change. Bytes survive after sync() of the
/// file, and names survive after sync_directory() of their directory.
///
/// It is a FileSystem for the server's own files and a VFS for SQLite, over the same names. Every
/// change (write, sync, truncate, create, rename, remove, make directory) is one point. After the
/// cut all calls fail with EIO.
class PowerCutDisk : public FileSystem {
 public:
  /// The share of the unsynced changes that survives.
  enum class Loss { kNothing, kEverything, kRandomPart };

  explicit PowerCutDisk(const std::string& root);
  ~PowerCutDisk() override;

  /// Cuts the power before the point of this number, counted from this call; 0: never.
  void cut_at(std::int64_t point) {
    points_ = 0;
    cut_at_ = point;
  }
  std::int64_t points() const { return points_; }
  bool is_cut() const { return cut_; }
  /// Fills the disk before the point of this number, counted from this call. Writes, new files and
  /// new directories then fail with ENOSPC until make_room().
  void fill_at(std::int64_t point) {
    points_ = 0;
    full_at_ = point;
  }
  bool is_full() const { return full_at_ > 0 && points_ >= full_at_; }
  void make_room() { full_at_ = 0; }
  /// Lets the sync of this number, counted from this call, fail with EIO.
  void fail_sync_at(std::int64_t sync) {
    syncs_ = 0;
    failed_sync_ = sync;
  }
  /// Number of syncs since fail_sync_at().
  std::int64_t syncs() const { return syncs_; }
  /// Makes syncs return success without effect. The sweep must detect this.
  void lie_about_syncs() { lies_ = true; }

  /// Restores the power. All files must be closed before the call.
  void restart(Loss loss, std::uint64_t seed);

  /// Name of the registered VFS.
  const std::string& vfs_name() const { return vfs_name_; }

  std::unique_ptr<File> open(const std::string& path, Open mode) override;
  bool exists(const std::string& path) override;
  bool make_directory(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;
  void make_read_only(const std::string&) override {}

  /// The bytes of one file. Public for the VFS.
  struct Node {
    bool directory = false;
    std::string bytes;    ///< seen by programs
    std::string durable;  ///< state of the last sync
    struct Change {
      bool truncate = false;
      std::uint64_t offset = 0;  ///< offset of the bytes, or the new size
      std::string bytes;
    };
    std::vector<Change> unsynced;
    std::vector<std::unique_ptr<char[]>> shared_memory;  ///< SQLite's WAL index; never survives
  };
  std::shared_ptr<Node> find(const std::string& path);
  std::shared_ptr<Node> create(const std::string& path);
  void write(Node& node, std::uint64_t offset, std::string_view bytes);
  void truncate(Node& node, std::uint64_t size);
  void sync(Node& node);

 private:
  /// A change of a name in a directory. Without a node the name is removed.
  struct NameChange {
    std::string path;
    std::shared_ptr<Node> node;
  };
  enum class Change { kNeedsSpace, kSync, kOther };
  void point(Change change);
  void change_name(const std::string& path, std::shared_ptr<Node> node);

  std::string root_;
  std::string vfs_name_;
  std::unique_ptr<sqlite3_vfs> vfs_;
  std::map<std::string, std::shared_ptr<Node>> names_;
  std::map<std::string, std::shared_ptr<Node>> durable_names_;
  std::vector<NameChange> unsynced_names_;
  std::int64_t points_ = 0;
  std::int64_t cut_at_ = 0;
  std::int64_t full_at_ = 0;
  std::int64_t syncs_ = 0;
  std::int64_t failed_sync_ = 0;
  bool cut_ = false;
  bool lies_ = false;
};

}  // namespace quasi::server::test
