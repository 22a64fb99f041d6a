#include "tests/service/support/sync_trace.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>

namespace quasi::test {
namespace {

std::mutex guard;
bool recording = false;
std::vector<SyncTrace::Call> recorded;
std::string failing_part;
int failing_error = 0;

/// Records a sync. @return the errno value that it must fail with, or 0.
int note_sync(int descriptor) {
  const std::lock_guard lock(guard);
  if (!recording) return 0;
  std::error_code error;
  const auto path =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), error).string();
  struct stat facts {};
  const bool is_file = ::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
  recorded.push_back({.kind = SyncTrace::Call::Kind::kSync,
                      .path = path,
                      .to = {},
                      .size_bytes = is_file ? facts.st_size : 0,
                      .thread = std::this_thread::get_id()});
  const bool fails = !failing_part.empty() && path.find(failing_part) != std::string::npos;
  return fails ? failing_error : 0;
}

int sync_with(long number, int descriptor) {
  if (const int error = note_sync(descriptor)) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(number, descriptor));
}

}  // namespace

SyncTrace::SyncTrace() {
  const std::lock_guard lock(guard);
  recording = true;
  recorded.clear();
  failing_part.clear();
}

SyncTrace::~SyncTrace() {
  const std::lock_guard lock(guard);
  recording = false;
}

void SyncTrace::fail_syncs_of(const std::string& part, int error) {
  const std::lock_guard lock(guard);
  failing_part = part;
  failing_error = error;
}

std::vector<SyncTrace::Call> SyncTrace::calls() const {
  const std::lock_guard lock(guard);
  return recorded;
}

int SyncTrace::sync_of(const std::string& path, std::int64_t size_bytes) const {
  const auto all = calls();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].kind == Call::Kind::kSync && all[i].path == path && all[i].size_bytes == size_bytes)
      return static_cast<int>(i);
  return -1;
}

int SyncTrace::directory_sync_of(const std::string& path, int after) const {
  const auto all = calls();
  for (std::size_t i = static_cast<std::size_t>(after + 1); i < all.size(); ++i)
    if (all[i].kind == Call::Kind::kSync && all[i].path == path) return static_cast<int>(i);
  return -1;
}

int SyncTrace::rename_to(const std::string& to) const {
  const auto all = calls();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].kind == Call::Kind::kRename && all[i].to == to) return static_cast<int>(i);
  return -1;
}

}  // namespace quasi::test

extern "C" {

int fsync(int descriptor) { return quasi::test::sync_with(SYS_fsync, descriptor); }

int fdatasync(int descriptor) { return quasi::test::sync_with(SYS_fdatasync, descriptor); }

int rename(const char* from, const char* to) noexcept {
  {
    const std::lock_guard lock(quasi::test::guard);
    if (quasi::test::recording)
      quasi::test::recorded.push_back({.kind = quasi::test::SyncTrace::Call::Kind::kRename,
                                       .path = from,
                                       .to = to,
                                       .size_bytes = 0,
                                       .thread = std::this_thread::get_id()});
  }
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

}  // extern "C"
