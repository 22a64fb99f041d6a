#pragma once

namespace quasi::server {

/// Runs `quasi-server backup DIR`: backs up the data directory of the configuration, while its
/// server runs or not.
/// @return the exit status: 0; 65 if files of the store are missing or wrong, and the backup holds
///         all others; 2 for wrong flags
/// @throws what back_up throws
int backup_command(int argc, const char* const* argv);

/// Runs `quasi-server restore DIR --data-directory NEW`.
/// @return the exit status: 0, or 2 for wrong flags
/// @throws what restore throws
int restore_command(int argc, const char* const* argv);

/// Runs `quasi-server check`: verifies database, files and audit of a data directory, while its
/// server runs or not. `--audit` verifies the audit alone, and `--deep` hashes every file.
/// @return the exit status: 0 for a sound store, 65 for a broken one, 2 for wrong flags
/// @throws BadConfiguration if there is no database, or one of another schema; SqliteError.
int check_command(int argc, const char* const* argv);

}  // namespace quasi::server
