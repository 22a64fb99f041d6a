#include "server/setup/setup.hpp"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "proto/wire/access/join_code.hpp"
#include "proto/wire/access/tls.hpp"
#include "server/access/certificates.hpp"
#include "server/api/local_address.hpp"
#include "server/queue/clock.hpp"
#include "server/store/access_store.hpp"
#include "server/store/audit/audit_store.hpp"
#include "server/store/data_directory.hpp"
#include "server/store/file_system.hpp"
#include "server/store/schema.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDay_s = 86'400;
constexpr std::int64_t kAuthorityDays = 3'650;
constexpr std::int64_t kCertificateDays = 730;
constexpr std::int64_t kCodeMs = 15 * 60'000;

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw FileError(errno, "read " + path);
  return text.str();
}

/// Writes a file of mode 0600 under another name, syncs it and gives it its name.
void write_file(const std::string& path, const std::string& text) {
  FileSystem& files = system_files();
  const std::string part = path + ".part";
  files.remove(part);
  {
    const auto file = files.open(part, FileSystem::Open::kCreate);
    ::chmod(part.c_str(), 0600);
    file->write(0, text);
    file->sync();
  }
  files.rename(part, path);
  const std::string parent = fs::path(path).parent_path().string();
  files.sync_directory(parent.empty() ? "." : parent);
}

struct Paths {
  explicit Paths(const std::string& data_directory)
      : folder(data_directory + "/tls"),
        ca(folder + "/ca.pem"),
        ca_key(folder + "/ca.key"),
        certificate(folder + "/server.pem"),
        key(folder + "/server.key") {}
  std::string folder, ca, ca_key, certificate, key;
};

/// The time from an hour ago, so that a client whose clock is slow accepts the certificate.
ValidTime valid_for(std::int64_t days) {
  const std::int64_t now_s = SystemClock().now().wall_ms / 1'000;
  return {.from_s = now_s - 3'600, .until_s = now_s + days * kDay_s};
}

/// The host names of the server, and the names by which its own machine reaches it.
std::vector<std::string> names_of(const SetupOptions& options) {
  std::vector<std::string> names = options.hostnames;
  for (const char* local : {"localhost", "127.0.0.1", "::1"})
    if (std::find(names.begin(), names.end(), local) == names.end()) names.emplace_back(local);
  return names;
}

/// Writes a new certificate of the server. The key comes first: until the certificate follows, the
/// pair does not fit, and a running server goes on with the pair of before.
void write_certificate(const SetupOptions& options, const Paths& paths,
                       const KeyedCertificate& authority) {
  const KeyedCertificate own =
      make_server_certificate(authority, names_of(options), valid_for(kCertificateDays));
  write_file(paths.key, own.key_pem);
  write_file(paths.certificate, own.certificate_pem + authority.certificate_pem);
}

std::string configuration_of(const SetupOptions& options, const Paths& paths) {
  std::string text = "# Written by quasi-server init. Every key: quasi-server --help\n";
  const auto line = [&](const std::string& key, const std::string& value) {
    text += key + " = \"" + value + "\"\n";
  };
  const std::string port = ":" + std::to_string(options.port);
  line("data_directory", options.data_directory);
  text += "listen = [\"unix:" + options.data_directory + "/server.sock\", \"" + options.bind +
          port + "\"]\n";
  line("public_address", options.hostnames.front() + port);
  line("tls_certificate", paths.certificate);
  line("tls_key", paths.key);
  line("tls_ca", paths.ca);
  text += "require_tokens = true\n";
  return text;
}

/// Creates a principal and a code for it. @return the code as text.
std::string invite(AccessStore& access, AuditStore& audit, Principal principal,
                   const wire::JoinCode& place, std::int64_t now_ms) {
  principal.tenant = "default";
  principal.created_ms = now_ms;
  principal = access.save(principal);
  const NewCode code = make_code();
  access.insert_code({.secret_sha256 = code.secret_sha256,
                      .principal_id = principal.id,
                      .created_ms = now_ms,
                      .expires_ms = now_ms + kCodeMs});
  audit.append({.time_ms = now_ms,
                .principal = "server",
                .peer = {},
                .method = "CreateCode",
                .target = join_lines({principal.name}),
                .outcome = "OK",
                .detail = "role=" + std::string(word_of(principal.role))});
  wire::JoinCode whole = place;
  whole.secret = code.secret;
  return wire::to_text(whole);
}

struct Codes {
  std::string admin, worker;
};

/// Makes the database with the first two principals.
Codes make_database(const DataDirectory& directory, const wire::JoinCode& place) {
  Database database(directory.database_path(), Database::Mode::kWriter);
  prepare_schema(database, {.path = directory.database_path(), .vfs = {}, .files = system_files()});
  AccessStore access(database);
  AuditStore audit(database);
  const std::int64_t now_ms = SystemClock().now().wall_ms;
  database.execute("BEGIN IMMEDIATE");
  Codes codes;
  codes.admin = invite(access, audit, {.name = "admin", .role = Role::kAdmin}, place, now_ms);
  codes.worker = invite(access, audit, {.name = "worker", .role = Role::kWorker}, place, now_ms);
  database.execute("COMMIT");
  return codes;
}

void require_absent(const std::string& path) {
  if (fs::exists(path))
    throw BadConfiguration(path +
                           " exists, and nothing is overwritten; --renew makes a new "
                           "certificate alone, another path makes another server");
}

void renew(const SetupOptions& options, std::ostream& out) {
  const Paths paths(options.data_directory);
  if (!fs::exists(paths.ca_key))
    throw BadConfiguration(paths.ca_key +
                           " does not exist; --data-directory names the directory "
                           "that quasi-server init made");
  write_certificate(options, paths,
                    {.certificate_pem = text_of(paths.ca), .key_pem = text_of(paths.ca_key)});
  out << paths.certificate << " is valid for " << kCertificateDays
      << " days; a running server shows it to new connections within a second\n";
}

}  // namespace

