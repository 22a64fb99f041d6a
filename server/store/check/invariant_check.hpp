#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/store/sqlite.hpp"

/// Begin here: server/store/check verifies a database against the rules of docs/invariants.md. It
/// repeats what triggers and constraints enforce, for a file that a disk or another program may
/// have changed.
namespace quasi::server {

/// Looks for damage of the file, rows that refer to missing rows, and rows that contradict an
/// invariant. It reads only, in transactions that end with each rule.
/// @param limit  most faults of one rule that are named
/// @return the faults as sentences with the number of the invariant; empty for a sound database
std::vector<std::string> invariant_faults(Database& database, std::size_t limit);

}  // namespace quasi::server
