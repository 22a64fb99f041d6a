// Builds a root directory that holds the files of the rules and nothing else, and enters it.
// Landlock forbids to open other files; without their mounts not even their names, sizes and times
// can be seen (mount_namespaces(7), pivot_root(2)).

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "workers/cage/cage.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;

constexpr long kMountSetAttribute = 442;
/// The new root is built on this folder, in the mount namespace of this process alone.
constexpr const char* kSite = "/tmp";

bool lies_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

/// Sets MOUNT_ATTR_* of a mount, and of those below it.
bool set_attributes(const fs::path& target, std::uint64_t attributes, bool recursive) {
  mount_attr change{};
  change.attr_set = attributes;
  return syscall(kMountSetAttribute, AT_FDCWD, target.c_str(), recursive ? AT_RECURSIVE : 0,
                 &change, sizeof change) == 0;
}

/// Names a file or folder of the machine that the new root holds at the same path.
struct Part {
  fs::path path;
  int descriptor = -1;  ///< opened before the new root covers anything
  bool is_folder = false;
  std::uint64_t attributes = 0;
};

/// Holds the parts of a new root, opened.
class Parts {
 public:
  Parts() = default;
  ~Parts() {
    for (const Part& part : parts_) close(part.descriptor);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  /// Adds what exists at `path`.
  void add(const fs::path& path, std::uint64_t attributes) {
    const int descriptor = open(path.c_str(), O_PATH | O_CLOEXEC);
    struct stat found {};
    if (descriptor < 0 || fstat(descriptor, &found) != 0) return;
    parts_.push_back({path, descriptor, S_ISDIR(found.st_mode), attributes});
  }
  /// Returns them with each folder before the parts below it.
  std::vector<Part>& sorted() {
    std::stable_sort(parts_.begin(), parts_.end(),
                     [](const Part& a, const Part& b) { return a.path < b.path; });
    return parts_;
  }

 private:
  std::vector<Part> parts_;
};

/// Builds a root directory. The first failure is kept with its step.
class Root {
 public:
  bool begin() {
    // Nothing that happens here reaches the other mount namespaces of the machine.
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return fail("privacy");
    if (mount("quasi-cage", kSite, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=4m") != 0)
      return fail("a root in memory");
    begun_ = true;
    return true;
  }
  ~Root() {
    if (begun_) umount2(kSite, MNT_DETACH);
  }
  Root() = default;
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  /// Shows a part at its path.
  bool show(const Part& part) {
    if (is_visible(part)) return true;
    const fs::path target = site(part.path);
    if (is_alias(part.path)) {
      std::error_code failure;
      fs::create_symlink(fs::read_symlink(part.path, failure), target, failure);
      return !failure || failed("link", part.path);
    }
    if (!make_place(target, part.is_folder)) return failed("place", part.path);
    const std::string source = "/proc/self/fd/" + std::to_string(part.descriptor);
    if (mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
      return failed("mount", part.path);
    if (!set_attributes(target, part.attributes, true)) return failed("attributes", part.path);
    shown_.push_back(part);
    return true;
  }
  /// A process finds its own entry of /proc by a link.
  bool link_self() {
    std::error_code failure;
    const fs::path proc = site("/proc");
    if (fs::exists(proc / "self", failure)) return true;
    fs::create_symlink(std::to_string(getpid()), proc / "self", failure);
    return !failure || failed("link", "/proc/self");
  }
  bool make_folder(const fs::path& path) {
    return make_place(site(path), true) || failed("place", path);
  }

  /// Makes this the root of the process and lets go of the former root.
  bool enter(const fs::path& working_directory) {
    if (!set_attributes(kSite, MOUNT_ATTR_RDONLY, false)) return fail("closing the root");
    if (chdir(kSite) != 0 || syscall(SYS_pivot_root, ".", ".") != 0) return fail("pivot_root");
    begun_ = false;
    if (umount2(".", MNT_DETACH) != 0 || chdir(working_directory.c_str()) != 0) {
      // The process has lost its former root and cannot work in the new one.
      const char message[] = "error: quasi-cage cannot leave the root of this machine\n";
      if (write(STDERR_FILENO, message, sizeof message - 1) < 0) _exit(126);
      _exit(126);
    }
    return true;
  }

  const std::string& failure() const { return failure_; }
  std::size_t n_shown() const { return shown_.size(); }

 private:
  static fs::path site(const fs::path& path) { return kSite + path.string(); }
  bool fail(const std::string& step) {
    failure_ = step + ": " + std::strerror(errno);
    return false;
  }
  bool failed(const char* step, const fs::path& path) {
    return fail(std::string(step) + " of " + path.string());
  }
  /// Returns true if a part above this one shows it with the same attributes.
  bool is_visible(const Part& part) const {
    return std::any_of(shown_.begin(), shown_.end(), [&](const Part& shown) {
      return lies_below(part.path, shown.path) && part.attributes == shown.attributes;
    });
  }
  /// Returns true for a link such as /lib, whose target is shown.
  bool is_alias(const fs::path& path) const {
    std::error_code failure;
    if (!fs::is_symlink(path, failure)) return false;
    const fs::path target = fs::canonical(path, failure);
    return !failure && std::any_of(shown_.begin(), shown_.end(), [&](const Part& shown) {
      return lies_below(target, shown.path);
    });
  }
  /// Makes an empty file or folder to mount on, without following links of the new root.
  bool make_place(const fs::path& target, bool is_folder) {
    std::error_code failure;
    fs::path made = kSite;
    for (const fs::path& name : target.lexically_relative(kSite).parent_path()) {
      made /= name;
      if (fs::is_symlink(made, failure)) return false;
      if (mkdir(made.c_str(), 0755) != 0 && errno != EEXIST) return false;
    }
    if (fs::is_symlink(target, failure)) return false;
    if (is_folder) return mkdir(target.c_str(), 0755) == 0 || errno == EEXIST;
    const int file = open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return false;
    close(file);
    return true;
  }

  std::vector<Part> shown_;
  std::string failure_;
  bool begun_ = false;
};

void add_parts(const CageRules& rules, Parts& parts) {
  const std::string self = "/proc/" + std::to_string(getpid());
  const bool has_proc =
      std::find(rules.readable.begin(), rules.readable.end(), "/proc") != rules.readable.end();
  for (const auto& path : rules.readable) {
    if (has_proc && path != "/proc" && lies_below(path, "/proc")) continue;
    // The entry of the process itself stays writable, for the names of its threads.
    const bool is_proc = lies_below(path, "/proc");
    parts.add(path == "/proc/self" ? fs::path(self) : path,
              MOUNT_ATTR_NOSUID | (is_proc ? 0 : MOUNT_ATTR_RDONLY));
  }
  for (const auto& path : rules.writable)
    parts.add(path, std::uint64_t{MOUNT_ATTR_NOSUID} | MOUNT_ATTR_NODEV);
  for (const auto& path : rules.devices) parts.add(path, MOUNT_ATTR_NOSUID);
}

}  // namespace

CageWall cage::hide_files(const CageRules& rules, const Namespaces& namespaces) {
  const std::string name = "mount namespace";
  if (!namespaces.mounts) return {false, name + ": " + namespaces.refusal};
  std::error_code failure;
  const fs::path working_directory = fs::current_path(failure);
  Parts parts;
  add_parts(rules, parts);
  Root root;
  if (failure || !root.begin()) return {false, name + ", " + root.failure()};
  // Links such as /lib come last, when their targets are known.
  for (const bool links : {false, true})
    for (const Part& part : parts.sorted())
      if (fs::is_symlink(part.path, failure) == links && !root.show(part))
        return {false, name + ", " + root.failure()};
  if (!root.link_self() || !root.make_folder(working_directory) || !root.enter(working_directory))
    return {false, name + ", " + root.failure()};
  return {true, "a root of its own with " + std::to_string(root.n_shown()) + " mounts"};
}

}  // namespace quasi
