#include "server/service/key_file.hpp"

#include <openssl/rand.h>
#include <sys/stat.h>

#include <stdexcept>

namespace quasi::server {
namespace {

constexpr std::size_t kKeyBytes = 32;

}  // namespace

std::string session_key(FileSystem& files, const std::string& root) {
  const std::string path = root + "/session.key";
  std::string key(kKeyBytes, '\0');
  if (files.exists(path) &&
      files.open(path, FileSystem::Open::kRead)->read(0, key.data(), kKeyBytes) == kKeyBytes)
    return key;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), static_cast<int>(key.size())) != 1)
    throw std::runtime_error("RAND_bytes: OpenSSL provides no random bytes");
  const std::string part = path + ".part";
  files.remove(part);
  {
    const auto file = files.open(part, FileSystem::Open::kCreate);
    ::chmod(part.c_str(), 0600);
    file->write(0, key);
    file->sync();
  }
  files.rename(part, path);
  files.sync_directory(root);
  return key;
}

}  // namespace quasi::server
