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

/// FNV-1a over 64-bit words: tells two problems apart, protects against nothing.
class ProblemDigest {
 public:
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
template <typename T>
Piece piece_of(std::shared_ptr<const std::vector<T>> values) {
  const auto* data = reinterpret_cast<const double*>(values->data());
  const std::size_t count = values->size() * sizeof(T) / sizeof(double);
  return {std::move(values), data, count};
}

/// Finished pieces of a job by name, on disk as one file. A resumed job
/// takes the pieces as they are and makes the others, so that it gives the same bits.
///
/// Thread-safe. Pieces are written together, at most once an interval, and when the worker drains.
/// Large files are written more seldom: writing takes no more than a tenth of the time.
class Checkpoint {
 public:
  /// Keeps nothing: jobs without a directory.
  Checkpoint() = default;
  /// Reads the newest whole file in `directory` that has this digest; says so in the log. Files of
  /// other problems, or broken ones, are passed over.
  Checkpoint(std::filesystem::path directory, std::uint64_t digest, double interval_s,
             Progress& progress);

  /// From here on all names stand for `scope` + name: turns of a loop use the same names. Not while
  /// others use the checkpoint.
  void enter(std::string scope) { scope_ = std::move(scope); }

  std::optional<Piece> find(const std::string& key) const;
  void put(const std::string& key, Piece piece);
  /// Keeps and writes values() if a file is due, and does nothing otherwise. It serves sums that
  /// grow in place.
  void put_if_due(const std::string& key, const std::function<std::vector<double>()>& values);
  /// Keeps and writes values() if a file is due, and does nothing otherwise. It frees the pieces
  /// under `prefix` before it calls values(), and so serves sums too large to be held twice. The
  /// end of the key states what is known of the sum beside its values.
  void grow_if_due(const std::string& prefix, const std::string& key,
                   const std::function<std::vector<double>()>& values);
  /// The first piece whose name begins with `prefix`, and the rest of its name.
  std::optional<std::pair<std::string, Piece>> find_by_prefix(const std::string& prefix) const;
  /// Frees the pieces whose names begin with `prefix`.
  void forget(const std::string& prefix);
  /// The last time at which the holder of sums that grow in place has published them, and whether
  /// the worker drains now.
  struct Turn {
    std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
    int drains = 0;
    bool draining = false;
  };
  /// True once an interval for each turn, and once when the worker drains: the time for exchange().
  bool is_turn(Turn& turn);
  /// Puts `fresh` in place of the pieces named `old`; writes where a file is due, or at once.
  void exchange(const std::vector<std::string>& old,
                std::vector<std::pair<std::string, Piece>> fresh, bool at_once);
  /// Names of the pieces kept that begin with `prefix`.
  std::vector<std::string> names(const std::string& prefix) const;
  /// Keeps a piece under `key` and forgets all pieces whose names begin with `prefix`: the new
  /// piece contains them.
  void replace(const std::string& prefix, const std::string& key, Piece piece);
  /// False: nothing is kept, and nothing need be packed.
  bool keeps() const { return files_.keeps(); }
  /// Free bytes of the disk; 0 where no checkpoint is kept.
  std::int64_t free_disk_bytes() const { return files_.free_disk_bytes(); }
  /// Removes the files: the job is done.
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
