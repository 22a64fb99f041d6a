#include "proto/wire/digest.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace quasi::wire {
namespace {

EVP_MD_CTX* context_of(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

void Sha256::Free::operator()(void* context) const { EVP_MD_CTX_free(context_of(context)); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  // The algorithm is fetched once, because a lookup costs more than hashing a small message.
  static const EVP_MD* const kAlgorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  if (!context_) throw std::bad_alloc();
  if (EVP_DigestInit_ex(context_of(context_.get()), kAlgorithm, nullptr) != 1)
    throw std::runtime_error("this OpenSSL offers no SHA-256");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(const void* data, std::size_t size) {
  EVP_DigestUpdate(context_of(context_.get()), data, size);
}

Sha256 Sha256::copy() const {
  Sha256 other;
  if (EVP_MD_CTX_copy_ex(context_of(other.context_.get()), context_of(context_.get())) != 1)
    throw std::bad_alloc();
  return other;
}

std::array<std::uint8_t, 32> Sha256::finish() {
  std::array<std::uint8_t, 32> digest;
  EVP_DigestFinal_ex(context_of(context_.get()), digest.data(), nullptr);
  return digest;
}

std::string Sha256::finish_hex() { return to_hex(finish()); }

std::string to_hex(std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish_hex();
}

std::string sha256_bytes(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  const auto digest = hash.finish();
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::array<std::uint8_t, 32> hmac_sha256(std::string_view key, std::string_view message) {
  std::array<std::uint8_t, 32> mac{};
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), mac.data(),
           &size) == nullptr)
    throw std::runtime_error("this OpenSSL offers no HMAC-SHA-256");
  return mac;
}

bool is_digest(std::string_view text) {
  if (text.size() != 64) return false;
  for (const char c : text)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  return true;
}

FileDigest digest_file(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw std::system_error(errno, std::generic_category(), "open " + path.string());
  FileDigest result;
  Sha256 hash;
  std::vector<char> buffer(1U << 20);
  for (;;) {
    const ssize_t size = read(file, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      const int error = errno;
      close(file);
      throw std::system_error(error, std::generic_category(), "read " + path.string());
    }
    if (size == 0) break;
    hash.update(buffer.data(), static_cast<std::size_t>(size));
    result.size_bytes += static_cast<std::uint64_t>(size);
  }
  close(file);
  result.digest = hash.finish_hex();
  return result;
}

}  // namespace quasi::wire
