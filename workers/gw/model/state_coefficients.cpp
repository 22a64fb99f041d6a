#include "workers/gw/model/state_coefficients.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

constexpr std::size_t kSmallestChunk_bytes = std::size_t{1} << 16,
                      kLargestChunk_bytes = std::size_t{1} << 22;
constexpr std::size_t kChunksOfMemory = 64;

std::size_t chunk_for(std::int64_t memory_bytes) {
  std::size_t chunk = kSmallestChunk_bytes;
  while (2 * chunk * kChunksOfMemory <= static_cast<std::size_t>(memory_bytes) &&
         chunk < kLargestChunk_bytes)
    chunk *= 2;
  return chunk;
}

}  // namespace

MappedStates::MappedStates(std::filesystem::path file, std::size_t offset_bytes, std::size_t count,
                           std::int64_t memory_bytes)
    : file_(std::move(file)),
      offset_bytes_(offset_bytes),
      count_(count),
      chunk_bytes_(chunk_for(memory_bytes)),
      memory_bytes_(memory_bytes) {
  const std::size_t bytes = offset_bytes_ + count_ * sizeof(std::complex<double>);
  const int descriptor = open(file_.c_str(), O_RDONLY | O_CLOEXEC);
  void* there =
      descriptor < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  const int failure = errno;
  if (descriptor >= 0) close(descriptor);
  if (there == MAP_FAILED)
    throw StorageError("cannot map '" + file_.string() + "' (" + std::to_string(bytes) +
                       " bytes of states): " + std::strerror(failure));
  begin_ = static_cast<char*>(there);
  place_.assign(bytes / chunk_bytes_ + 1, resident_.end());
}

MappedStates::~MappedStates() {
  munmap(begin_, offset_bytes_ + count_ * sizeof(std::complex<double>));
  std::error_code gone;
  if (std::uncaught_exceptions() == 0) std::filesystem::remove(file_, gone);
}

void MappedStates::drop(std::size_t chunk) const {
  const std::size_t end = offset_bytes_ + count_ * sizeof(std::complex<double>),
                    first = chunk * chunk_bytes_;
  madvise(begin_ + first, std::min(chunk_bytes_, end - first), MADV_DONTNEED);
}

const std::complex<double>* MappedStates::part(std::size_t first, std::size_t count) const {
  const std::size_t from = offset_bytes_ + first * sizeof(std::complex<double>),
                    to = from + count * sizeof(std::complex<double>);
  if (count > 0) {
    const std::lock_guard lock(mutex_);
    const std::size_t first_chunk = from / chunk_bytes_, last_chunk = (to - 1) / chunk_bytes_;
    for (std::size_t chunk = first_chunk; chunk <= last_chunk; ++chunk) {
      if (place_[chunk] == resident_.end())
        resident_.push_front(chunk);
      else
        resident_.splice(resident_.begin(), resident_, place_[chunk]);
      place_[chunk] = resident_.begin();
    }
    const std::size_t allowed = static_cast<std::size_t>(memory_bytes_) / chunk_bytes_,
                      wanted = std::max(allowed, last_chunk - first_chunk + 1);
    while (resident_.size() > wanted) {
      drop(resident_.back());
      place_[resident_.back()] = resident_.end();
      resident_.pop_back();
    }
  }
  return reinterpret_cast<const std::complex<double>*>(begin_ + from);
}

}  // namespace quasi::gw
