#include "workers/daemon/worker_identity.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>

#include "proto/wire/validate.hpp"
#include "workers/daemon/error.hpp"

namespace quasi {
namespace {

/// Makes an id of 48 bits of milliseconds and 80 random bits in Crockford's base32, like every id
/// of the service.
std::string make_worker_id() {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  std::random_device random;
  auto milliseconds =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
  std::array<char, 26> text{};
  for (std::size_t i = 10; i-- > 0; milliseconds >>= 5) text[i] = kDigits[milliseconds & 31];
  for (std::size_t i = 10; i < text.size(); ++i) text[i] = kDigits[random() & 31];
  return "w_" + std::string(text.data(), text.size());
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
