#include "proto/wire/transfer/direct_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

namespace quasi::wire {
namespace {

/// Alignment of memory, offset and length that every disk accepts.
constexpr std::size_t kAlignment = 4096;

[[noreturn]] void fail() { throw std::system_error(errno, std::generic_category(), "write"); }

}  // namespace

DirectWriter::DirectWriter(int descriptor, std::uint64_t offset)
    : descriptor_(descriptor), written_(offset) {}

void DirectWriter::append(const char* data, std::size_t size) {
  if (!block_) {
    block_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, kBlockBytes)));
    if (!block_) throw std::bad_alloc();
  }
  while (size > 0) {
    const std::size_t taken = std::min(size, kBlockBytes - waiting_);
    std::memcpy(block_.get() + waiting_, data, taken);
    waiting_ += taken;
    data += taken;
    size -= taken;
    if (waiting_ == kBlockBytes) write_block();
  }
}

void DirectWriter::flush() {
  write_cached(block_.get(), waiting_);
  waiting_ = 0;
}

void DirectWriter::write_block() {
  const std::size_t within_sector = written_ % kAlignment;
  if (within_sector > 0) {
    // The cache takes the bytes up to the next sector.
    const std::size_t head = kAlignment - within_sector;
    write_cached(block_.get(), head);
    waiting_ -= head;
    std::memmove(block_.get(), block_.get() + head, waiting_);
    return;
  }
  const std::size_t direct = is_permitted_ && set_direct(true) ? write_direct() : 0;
  write_cached(block_.get() + direct, kBlockBytes - direct);
  waiting_ = 0;
}

std::size_t DirectWriter::write_direct() {
  std::size_t done = 0;
  while (done < kBlockBytes && is_permitted_) {
    const ssize_t put =
        pwrite(descriptor_, block_.get() + done, kBlockBytes - done, static_cast<off_t>(written_));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno != EINVAL) fail();
    const auto size = static_cast<std::size_t>(std::max<ssize_t>(put, 0));
    // The file system has other rules, or the write ended within a sector.
    if (size == 0 || size % kAlignment != 0) is_permitted_ = false;
    done += size;
    written_ += size;
  }
  set_direct(false);
  return done;
}

void DirectWriter::write_cached(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t put = pwrite(descriptor_, data, size, static_cast<off_t>(written_));
    if (put < 0) {
      if (errno == EINTR) continue;
      fail();
    }
    data += put;
    size -= static_cast<std::size_t>(put);
    written_ += static_cast<std::uint64_t>(put);
  }
}

bool DirectWriter::set_direct(bool is_direct) {
  const int flags = fcntl(descriptor_, F_GETFL);
  if (flags >= 0 &&
      fcntl(descriptor_, F_SETFL, is_direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0)
    return true;
  is_permitted_ = false;
  return false;
}

}  // namespace quasi::wire
