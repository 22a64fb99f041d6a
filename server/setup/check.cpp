#include "server/setup/check.hpp"

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire/digest.hpp"
#include "server/options.hpp"
#include "server/store/audit/audit_store.hpp"
#include "server/store/schema.hpp"

namespace quasi::server {
namespace {

constexpr int kSound = 0;
constexpr int kBroken = 65;

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

/// Returns the bytes of a hash as lower-case hexadecimal digits.
std::string hex_of(const std::string& bytes) {
  return wire::to_hex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

int check_audit_of(const std::string& path) {
  if (!std::filesystem::exists(path))
    throw BadConfiguration(path +
                           " does not exist; --data-directory or --config names another one");
  Database database(path, Database::Mode::kReader);
  require_schema(database, path);
  const AuditReport report = check_audit(database);
  if (!report.fault.empty()) {
    std::cout << "BROKEN: " << report.fault << "\n"
              << report.rows << " rows before it are sound; compare with a backup of " << path
              << '\n';
    return kBroken;
  }
  std::cout << "OK: " << report.rows << (report.rows == 1 ? " row" : " rows");
  if (report.removed_through > 0)
    std::cout << " after row " << report.removed_through << ", up to which rows were removed by "
              << "their age";
  std::cout << "\nnewest: row " << report.newest << " with SHA-256 " << hex_of(report.newest_sha256)
            << '\n';
  return kSound;
}

}  // namespace

int check_command(int argc, const char* const* argv) {
  std::vector<const char*> rest;
  bool is_of_audit = false;
  for (int i = 0; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--audit")
      is_of_audit = true;
    else
      rest.push_back(argv[i]);
  }
  const CommandLine line = parse_command_line(static_cast<int>(rest.size()), rest.data());
  if (line.action == Action::kExit) return line.exit_status;
  if (!is_of_audit) {
    std::cerr << "quasi-server: check needs --audit, which verifies who did what\n"
              << "usage: quasi-server check --audit [--config FILE] [--data-directory DIR]\n";
    return 2;
  }
  return check_audit_of(line.options.data_directory + "/quasi.db");
}

}  // namespace quasi::server
