#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace quasi::server {

/// Counts and faults that a check of a data directory found.
struct StoreReport {
  std::int64_t jobs = 0;
  std::int64_t files = 0, bytes = 0;  ///< blobs that are present
  std::vector<std::string> faults;    ///< sentences; empty for a sound store
  std::vector<std::string> notes;     ///< what is no fault of the store, e.g. files without a row
};

/// Verifies a data directory: the database and its invariants, that each blob and log which a row
/// names is there with its length, and with `deep` the SHA-256 of each blob. It only reads, and the
/// server removes no file meanwhile.
/// @throws BadConfiguration if there is no database, or one of another schema; SqliteError,
/// FileError
StoreReport check_store(const std::string& data_directory, bool deep);

/// Verifies the chain of the audit and prints the result. @return true if it is sound
/// @throws as check_store
bool print_audit(const std::string& data_directory, std::ostream& out);

}  // namespace quasi::server
