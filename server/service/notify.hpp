#pragma once

#include <string>

namespace quasi::server {

/// Tells the service manager that started this process (systemd, `Type=notify`) the state of the
/// server: "READY=1" or "STOPPING=1". It does nothing if the environment variable NOTIFY_SOCKET is
/// not set.
void notify_manager(const std::string& state);

}  // namespace quasi::server