void set_up(const SetupOptions& options, std::ostream& out) {
  if (options.hostnames.empty())
    throw BadConfiguration("init: --hostname names no name by which others reach this machine");
  if (options.renew) return renew(options, out);
  const Paths paths(options.data_directory);
  for (const std::string& path :
       {options.configuration, options.data_directory + "/quasi.db", paths.folder})
    require_absent(path);
  const DataDirectory directory(options.data_directory, false);
  system_files().make_directory(paths.folder);
  ::chmod(paths.folder.c_str(), 0700);
  const KeyedCertificate authority =
      make_authority("Quasi CA of " + options.hostnames.front(), valid_for(kAuthorityDays));
  write_file(paths.ca_key, authority.key_pem);
  write_file(paths.ca, authority.certificate_pem);
  write_certificate(options, paths, authority);
  const Codes codes = make_database(
      directory, {.address = options.hostnames.front() + ":" + std::to_string(options.port),
                  .fingerprint = wire::certificate_fingerprint(authority.certificate_pem),
                  .secret = {}});
  write_file(options.configuration, configuration_of(options, paths));
  out << "the server is set up in " << options.data_directory << "\n\n"
      << "start it here:             quasi-server --config " << options.configuration << "\n"
      << "then on your own machine:  quasi login " << codes.admin << "\n"
      << "and on a GPU machine:      quasi-worker join " << codes.worker << "\n\n"
      << "Each code is good for one use within 15 minutes. `quasi admin code NAME` makes more.\n";
}

int init_command(int argc, const char* const* argv) {
  CLI::App app{"Sets up a new server: data directory, certificates, configuration, first codes."};
  SetupOptions options;
  app.add_option("--hostname", options.hostnames,
                 "name or address by which others reach this machine; may be repeated")
      ->required()
      ->allow_extra_args(false);
  app.add_option("--data-directory", options.data_directory, "directory of all data")
      ->capture_default_str();
  app.add_option("--config", options.configuration, "configuration file to write")
      ->capture_default_str();
  app.add_option("--bind", options.bind, "address at which to listen")->capture_default_str();
  app.add_option("--port", options.port, "TCP port")
      ->capture_default_str()
      ->check(CLI::Range(1, 65'535));
  app.add_flag("--renew", options.renew, "make a new certificate for a server that was set up");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  set_up(options, std::cout);
  return 0;
}

}  // namespace quasi::server
