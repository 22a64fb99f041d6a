#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workers/backend/checkpoint/checkpoint_files.hpp"
#include "workers/backend/progress.hpp"

namespace quasi {

/// FNV-1a digest over 64-bit words. It distinguishes problems, but it protects against no attack.
class ProblemDigest {
 public:
  /// Adds `size` bytes to the digest.
  void add(const void* data, std::size_t size);
  template <typename T>
  void add(const std::vector<T>& values) {
    add(values.data(), values.size() * sizeof(T));
  }
  void add(double value) { add(&value, sizeof value); }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ull;
};

/// One finished piece of a job: a list of numbers. The piece shares the ownership of the numbers,
/// so that a copy of the piece costs no copy of the numbers.
struct Piece {
  std::shared_ptr<const void> owner;
  const double* data = nullptr;
  std::size_t count = 0;
};
/// Makes a piece of a list that the piece and the caller share.
template <typename T>
Piece piece_of(std::shared_ptr<const std::vector<T>> values) {
  const auto* data = reinterpret_cast<const double*>(values->data());
  const std::size_t count = values->size() * sizeof(T) / sizeof(double);
  return {std::move(values), data, count};
}

/// Stores finished pieces of a job by name in one file on disk. A resumed job reads these pieces
/// and computes only the others, so that it gives the same bits.
///
/// Thread-safe. All new pieces are written together, at most once an interval, and when the worker
/// drains. Large files are written less often, so that writing takes at most a tenth of the time.
class Checkpoint {
 public:
  /// Keeps nothing, for jobs without a checkpoint directory.
  Checkpoint() = default;
  /// Reads the newest complete file in `directory` with this digest and reports it in the log.
  /// Files of other problems and damaged files are ignored.
  Checkpoint(std::filesystem::path directory, std::uint64_t digest, double interval_s,
             Progress& progress);

  /// Prefixes all later names with `scope`, so that the iterations of a loop can use equal names.
  /// No other thread may use the checkpoint during the call.
  void enter(std::string scope) { scope_ = std::move(scope); }

  /// Returns the piece under `key`, or nothing.
  std::optional<Piece> find(const std::string& key) const;
  /// Keeps a piece under `key` and writes a file if one is due.
  void put(const std::string& key, Piece piece);
  /// Keeps and writes values() if a file is due, and does nothing otherwise. It serves sums that
  /// grow in place.
  void put_if_due(const std::string& key, const std::function<std::vector<double>()>& values);
  /// Keeps and writes values() if a file is due, and does nothing otherwise. It first frees the
  /// pieces under `prefix`, so that it serves sums too large to be held twice. The end of the key
  /// describes the state of the sum.
  void grow_if_due(const std::string& prefix, const std::string& key,
                   const std::function<std::vector<double>()>& values);
  /// Returns the first piece whose name begins with `prefix`, and the rest of its name.
  std::optional<std::pair<std::string, Piece>> find_by_prefix(const std::string& prefix) const;
  /// Frees the pieces whose names begin with `prefix`.
  void forget(const std::string& prefix);
  /// Records for the holder of a growing sum when it last published the sum, and whether the worker
  /// is draining.
  struct Turn {
    std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
    int drains = 0;
    bool draining = false;
  };
  /// Returns true once an interval for each turn, and once when the worker drains. The holder then
  /// calls exchange().
  bool is_turn(Turn& turn);
  /// Replaces the pieces named `old` by `fresh`. Writes a file if one is due or if the write is
  /// urgent.
  void exchange(const std::vector<std::string>& old,
                std::vector<std::pair<std::string, Piece>> fresh, bool at_once);
  /// Returns the names of the kept pieces that begin with `prefix`.
  std::vector<std::string> names(const std::string& prefix) const;
  /// Keeps a piece under `key` and forgets all pieces whose names begin with `prefix`: the new
  /// piece contains them.
  void replace(const std::string& prefix, const std::string& key, Piece piece);
  /// Returns false if nothing is kept, so that no piece need be packed.
  bool keeps() const { return files_.keeps(); }
  /// Returns the free bytes of the disk, or 0 if no checkpoint is kept.
  std::int64_t free_disk_bytes() const { return files_.free_disk_bytes(); }
  /// Removes the files, because the job is done.
  void finish();

 private:
  bool due() const;
  void erase(const std::string& prefix);
  void write();
  CheckpointFiles files_;
  std::uint64_t digest_ = 0;
  double interval_s_ = 0.0;
  Progress* progress_ = nullptr;
  mutable std::mutex mutex_;
  std::string scope_;
  std::map<std::string, Piece> pieces_;
  std::chrono::steady_clock::time_point written_ = std::chrono::steady_clock::now();
  double last_write_s_ = 0.0;
  int drains_ = 0;
};

}  // namespace quasi
