#include "workers/daemon/worker_identity.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>

#include "proto/wire/text/ids.hpp"
#include "proto/wire/validate.hpp"
#include "workers/daemon/error.hpp"

namespace quasi {
namespace {

std::string make_worker_id() {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(
                                std::chrono::system_clock::now().time_since_epoch())
                                .count();
  std::random_device random;
  const auto draw = [&] { return std::uint64_t{random()} << 32 | random(); };
  return wire::make_id('w', milliseconds, {draw(), draw()});
}

}  // namespace

StateLock::StateLock(const std::filesystem::path& state_directory)
    : descriptor_(open((state_directory / "LOCK").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640)) {
  if (descriptor_ < 0)
    throw StorageFailure("cannot open '" + (state_directory / "LOCK").string() +
                         "': " + std::strerror(errno));
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  close(descriptor_);
  throw AlreadyRunning("a quasi-worker is already running on '" + state_directory.string() +
                       "'; set another state_directory for this worker");
}

StateLock::~StateLock() { close(descriptor_); }

std::string load_worker_id(FileSystem& files, const std::filesystem::path& state_directory) {
  const auto path = state_directory / "worker_id";
  if (auto text = files.read_file(path)) {
    while (!text->empty() && text->back() == '\n') text->pop_back();
    if (!wire::is_id(*text, 'w'))
      throw ConfigError("'" + path.string() +
                        "' contains no valid worker id; remove the file to get a new id");
    return *text;
  }
  const std::string id = make_worker_id();
  replace_file_durably(files, path, id + "\n");
  return id;
}

}  // namespace quasi
