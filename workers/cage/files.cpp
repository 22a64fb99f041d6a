// Closes the files with Landlock, which any process may apply to itself (landlock(7)).

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "workers/cage/cage.hpp"

namespace quasi {
namespace {

// Constants of the kernel's linux/landlock.h. Debian 12 ships the header of version 2. The rights
// of later versions are used if the running kernel has them.
namespace right {
constexpr std::uint64_t kExecute = 1U << 0, kWriteFile = 1U << 1, kReadFile = 1U << 2,
                        kReadDirectory = 1U << 3, kRemoveDirectory = 1U << 4, kRemoveFile = 1U << 5,
                        kMakeCharacterDevice = 1U << 6, kMakeDirectory = 1U << 7,
                        kMakeRegular = 1U << 8, kMakeSocket = 1U << 9, kMakeFifo = 1U << 10,
                        kMakeBlockDevice = 1U << 11, kMakeSymlink = 1U << 12, kRefer = 1U << 13,
                        kTruncate = 1U << 14, kControlDevice = 1U << 15;
constexpr std::uint64_t kRead = kExecute | kReadFile | kReadDirectory;
constexpr std::uint64_t kWrite = kReadFile | kReadDirectory | kWriteFile | kRemoveDirectory |
                                 kRemoveFile | kMakeDirectory | kMakeRegular | kRefer | kTruncate;
// Rights that apply to files too, not only to directories.
constexpr std::uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate | kControlDevice;
}  // namespace right

struct RulesetAttributes {
  std::uint64_t files = 0;    ///< rights that are refused unless a rule grants them
  std::uint64_t network = 0;  ///< from version 4: binding and connecting TCP
  std::uint64_t scopes = 0;   ///< from version 6: abstract sockets and signals stay inside
};

struct __attribute__((packed)) PathRule {
  std::uint64_t allowed;
  std::int32_t descriptor;
};

constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr int kVersionFlag = 1, kPathRule = 1;

int landlock_version() {
  return static_cast<int>(syscall(kCreateRuleset, nullptr, 0, kVersionFlag));
}

/// Returns the rights and the size of the attributes that a version of Landlock knows.
RulesetAttributes attributes_of(int version, const CageRules& rules, std::size_t* size) {
  RulesetAttributes attributes;
  attributes.files = (std::uint64_t{1} << 13) - 1;
  if (version >= 2) attributes.files |= right::kRefer;
  if (version >= 3) attributes.files |= right::kTruncate;
  if (version >= 5) attributes.files |= right::kControlDevice;
  if (version >= 4 && !rules.processes && !rules.network) attributes.network = 3;
  if (version >= 6) attributes.scopes = 3;
  *size = version >= 6   ? sizeof attributes
          : version >= 4 ? 2 * sizeof(std::uint64_t)
                         : sizeof(std::uint64_t);
  return attributes;
}

/// A set of rules under construction.
class Ruleset {
 public:
  Ruleset(int version, const CageRules& rules) {
    std::size_t size = 0;
    const RulesetAttributes attributes = attributes_of(version, rules, &size);
    handled_ = attributes.files;
    descriptor_ = static_cast<int>(syscall(kCreateRuleset, &attributes, size, 0));
  }
  ~Ruleset() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Ruleset(const Ruleset&) = delete;
  Ruleset& operator=(const Ruleset&) = delete;

  bool is_open() const { return descriptor_ >= 0; }

  /// Grants `rights` below `path`. @return false if the kernel refused an existing path.
  bool grant(const std::filesystem::path& path, std::uint64_t rights) {
    std::error_code failure;
    const bool is_directory = std::filesystem::is_directory(path, failure);
    const int descriptor = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (descriptor < 0) return errno == ENOENT || errno == EACCES || errno == ENOTDIR;
    const PathRule rule{rights & handled_ & (is_directory ? ~std::uint64_t{0} : right::kOfFiles),
                        descriptor};
    const bool done = syscall(kAddRule, descriptor_, kPathRule, &rule, 0) == 0;
    close(descriptor);
    return done;
  }

  bool enforce() { return syscall(kRestrictSelf, descriptor_, 0) == 0; }

 private:
  int descriptor_ = -1;
  std::uint64_t handled_ = 0;
};

CageWall refused(const char* step) {
  return {false, std::string("Landlock, ") + step + ": " + std::strerror(errno)};
}

}  // namespace

CageRules system_rules() {
  CageRules rules;
  rules.readable = {"/usr",
                    "/lib",
                    "/lib64",
                    "/bin",
                    "/opt",
                    "/sys",
                    "/proc/self",
                    "/proc/cpuinfo",
                    "/proc/devices",
                    "/proc/driver",
                    "/proc/meminfo",
                    "/proc/modules",
                    "/proc/stat",
                    "/proc/sys",
                    "/etc/alternatives",
                    "/etc/ld.so.cache",
                    "/etc/ld.so.preload",
                    "/etc/localtime",
                    "/etc/nvidia"};
  if (const char* folders = std::getenv("LD_LIBRARY_PATH")) {
    std::istringstream list(folders);
    for (std::string folder; std::getline(list, folder, ':');)
      if (folder.starts_with('/') && folder.size() > 1) rules.readable.emplace_back(folder);
  }
  rules.devices = {"/dev/null",   "/dev/zero",    "/dev/full",
                   "/dev/random", "/dev/urandom", "/dev/nvidia-caps"};
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", failure))
    if (entry.path().filename().string().starts_with("nvidia") && !entry.is_directory(failure))
      rules.devices.push_back(entry.path());
  return rules;
}

CageWall cage::close_files(const CageRules& rules) {
  const int version = landlock_version();
  if (version < 1) return refused("which the kernel lacks or the container forbids");
  Ruleset ruleset(version, rules);
  if (!ruleset.is_open()) return refused("making the rules");
  const std::uint64_t special = rules.processes ? right::kMakeSocket | right::kMakeFifo : 0;
  for (const auto& path : rules.readable)
    if (!ruleset.grant(path, right::kRead)) return refused("allowing a folder");
  // The CUDA driver gives its threads names, in files of the process's own.
  if (!ruleset.grant("/proc/self/task", right::kReadFile | right::kReadDirectory |
                                            right::kWriteFile | right::kTruncate))
    return refused("allowing the threads' own files");
  for (const auto& path : rules.writable)
    if (!ruleset.grant(path, right::kWrite | special)) return refused("allowing a folder");
  for (const auto& path : rules.devices)
    if (!ruleset.grant(path, right::kReadFile | right::kWriteFile | right::kReadDirectory |
                                 right::kControlDevice))
      return refused("allowing a device");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return refused("giving up new privileges");
  if (!ruleset.enforce()) return refused("enforcing the rules");
  return {true, "Landlock " + std::to_string(version)};
}

}  // namespace quasi
