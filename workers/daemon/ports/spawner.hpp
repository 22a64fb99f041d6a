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

/// Plan of one engine process. Standard output and error go to `log`. The first command sent is the
/// start message.
struct LaunchPlan {
  std::filesystem::path working_directory;
  std::filesystem::path log;
  std::vector<std::string> environment;  ///< "NAME=value"; the whole environment
  bool starts_ranks = false;             ///< An MPI launcher starts the engine several times.
  std::uint64_t max_ram_bytes = 0;       ///< private memory of each process; 0: no limit
};

struct ChildUsage {
  std::int64_t peak_ram_bytes = 0;
};

/// Receives the events of a child on the loop's thread.
class ChildEvents {
 public:
  virtual ~ChildEvents() = default;
  /// The child sent a message.
  virtual void on_report(const v1::EngineReport& report) = 0;
  /// The child sent bytes that are not a message. Nothing more is read from it.
  virtual void on_garbage() = 0;
  /// The child and its process group are gone. This is the last event.
  virtual void on_exit(const ChildExit& exit, const ChildUsage& usage) = 0;
};

/// One running engine. Its destructor kills the process group.
class EngineChild {
 public:
  virtual ~EngineChild() = default;
  /// Returns process id and start time of the child.
  virtual ProcessIdentity identity() const = 0;
  /// Sends a message. Returns false if it cannot be sent; the caller then uses signals.
  virtual bool send(const v1::EngineCommand& command) = 0;
  /// Sends a signal to the process group of the child.
  virtual void signal_group(int signal) = 0;
};

class Spawner {
 public:
  virtual ~Spawner() = default;
  /// Starts an engine. `events` must outlive the child. @throws std::runtime_error with the error
  /// of the system.
  virtual std::unique_ptr<EngineChild> spawn(const LaunchPlan& plan, ChildEvents& events) = 0;
  /// Kills the process of an earlier daemon with this identity and waits for its end for at most
  /// `patience`. @return false if the process still exists; its device must then not be used.
  virtual bool end_stray(const ProcessIdentity& child, Milliseconds patience) = 0;
};

}  // namespace quasi
