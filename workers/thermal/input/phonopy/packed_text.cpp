#include "workers/thermal/input/phonopy/packed_text.hpp"

#include <lzma.h>
#include <zlib.h>

#include <array>
#include <fstream>
#include <iterator>
#include <memory>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

constexpr std::size_t kLargest_bytes = std::size_t{1} << 30;
constexpr std::size_t kPart_bytes = std::size_t{1} << 16;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  throw InvalidInput(file.filename().string() + " " + what);
}

void append(const std::filesystem::path& file, const char* part, std::size_t size,
            std::string& text) {
  if (text.size() + size > kLargest_bytes) refuse(file, "holds more than 1 GiB of text");
  text.append(part, size);
}

std::string read_gzip(const std::filesystem::path& file) {
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> in(gzopen(file.c_str(), "rb"), gzclose);
  if (!in) refuse(file, "cannot be opened");
  std::string text;
  std::array<char, kPart_bytes> part{};
  int count = 0;
  while ((count = gzread(in.get(), part.data(), part.size())) > 0)
    append(file, part.data(), static_cast<std::size_t>(count), text);
  int status = Z_OK;
  gzerror(in.get(), &status);
  if (count < 0 || status != Z_OK) refuse(file, "is damaged: it cannot be unpacked");
  return text;
}

std::string read_plain(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse(file, "cannot be opened");
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string read_xz(const std::filesystem::path& file) {
  const std::string packed = read_plain(file);
  lzma_stream stream = LZMA_STREAM_INIT;
  const std::unique_ptr<lzma_stream, decltype(&lzma_end)> owner(&stream, lzma_end);
  if (lzma_stream_decoder(&stream, UINT64_MAX, LZMA_CONCATENATED) != LZMA_OK)
    refuse(file, "cannot be unpacked: no memory");
  stream.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  std::string text;
  std::array<char, kPart_bytes> part{};
  for (lzma_ret status = LZMA_OK; status == LZMA_OK;) {
    stream.next_out = reinterpret_cast<std::uint8_t*>(part.data());
    stream.avail_out = part.size();
    status = lzma_code(&stream, LZMA_FINISH);
    if (status != LZMA_OK && status != LZMA_STREAM_END)
      refuse(file, "is damaged: it cannot be unpacked");
    append(file, part.data(), part.size() - stream.avail_out, text);
  }
  return text;
}

}  // namespace

std::string read_packed_text(const std::filesystem::path& file) {
  if (file.extension() == ".gz") return read_gzip(file);
  if (file.extension() == ".xz") return read_xz(file);
  return read_plain(file);
}

}  // namespace quasi::thermal
