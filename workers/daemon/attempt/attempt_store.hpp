#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "quasi/v1/worker_service.pb.h"
#include "workers/daemon/ports/file_system.hpp"

namespace quasi {

/// Where one attempt lives: STATE/attempts/<fence>/.
struct AttemptPaths {
  std::filesystem::path root;
  std::filesystem::path inputs;       ///< in/, read-only
  std::filesystem::path outputs;      ///< out/: every file here becomes an artefact
  std::filesystem::path checkpoints;  ///< ckpt/
  std::filesystem::path log;          ///< log.txt: the engine's words and its standard output
};

/// A process, unmistakably: process ids are used again, start times are not.
struct ProcessIdentity {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< since boot, as /proc/<pid>/stat says
};

/// What the daemon knows of its attempts after a crash.
///
///   attempts/<fence>/grant.pb     the right to run it; written before anything is done
///   attempts/<fence>/child        pid and start time of the engine
///   attempts/<fence>/outcome.pb   how it ended, results hashed and synced; written before
///   reporting kept/<fence>/                 attempts that were taken away; deleted after 24 h
///   trash/<fence>/                attempts that are over; deleted at once
class AttemptStore {
 public:
  AttemptStore(FileSystem& files, std::filesystem::path state_directory);

  AttemptPaths paths(std::uint64_t fence) const;

  /// Makes the directories and records the grant; it survives a crash once this returns.
  void create(const v1::Grant& grant);
  void record_child(std::uint64_t fence, const ProcessIdentity& child);
  /// Survives a crash once this returns.
  void record_outcome(const v1::CompleteAttemptRequest& outcome);
  std::optional<v1::CompleteAttemptRequest> outcome(std::uint64_t fence) const;

  struct Recovered {
    v1::Grant grant;
    std::optional<ProcessIdentity> child;
    std::optional<v1::CompleteAttemptRequest> outcome;
  };
  /// Every attempt whose grant was recorded, by fence; clears away what a crash left half done.
  std::vector<Recovered> recover();

  void remove(std::uint64_t fence);
  void keep(std::uint64_t fence);
  /// Fences of the attempts put aside.
  std::vector<std::uint64_t> kept() const;
  void remove_kept(std::uint64_t fence);

 private:
  void move_and_sync(std::uint64_t fence, const char* to);

  FileSystem& files_;
  std::filesystem::path attempts_, kept_, trash_;
};

}  // namespace quasi
