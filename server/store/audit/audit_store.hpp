#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/store/sqlite.hpp"

/// Begin here: server/store/audit keeps who did what. Each row holds a hash of itself and of the
/// row before it, so a row that is changed, removed or moved breaks the chain.
namespace quasi::server {

/// Holds one act, or one login that was refused.
struct AuditRow {
  std::int64_t seq = 0;      ///< 1, 2, 3, … without gaps; `append` sets it
  std::int64_t time_ms = 0;  ///< since 1970
  std::string principal;     ///< name of the caller; "" if nobody is known
  std::string peer;          ///< address of the caller as gRPC names it
  std::string method;
  std::string target;   ///< ids of the jobs, or name of the principal or token; one a line
  std::string outcome;  ///< "OK", or the reason of a refused login
  std::string detail;   ///< the values that an admin set
};

/// Returns the hash of a row in the chain: SHA-256 of the previous hash and the canonical row. The
/// canonical row is the sequence of its members, each as "LENGTH:BYTES" with the length in decimal
/// digits.
/// @param previous  32 bytes: the hash of the row before, or of the anchor
/// @return 32 bytes
std::string audit_hash(const std::string& previous, const AuditRow& row);

/// Writes the audit. The caller opens the transactions, so that an act and its row are committed
/// together or not at all. One thread uses it.
class AuditStore {
 public:
  explicit AuditStore(Database& database) : database_(database), statements_(database) {}

  /// Appends a row behind the newest one.
  void append(AuditRow row);

  /// Removes the oldest rows as long as they are from before `before_ms`, at most `limit`. The
  /// anchor keeps the number and the hash of the newest removed row, so the rest can be verified.
  /// @return the number of removed rows
  std::int64_t prune(std::int64_t before_ms, std::int32_t limit);

 private:
  struct Link {
    std::int64_t seq = 0;
    std::string sha256;
  };
  Link newest();

  Database& database_;
  StatementCache statements_;
};

/// Holds the result of a check of the chain.
struct AuditReport {
  std::int64_t rows = 0;             ///< rows that were found sound
  std::int64_t newest = 0;           ///< number of the newest sound row; 0 without one
  std::string newest_sha256;         ///< its hash, 32 bytes
  std::int64_t removed_through = 0;  ///< rows up to this number were removed by their age
  std::string fault;                 ///< the first broken row and its defect; "" for a sound chain
};

/// Verifies the chain from the anchor to the newest row, and that the triggers which guard it are
/// there, in one read transaction.
AuditReport check_audit(Database& database);

}  // namespace quasi::server
