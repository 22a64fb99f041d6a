#pragma once

#include <cstdint>

#include "workers/daemon/ports/event_loop.hpp"
#include "workers/daemon/ports/spawner.hpp"

namespace quasi {

struct SpawnSettings {
  std::filesystem::path engine;  ///< quasi-engine
  bool isolate_network = true;
  std::uint64_t max_file_bytes = 0;  ///< RLIMIT_FSIZE; 0: no limit
  std::uint64_t max_processes = 0;   ///< RLIMIT_NPROC, per user; 0: no limit
};

/// Starts engines on this machine. A child has its own process group, descriptors 0–3 and no
/// others, the environment of its plan, no core files, and dies with the thread that made the
/// spawner's calls: the loop's.
class LocalSpawner : public Spawner {
 public:
  LocalSpawner(EventLoop& loop, SpawnSettings settings)
      : loop_(loop), settings_(std::move(settings)) {}

  std::unique_ptr<EngineChild> spawn(const LaunchPlan& plan, ChildEvents& events) override;
  bool end_stray(const ProcessIdentity& child, Milliseconds patience) override;

 private:
  EventLoop& loop_;
  SpawnSettings settings_;
};

}  // namespace quasi
