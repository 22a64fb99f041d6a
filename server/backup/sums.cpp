#include "server/backup/sums.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

#include "proto/wire/digest.hpp"
#include "server/api/local_address.hpp"

namespace quasi::server {
namespace {

constexpr std::size_t kPiece = 1 << 18;
constexpr std::size_t kDigestLength = 64;

/// Reads a file in pieces, up to `most_bytes`, and hashes them.
template <class OnPiece>
CopiedFile read_pieces(FileSystem::File& file, std::int64_t most_bytes, const OnPiece& on_piece) {
  wire::Sha256 hash;
  CopiedFile done;
  std::vector<char> piece(kPiece);
  while (done.size_bytes < most_bytes) {
    const auto wanted = static_cast<std::size_t>(
        std::min<std::int64_t>(most_bytes - done.size_bytes, static_cast<std::int64_t>(kPiece)));
    const std::size_t size =
        file.read(static_cast<std::uint64_t>(done.size_bytes), piece.data(), wanted);
    if (size == 0) break;
    hash.update(piece.data(), size);
    on_piece(static_cast<std::uint64_t>(done.size_bytes), std::string_view(piece.data(), size));
    done.size_bytes += static_cast<std::int64_t>(size);
  }
  done.sha256 = hash.finish_hex();
  return done;
}

}  // namespace

std::string to_text(const Sums& sums) {
  std::string text;
  for (const auto& [name, digest] : sums) text += digest + "  " + name + "\n";
  return text;
}

Sums parse_sums(const std::string& text) {
  Sums sums;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string digest = line.substr(0, kDigestLength);
    const bool is_sum = wire::is_digest(digest) && line.size() > kDigestLength + 2 &&
                        line.substr(kDigestLength, 2) == "  ";
    const std::string name = is_sum ? line.substr(kDigestLength + 2) : "";
    // A name leads nowhere but below its folder.
    if (!is_sum || name.front() == '/' || name.find("..") != std::string::npos)
      throw BadConfiguration("SHA256SUMS has a line that is no sum of a file: \"" +
                             line.substr(0, 100) + "\"; use another backup");
    sums[name] = digest;
  }
  return sums;
}

CopiedFile copy_file(FileSystem& files, const FileCopy& copy) {
  const std::string part = copy.to + ".part";
  files.remove(part);
  const auto source = files.open(copy.from, FileSystem::Open::kRead);
  const auto target = files.open(part, FileSystem::Open::kCreate);
  std::int64_t unsynced = 0;
  const CopiedFile done =
      read_pieces(*source, copy.most_bytes, [&](std::uint64_t offset, std::string_view bytes) {
        target->write(offset, bytes);
        unsynced += static_cast<std::int64_t>(bytes.size());
        if (unsynced < copy.synced_bytes) return;
        target->sync();
        unsynced = 0;
      });
  target->sync();
  files.rename(part, copy.to);
  return done;
}

CopiedFile hash_file(FileSystem& files, const std::string& path) {
  const auto file = files.open(path, FileSystem::Open::kRead);
  return read_pieces(*file, INT64_MAX, [](std::uint64_t, std::string_view) {});
}

void write_text(FileSystem& files, const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  files.remove(part);
  {
    const auto file = files.open(part, FileSystem::Open::kCreate);
    file->write(0, text);
    file->sync();
  }
  files.rename(part, path);
}

std::string read_text(FileSystem& files, const std::string& path) {
  const auto file = files.open(path, FileSystem::Open::kRead);
  std::string text(static_cast<std::size_t>(file->size()), '\0');
  text.resize(file->read(0, text.data(), text.size()));
  return text;
}

void make_directories(FileSystem& files, const std::string& root, const std::string& relative) {
  for (std::size_t slash = relative.find('/');; slash = relative.find('/', slash + 1)) {
    files.make_directory(root + "/" + relative.substr(0, slash));
    if (slash == std::string::npos) return;
  }
}

}  // namespace quasi::server
