#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "quasi/v1/worker_service.pb.h"
#include "workers/daemon/ports/file_system.hpp"

namespace quasi {

/// Paths of one attempt below STATE/attempts/<fence>/.
struct AttemptPaths {
  std::filesystem::path root;
  std::filesystem::path inputs;       ///< in/, read-only
  std::filesystem::path outputs;      ///< out/; every file in it becomes an artefact
  std::filesystem::path checkpoints;  ///< ckpt/
  std::filesystem::path cache;  ///< cache/; kernels that libraries of CUDA compile as they run
  std::filesystem::path log;    ///< log.txt; log messages and standard output of the engine
};

/// Identifies one process. Process ids are reused, so the start time is part of the identity.
struct ProcessIdentity {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< time of the start since boot, from /proc/<pid>/stat
};

/// Files from which the daemon knows its attempts after a crash.
///
///   attempts/<fence>/grant.pb     the grant; written before anything else
///   attempts/<fence>/child        process id and start time of the engine
///   attempts/<fence>/outcome.pb   the ending with hashed and synced results; written before the
///   report
///   kept/<fence>/                 attempts that lost their lease, and attempts whose engine
///   outlived
///                                 SIGKILL; deleted after 24 h
///   trash/<fence>/                attempts that are over; deleted at once
class AttemptStore {
 public:
  AttemptStore(FileSystem& files, std::filesystem::path state_directory);

  /// Returns the paths of an attempt, which need not exist.
  AttemptPaths paths(std::uint64_t fence) const;

  /// Makes the directories and records the grant. The record survives a crash once this returns.
  void create(const v1::Grant& grant);
  /// Records the process of the engine. A crash of the machine may lose the record.
  void record_child(std::uint64_t fence, const ProcessIdentity& child);
  /// Records the outcome. The record survives a crash once this returns.
  void record_outcome(const v1::CompleteAttemptRequest& outcome);
  /// Returns the recorded outcome, or nothing.
  std::optional<v1::CompleteAttemptRequest> outcome(std::uint64_t fence) const;

  struct Recovered {
    v1::Grant grant;
    std::optional<ProcessIdentity> child;
    std::optional<v1::CompleteAttemptRequest> outcome;
  };
  /// Returns every attempt with a recorded grant, sorted by fence. Directories that a crash left
  /// incomplete are removed.
  std::vector<Recovered> recover();

  /// Deletes the directory of an attempt that is over.
  void remove(std::uint64_t fence);
  /// Moves the directory of an attempt to kept/.
  void keep(std::uint64_t fence);
  /// Returns the attempts in kept/ whose grants and engines are recorded.
  std::vector<Recovered> kept_engines() const;
  /// Returns the fences of the attempts that were put aside.
  std::vector<std::uint64_t> kept() const;
  /// Deletes a directory in kept/.
  void remove_kept(std::uint64_t fence);

 private:
  /// Reads the grant and the engine of an attempt; nothing without a grant.
  std::optional<Recovered> read(const std::filesystem::path& directory) const;
  void move_and_sync(std::uint64_t fence, const char* to);

  FileSystem& files_;
  std::filesystem::path attempts_, kept_, trash_;
};

}  // namespace quasi
