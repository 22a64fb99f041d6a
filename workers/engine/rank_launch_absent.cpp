#include <iostream>

#include "workers/backend/error.hpp"
#include "workers/engine/rank_launch.hpp"
#include "workers/engine/run_task.hpp"

namespace quasi {

int launch_ranks(PacketSocket& daemon, const v1::EngineStart& start) {
  const std::string why = "the job asks for " + std::to_string(start.ranks()) +
                          " ranks, but this worker's quasi-engine was built without MPI; ask for "
                          "ranks = 0, so that one "
                          "process uses all GPUs";
  v1::EngineReport report;
  report.mutable_failed()->set_reason(v1::FAILURE_REASON_INVALID_INPUT);
  report.mutable_failed()->set_message(why);
  daemon.send(report, PacketSocket::Wait::kYes);
  std::cerr << "error: " << why << '\n';
  return static_cast<int>(ExitStatus::kInvalidInput);
}

DaemonContact receive_contact(const std::string&) {
  throw BackendAbsent("this quasi-engine was built without MPI and cannot run as a rank");
}

}  // namespace quasi
