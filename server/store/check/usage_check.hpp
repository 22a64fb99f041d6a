#pragma once

#include <string>

#include "server/store/sqlite.hpp"

namespace quasi::server {

/// Counts the use of all principals again, from jobs, attempts and blobs, and compares it with the
/// totals. @return the first difference as a sentence; "" if there is none
std::string usage_fault(Database& database);

}  // namespace quasi::server
