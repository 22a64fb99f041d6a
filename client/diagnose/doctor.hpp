#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

/// Begin here: client/diagnose examines an installation. This is one examined thing.
struct Finding {
  enum class Level {
    kOk,
    kNote,   ///< a part that not everybody needs is missing
    kFault,  ///< a part that was installed or configured does not work
  };
  std::string name;
  Level level = Level::kOk;
  std::string text;
  std::string remedy;
};

/// Examines program, engine, devices, Python module, state directory, disk, server and workers. No
/// call waits longer than three seconds.
std::vector<Finding> examine(Session& session);
Json findings_json(const std::vector<Finding>& findings);

/// `quasi doctor` prints the findings. @return kPartial if one of them is a fault.
ExitStatus doctor(Session& session);

}  // namespace quasi::client
