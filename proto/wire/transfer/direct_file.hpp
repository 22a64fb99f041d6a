#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace quasi::wire {

/// Writes the consecutive bytes of a large file past the page cache, in whole blocks. A machine
/// then neither copies them nor gives them memory. Where the file system does not permit it
/// (tmpfs), and for what does not fill a block, bytes go through the cache.
///
/// Nothing else may write to the file meanwhile. Reads through other descriptors are permitted.
class DirectWriter {
 public:
  /// Bytes that one write hands to the disk.
  static constexpr std::size_t kBlockBytes = std::size_t{4} << 20;

  /// @param descriptor  of a regular file open for writing; it must stay open
  /// @param offset  place of the first byte
  DirectWriter(int descriptor, std::uint64_t offset);
  DirectWriter(const DirectWriter&) = delete;
  DirectWriter& operator=(const DirectWriter&) = delete;

  /// Takes bytes. Fewer than kBlockBytes wait in memory. @throws std::system_error
  void append(const char* data, std::size_t size);

  /// Writes the bytes that wait. Calls of append() may follow. @throws std::system_error
  void flush();

 private:
  struct Release {
    void operator()(char* block) const { std::free(block); }
  };

  void write_block();
  std::size_t write_direct();
  void write_cached(const char* data, std::size_t size);
  bool set_direct(bool is_direct);

  int descriptor_;
  std::uint64_t written_;  ///< bytes of the file
  std::unique_ptr<char, Release> block_;
  std::size_t waiting_ = 0;  ///< bytes of the block
  bool is_permitted_ = true;
};

}  // namespace quasi::wire
