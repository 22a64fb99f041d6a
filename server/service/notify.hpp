#pragma once

#include <string>

namespace quasi::server {

/// Tells the service manager that started this process (systemd, `Type=notify`) how it is:
/// "READY=1", "STOPPING=1". Nothing where there is none (environment NOTIFY_SOCKET).
void notify_manager(const std::string& state);

}  // namespace quasi::server
