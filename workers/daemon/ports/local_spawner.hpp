#pragma once

#include <cstdint>

#include "workers/daemon/ports/event_loop.hpp"
#include "workers/daemon/ports/spawner.hpp"

namespace quasi {

struct SpawnSettings {
  std::filesystem::path engine;                 ///< quasi-engine
  std::filesystem::path cage;                   ///< quasi-cage; "": engines run without a cage
  bool isolate_network = true;                  ///< The cage takes the network away.
  std::vector<std::filesystem::path> readable;  ///< further files and folders that engines may read
  std::uint64_t max_file_bytes = 0;             ///< RLIMIT_FSIZE; 0: no limit
  std::uint64_t max_processes = 0;              ///< RLIMIT_NPROC, per user; 0: no limit
};

/// Starts engines on this machine. A child has its own process group, only descriptors 0–3, the
/// environment of its plan and no core files. It dies with the thread that called the spawner,
/// which is the loop's thread.
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
