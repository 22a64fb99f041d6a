#pragma once

namespace quasi::server {

/// Runs `quasi-server check --audit`: verifies the chain of the audit in the data directory of the
/// configuration. It reads the database only, so the server may run meanwhile.
/// @return the exit status: 0 for a sound chain, 65 for a broken one, 2 for wrong flags
/// @throws BadConfiguration if there is no database, or one of another schema; SqliteError.
int check_command(int argc, const char* const* argv);

}  // namespace quasi::server
