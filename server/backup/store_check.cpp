#include "server/backup/store_check.hpp"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <set>

#include "proto/wire/digest.hpp"
#include "server/api/local_address.hpp"
#include "server/backup/sums.hpp"
#include "server/store/audit/audit_store.hpp"
#include "server/store/backup/database_copy.hpp"
#include "server/store/backup/files_lock.hpp"
#include "server/store/blob_store.hpp"
#include "server/store/check/invariant_check.hpp"
#include "server/store/schema.hpp"

namespace quasi::server {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNamed = 16;

/// Returns the bytes of a hash as lower-case hexadecimal digits.
std::string hex_of(const std::string& bytes) {
  return wire::to_hex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

void require_database(const std::string& path) {
  if (!fs::exists(path))
    throw BadConfiguration(path +
                           " does not exist; --data-directory or --config names another one");
}

/// Refuses a database whose tables this program does not know.
void require_schema(Database& database, const std::string& path) {
  Statement version(database, "PRAGMA user_version");
  version.step();
  if (version.integer(0) == schema_version()) return;
  throw BadConfiguration(path + " has schema " + std::to_string(version.integer(0)) +
                         ", and this program checks schema " + std::to_string(schema_version()) +
                         "; start this version of quasi-server once, or use the version that "
                         "wrote the file");
}

/// Length of a file; −1 without one.
std::int64_t size_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? -1 : static_cast<std::int64_t>(size);
}

/// Compares the files of a data directory with the rows of its database.
class FileCheck {
 public:
  FileCheck(const std::string& data_directory, bool deep, StoreReport& report)
      : root_(data_directory), deep_(deep), report_(report) {}

  void run(Database& database) {
    const BlobStore blobs(system_files(), root_);
    std::set<std::string> named;
    for (const StoredBlob& blob : present_blobs(database)) {
      named.insert(blob.digest);
      ++report_.files;
      report_.bytes += blob.size_bytes;
      const std::string fault = fault_of(blobs.path_of(blob.digest), blob);
      if (!fault.empty()) add("I11: the file " + blob.digest + " " + fault);
    }
    for (const StoredLog& log : logs_in_files(database)) {
      const std::string& uid = log.attempt_uid;
      const std::int64_t size =
          size_of(root_ + "/logs/" + uid.substr(uid.size() - 2) + "/" + uid + ".log");
      if (size < log.size_bytes)
        add("the log of attempt " + uid + " has " +
            std::to_string(std::max<std::int64_t>(size, 0)) + " of " +
            std::to_string(log.size_bytes) + " bytes");
    }
    std::int64_t unnamed = 0;
    for (const std::string& digest : blobs.stored()) unnamed += named.contains(digest) ? 0 : 1;
    if (unnamed > 0)
      report_.notes.push_back(std::to_string(unnamed) +
                              " files have no row: uploads that end now, or garbage that a start "
                              "after a crash removes");
    if (faults_ > kMostNamed)
      report_.faults.push_back(std::to_string(faults_ - kMostNamed) + " more files");
  }

 private:
  std::string fault_of(const std::string& path, const StoredBlob& blob) const {
    const std::int64_t size = size_of(path);
    if (size < 0) return "is missing";
    if (size != blob.size_bytes)
      return "has " + std::to_string(size) + " bytes instead of " + std::to_string(blob.size_bytes);
    if (deep_ && hash_file(system_files(), path).sha256 != blob.digest)
      return "has other bytes than its name says";
    return {};
  }
  void add(const std::string& fault) {
    if (++faults_ <= kMostNamed) report_.faults.push_back(fault);
  }

  const std::string& root_;
  bool deep_;
  StoreReport& report_;
  std::size_t faults_ = 0;
};

}  // namespace

StoreReport check_store(const std::string& data_directory, bool deep) {
  const std::string path = data_directory + "/quasi.db";
  require_database(path);
  Database database(path, Database::Mode::kReader);
  require_schema(database, path);
  StoreReport report;
  report.jobs = store_facts(database).jobs;
  report.faults = invariant_faults(database, kMostNamed);
  const auto files_stay = FilesLock::for_reading(data_directory);
  FileCheck(data_directory, deep, report).run(database);
  return report;
}

bool print_audit(const std::string& data_directory, std::ostream& out) {
  const std::string path = data_directory + "/quasi.db";
  require_database(path);
  Database database(path, Database::Mode::kReader);
  require_schema(database, path);
  const AuditReport report = check_audit(database);
  if (!report.fault.empty()) {
    out << "BROKEN: " << report.fault << "\n"
        << report.rows << " rows before it are sound; compare with a backup of " << path << '\n';
    return false;
  }
  out << "OK: " << report.rows << (report.rows == 1 ? " row" : " rows");
  if (report.removed_through > 0)
    out << " after row " << report.removed_through << ", up to which rows were removed by "
        << "their age";
  out << "\nnewest: row " << report.newest << " with SHA-256 " << hex_of(report.newest_sha256)
      << '\n';
  return true;
}

}  // namespace quasi::server
