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

/// SHA-256 of a stream of bytes. The digest of a file is the name of its blob. Not thread-safe;
/// movable.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(const void* data, std::size_t size);
  void update(std::string_view bytes) { update(bytes.data(), bytes.size()); }

  /// A second stream with the same state.
  Sha256 copy() const;

  /// Ends the stream. The object may only be destroyed or assigned to after that.
  std::array<std::uint8_t, 32> finish();
  /// Ends the stream like finish() and returns 64 lower-case hexadecimal characters.
  std::string finish_hex();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

std::string to_hex(std::span<const std::uint8_t> bytes);
std::string sha256_hex(std::string_view bytes);
/// The digest as 32 bytes.
std::string sha256_bytes(std::string_view bytes);

/// HMAC-SHA-256, for tokens that only the owner of the key can create.
std::array<std::uint8_t, 32> hmac_sha256(std::string_view key, std::string_view message);

/// True for 64 lower-case hexadecimal characters.
bool is_digest(std::string_view text);

struct FileDigest {
  std::string digest;
  std::uint64_t size_bytes = 0;
};

/// Hashes the whole file.
/// @throws std::system_error naming the path.
FileDigest digest_file(const std::filesystem::path& path);

}  // namespace quasi::wire
