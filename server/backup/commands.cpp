#include "server/backup/commands.hpp"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "server/backup/backup.hpp"
#include "server/backup/restore.hpp"
#include "server/backup/store_check.hpp"
#include "server/options.hpp"

namespace quasi::server {
namespace {

constexpr int kOk = 0;
constexpr int kUsage = 2;
constexpr int kBroken = 65;

std::string shown_bytes(std::int64_t bytes) {
  const char* const units[] = {"bytes", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1'000 && unit + 1 < std::size(units); ++unit) value /= 1'000;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

std::string counted(std::int64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

/// Lets the calls of a server on this machine come first.
void lower_priority() {
  constexpr int kNice = 10;
  if (::getpriority(PRIO_PROCESS, 0) < kNice) ::setpriority(PRIO_PROCESS, 0, kNice);
}

/// The flags that name a data directory, as the server itself reads them.
struct Place {
  explicit Place(CLI::App& app) {
    app.add_option("--config", config, "TOML file; otherwise /etc/quasi/server.toml if it exists")
        ->type_name("FILE");
    app.add_option("--data-directory", data_directory, "directory of all data")->type_name("DIR");
  }
  /// @return the data directory without a slash at its end
  std::string resolve() const {
    std::vector<const char*> words{"quasi-server"};
    if (!config.empty()) words.insert(words.end(), {"--config", config.c_str()});
    if (!data_directory.empty())
      words.insert(words.end(), {"--data-directory", data_directory.c_str()});
    std::string path =
        parse_command_line(static_cast<int>(words.size()), words.data()).options.data_directory;
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path;
  }
  std::string config, data_directory;
};

/// Parses, or prints the help or the mistake. @return the exit status to end with, if any
std::optional<int> parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  return std::nullopt;
}

}  // namespace

int backup_command(int argc, const char* const* argv) {
  CLI::App app{
      "Backs up the data directory into a folder, while the server runs. Files that an earlier "
      "backup in the folder has are not copied again."};
  app.name("quasi-server backup");
  BackupOptions options;
  options.bytes_per_second = 64 << 20;
  app.add_option("DIR", options.folder, "folder of the backups; its parent must exist")->required();
  app.add_option("--keep", options.keep, "backups that stay, this one included; 0: all")
      ->capture_default_str();
  app.add_option("--bytes-per-second", options.bytes_per_second,
                 "highest rate of reading, so that the server stays fast; 0: no limit")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--copy", options.copies,
               "copy files even where a hard link in the same file system would do");
  Place place(app);
  if (const auto status = parse(app, argc, argv)) return *status;
  options.data_directory = place.resolve();
  lower_priority();
  const BackupReport report = back_up(options);
  std::cout << report.path << "\n"
            << counted(report.jobs, "job") << ", " << counted(report.blobs, "file") << " of "
            << shown_bytes(report.blob_bytes) << "; " << report.new_blobs << " new of "
            << shown_bytes(report.new_bytes) << "\n";
  if (report.removed > 0) std::cout << counted(report.removed, "older backup") << " removed\n";
  if (report.damaged.empty()) return kOk;
  std::cerr << "quasi-server: " << counted(static_cast<std::int64_t>(report.damaged.size()), "file")
            << " of " << options.data_directory
            << " could not be backed up, because the bytes are missing or wrong:\n";
  for (const std::string& name : report.damaged) std::cerr << "  " << name << '\n';
  std::cerr << "The backup holds everything else. quasi-server check --deep names the jobs; "
               "running them again restores their files.\n";
  return kBroken;
}

int restore_command(int argc, const char* const* argv) {
  CLI::App app{"Makes a new data directory from a backup. Nothing is overwritten."};
  app.name("quasi-server restore");
  RestoreOptions options;
  app.add_option("DIR", options.source, "folder of backups, i.e. its newest, or one of them")
      ->required();
  app.add_option("--data-directory", options.data_directory, "new directory; absent or empty")
      ->required();
  app.add_flag("--without-damaged", options.without_damaged,
               "restore the rest if files of the backup are missing or wrong");
  if (const auto status = parse(app, argc, argv)) return *status;
  while (options.data_directory.size() > 1 && options.data_directory.ends_with('/'))
    options.data_directory.pop_back();
  const RestoreReport report = restore(options);
  std::cout << report.backup << ", made " << report.made << ", is restored in "
            << options.data_directory << "\n"
            << counted(report.jobs, "job") << ", " << report.unfinished_jobs << " unfinished; "
            << counted(report.blobs, "file") << " of " << shown_bytes(report.blob_bytes) << "\n"
            << counted(report.released_attempts, "attempt")
            << " of that time released; workers that still run one end it, and the jobs wait\n";
  for (const std::string& name : report.damaged)
    std::cout << "missing or wrong in the backup: " << name << '\n';
  std::cout << "\ncheck it:  quasi-server check --data-directory " << options.data_directory
            << "\nstart it:  quasi-server --data-directory " << options.data_directory << '\n';
  return kOk;
}

int check_command(int argc, const char* const* argv) {
  CLI::App app{"Verifies the data directory, while the server runs or not. It only reads."};
  app.name("quasi-server check");
  bool is_deep = false, is_of_audit = false;
  app.add_flag("--deep", is_deep, "read and hash every file");
  app.add_flag("--audit", is_of_audit, "verify the audit alone: who did what");
  Place place(app);
  if (const auto status = parse(app, argc, argv)) return *status;
  const std::string directory = place.resolve();
  bool is_sound = true;
  if (!is_of_audit) {
    const StoreReport report = check_store(directory, is_deep);
    for (const std::string& fault : report.faults) std::cout << "BROKEN: " << fault << '\n';
    for (const std::string& note : report.notes) std::cout << "note: " << note << '\n';
    is_sound = report.faults.empty();
    if (is_sound)
      std::cout << "OK: " << counted(report.jobs, "job") << ", " << counted(report.files, "file")
                << " of " << shown_bytes(report.bytes)
                << (is_deep ? ", every one hashed\n" : ", present with their sizes\n");
  }
  std::cout << (is_of_audit ? "" : "audit: ");
  is_sound = print_audit(directory, std::cout) && is_sound;
  return is_sound ? kOk : kBroken;
}

}  // namespace quasi::server
