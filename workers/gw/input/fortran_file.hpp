#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quasi::gw {

/// One record of a Fortran unformatted file, whose values are taken from front to back.
class FortranRecord {
 public:
  FortranRecord(std::vector<char> bytes, std::string where)
      : bytes_(std::move(bytes)), where_(std::move(where)) {}

  std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }
  std::int64_t remaining() const { return size() - at_; }
  /// Next `count` values. @throws InvalidInput if the record is too short.
  template <typename T>
  std::vector<T> take(std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    copy(values.data(), count * static_cast<std::int64_t>(sizeof(T)));
    return values;
  }
  template <typename T>
  T take() {
    return take<T>(1)[0];
  }
  std::string text(std::int64_t length);
  /// @throws InvalidInput if bytes are left: the file's layout is another than expected.
  void finish() const;

 private:
  void copy(void* out, std::int64_t bytes);
  std::vector<char> bytes_;
  std::string where_;
  std::int64_t at_ = 0;
};

/// Fortran sequential unformatted file, little endian: each record between two 4-byte counts.
/// Records beyond 2³¹ − 9 bytes come in sub-records whose counts are negative while more follows.
/// Every failure is an InvalidInput that names file, record number, contents and byte offset.
class FortranReader {
 public:
  explicit FortranReader(const std::filesystem::path& path);
  /// Reads the next record. @param contents  names its expected contents in messages
  FortranRecord record(std::string_view contents);
  /// Passes over the next record without reading it.
  void skip(std::string_view contents);
  /// A record that holds exactly `count` values.
  template <typename T>
  std::vector<T> values(std::int64_t count, std::string_view contents) {
    FortranRecord next = record(contents);
    auto result = next.template take<T>(count);
    next.finish();
    return result;
  }
  std::string where(std::string_view contents) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::int32_t marker(std::string_view contents);
  /// Reads the count at the head of a part of a record. @return its length
  std::int64_t head_of_part(std::string_view contents, bool* more);
  void tail_of_part(std::string_view contents, std::int64_t length);
  std::filesystem::path path_;
  std::ifstream in_;
  std::int64_t file_bytes_ = 0;
  std::int64_t record_ = 0;
};

/// Writes a Fortran unformatted file. The file is complete after commit(). Without it, it is
/// removed.
class FortranWriter {
 public:
  explicit FortranWriter(const std::filesystem::path& path);
  template <typename T>
  FortranWriter& put(std::span<const T> values) {
    const auto* from = reinterpret_cast<const char*>(values.data());
    pending_.insert(pending_.end(), from, from + values.size_bytes());
    return *this;
  }
  template <typename T>
  FortranWriter& put(const std::vector<T>& values) {
    return put(std::span<const T>(values));
  }
  template <typename T>
  FortranWriter& put(const T& value) {
    return put(std::span<const T>(&value, 1));
  }
  /// Text blank-padded to `length`.
  FortranWriter& text(std::string_view text, std::size_t length);
  /// Ends the record.
  void end_record();
  void commit();

 private:
  std::filesystem::path path_;
  std::ofstream out_;
  std::vector<char> pending_;
};

}  // namespace quasi::gw
