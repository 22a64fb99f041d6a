#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace quasi::wire {

/// SHA-256 of a stream: the name of a blob. Not thread-safe; movable.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(const void* data, std::size_t size);
  void update(std::string_view bytes) { update(bytes.data(), bytes.size()); }

  /// A second stream that has hashed the same bytes so far.
  Sha256 copy() const;

  /// Ends the stream; the object may only be destroyed or assigned to afterwards.
  std::array<std::uint8_t, 32> finish();
  /// As finish(), as 64 lower-case hexadecimal characters.
  std::string finish_hex();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

std::string to_hex(std::span<const std::uint8_t> bytes);
std::string sha256_hex(std::string_view bytes);

/// HMAC-SHA-256, for tokens that only their maker may write.
std::array<std::uint8_t, 32> hmac_sha256(std::string_view key, std::string_view message);

/// True for 64 lower-case hexadecimal characters.
bool is_digest(std::string_view text);

struct FileDigest {
  std::string digest;
  std::uint64_t size_bytes = 0;
};

/// Reads the whole file.
/// @throws std::system_error naming the path.
FileDigest digest_file(const std::filesystem::path& path);

}  // namespace quasi::wire
