#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "quasi/v1/engine.pb.h"
#include "workers/daemon/attempt/attempt_machine.hpp"
#include "workers/daemon/attempt/attempt_store.hpp"

namespace quasi {

/// How one engine process is started. Standard output and error go to `log`; the first command sent
/// is the start message.
struct LaunchPlan {
  std::filesystem::path working_directory;
  std::filesystem::path log;
  std::vector<std::string> environment;  ///< "NAME=value", all of it
  bool isolate_network = true;           ///< where the system permits it
  std::uint64_t max_ram_bytes = 0;       ///< private memory of each process; 0: no limit
};

struct ChildUsage {
  std::int64_t peak_ram_bytes = 0;
};

/// What a child does, told on the loop's thread.
class ChildEvents {
 public:
  virtual ~ChildEvents() = default;
  virtual void on_report(const v1::EngineReport& report) = 0;
  /// Something arrived that is no message; nothing further is read.
  virtual void on_garbage() = 0;
  /// The child and its process group are gone; the last event.
  virtual void on_exit(const ChildExit& exit, const ChildUsage& usage) = 0;
};

/// One running engine. Destroying it kills the process group.
class EngineChild {
 public:
  virtual ~EngineChild() = default;
  virtual ProcessIdentity identity() const = 0;
  /// False if the message cannot be taken now; whoever sends looks to signals then.
  virtual bool send(const v1::EngineCommand& command) = 0;
  virtual void signal_group(int signal) = 0;
};

class Spawner {
 public:
  virtual ~Spawner() = default;
  /// `events` must outlive the child.
  /// @throws std::runtime_error saying what the system refused.
  virtual std::unique_ptr<EngineChild> spawn(const LaunchPlan& plan, ChildEvents& events) = 0;
  /// Kills what an earlier daemon left running under this identity and waits at most `patience`
  /// until it is gone.
  /// @return false if it still exists: its device must not be used.
  virtual bool end_stray(const ProcessIdentity& child, Milliseconds patience) = 0;
};

}  // namespace quasi
