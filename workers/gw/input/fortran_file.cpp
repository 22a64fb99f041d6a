#include "workers/gw/input/fortran_file.hpp"

#include <algorithm>

#include "workers/backend/error.hpp"
#include "workers/io/input_path.hpp"

namespace quasi::gw {
namespace {
constexpr std::int64_t kMaxSubrecord_bytes = 2147483639;  // 2³¹ − 9, as compilers write them

std::string file_text(const std::filesystem::path& path) {
  std::string text("'");
  text += path.string();
  text += '\'';
  return text;
}
}  // namespace

void FortranRecord::copy(void* out, std::int64_t bytes) {
  if (bytes < 0 || bytes > remaining())
    throw InvalidInput(where_ + " has " + std::to_string(size()) + " bytes, at least " +
                       std::to_string(at_ + bytes) +
                       " are needed; is it a file of another kind, or corrupted?");
  if (bytes > 0) std::memcpy(out, bytes_.data() + at_, static_cast<std::size_t>(bytes));
  at_ += bytes;
}

std::string FortranRecord::text(std::int64_t length) {
  std::string result(static_cast<std::size_t>(length), ' ');
  copy(result.data(), length);
  result.erase(result.find_last_not_of(" \0") + 1);
  return result;
}

void FortranRecord::finish() const {
  if (remaining() != 0)
    throw InvalidInput(where_ + " has " + std::to_string(size()) + " bytes, " +
                       std::to_string(at_) +
                       " were expected; is it a file of another kind, or corrupted?");
}

FortranReader::FortranReader(const std::filesystem::path& path)
    : path_(path), in_(input_file(path), std::ios::binary) {
  if (!std::filesystem::is_regular_file(path))
    throw InvalidInput(file_text(path) + (std::filesystem::exists(path) ? " is not a regular file"
                                                                        : " does not exist"));
  if (!in_) throw InvalidInput(file_text(path) + " cannot be opened for reading");
  file_bytes_ = static_cast<std::int64_t>(std::filesystem::file_size(path));
}

std::string FortranReader::where(std::string_view contents) const {
  return file_text(path_) + ": record " + std::to_string(record_) + " (" + std::string(contents) +
         ")";
}

std::int32_t FortranReader::marker(std::string_view contents) {
  std::int32_t count = 0;
  in_.read(reinterpret_cast<char*>(&count), sizeof count);
  if (!in_)
    throw InvalidInput(where(contents) + " is missing: the file ends after " +
                       std::to_string(file_bytes_) + " bytes; is it truncated?");
  return count;
}

std::int64_t FortranReader::head_of_part(std::string_view contents, bool* more) {
  const std::int32_t head = marker(contents);
  const std::int64_t length = head < 0 ? -std::int64_t{head} : head;
  const std::int64_t left = file_bytes_ - static_cast<std::int64_t>(in_.tellg());
  if (length + 4 > left)
    throw InvalidInput(
        where(contents) + " claims " + std::to_string(length) + " bytes but only " +
        std::to_string(std::max<std::int64_t>(0, left - 4)) +
        " are left; the file is truncated, or not Fortran unformatted little-endian");
  *more = head < 0;
  return length;
}

void FortranReader::tail_of_part(std::string_view contents, std::int64_t length) {
  const std::int32_t tail = marker(contents);
  if (std::abs(std::int64_t{tail}) != length)
    throw InvalidInput(where(contents) + " opens with a count of " + std::to_string(length) +
                       " bytes and closes with " + std::to_string(tail) +
                       "; the file is corrupted");
}

FortranRecord FortranReader::record(std::string_view contents) {
  ++record_;
  std::vector<char> bytes;
  for (bool more = true; more;) {
    const std::int64_t length = head_of_part(contents, &more);
    const std::size_t before = bytes.size();
    bytes.resize(before + static_cast<std::size_t>(length));
    in_.read(bytes.data() + before, length);
    tail_of_part(contents, length);
  }
  return {std::move(bytes), where(contents)};
}

void FortranReader::skip(std::string_view contents) {
  ++record_;
  for (bool more = true; more;) {
    const std::int64_t length = head_of_part(contents, &more);
    in_.seekg(length, std::ios::cur);
    tail_of_part(contents, length);
  }
}

FortranWriter::FortranWriter(const std::filesystem::path& path)
    : path_(path), out_(path.string() + ".tmp", std::ios::binary | std::ios::trunc) {
  if (!out_) throw StorageError("cannot create " + file_text(path.string() + ".tmp"));
}

FortranWriter& FortranWriter::text(std::string_view text, std::size_t length) {
  std::string padded(text.substr(0, length));
  padded.resize(length, ' ');
  pending_.insert(pending_.end(), padded.begin(), padded.end());
  return *this;
}

void FortranWriter::end_record() {
  const auto total = static_cast<std::int64_t>(pending_.size());
  std::int64_t at = 0;
  do {
    const std::int64_t length = std::min(total - at, kMaxSubrecord_bytes);
    const bool more = at + length < total;
    const auto head = static_cast<std::int32_t>(more ? -length : length);
    const auto tail = static_cast<std::int32_t>(at > 0 ? -length : length);
    out_.write(reinterpret_cast<const char*>(&head), 4);
    out_.write(pending_.data() + at, length);
    out_.write(reinterpret_cast<const char*>(&tail), 4);
    at += length;
  } while (at < total);
  pending_.clear();
}

void FortranWriter::commit() {
  out_.close();
  if (!out_)
    throw StorageError("cannot write " + file_text(path_.string() + ".tmp") +
                       "; is the disk full?");
  std::error_code failure;
  std::filesystem::rename(path_.string() + ".tmp", path_, failure);
  if (failure)
    throw StorageError("cannot rename to " + file_text(path_) + ": " + failure.message());
}

}  // namespace quasi::gw
