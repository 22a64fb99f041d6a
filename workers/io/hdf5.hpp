#pragma once

#include <hdf5.h>

#include <complex>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quasi {

/// Owns one HDF5 identifier and closes it with the right call.
class H5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  H5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  ~H5Handle() {
    if (id_ >= 0) close_(id_);
  }
  H5Handle(H5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  H5Handle& operator=(H5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  hid_t id() const { return id_; }

 private:
  hid_t id_;
  Close close_;
};

/// Reads datasets of one HDF5 file. Paths are absolute ("/eps_header/freqs/nfreq").
/// Every failure is an InvalidInput that names the file and the path.
class H5Reader {
 public:
  explicit H5Reader(const std::filesystem::path& path);

  bool has(const std::string& path) const;
  std::vector<std::int64_t> shape(const std::string& path) const;  ///< {} for a scalar
  std::vector<double> doubles(const std::string& path) const;      ///< converts any numeric type
  std::vector<std::int64_t> integers(const std::string& path) const;
  std::string text(const std::string& path) const;
  double number(const std::string& path) const;  ///< reads a scalar or a single element
  std::int64_t integer(const std::string& path) const;
  std::string text_attribute(const std::string& path, const std::string& name) const;
  std::vector<std::string> children(const std::string& group) const;
  /// Reads the hyperslab start[d] … start[d]+count[d]-1 of a dataset.
  std::vector<double> slab(const std::string& path, std::span<const std::int64_t> start,
                           std::span<const std::int64_t> count) const;

 private:
  std::filesystem::path path_;
  H5Handle file_;
};

/// Writes one HDF5 file that is either complete or absent. The data go to a temporary file beside
/// the target; commit() closes it, reopens it for a check, syncs and renames it. Without commit()
/// no file remains. Datasets carry a `units` attribute ("1" for dimensionless). Groups are made as
/// needed. @throws StorageError naming the file when the disk fails or is full.
class H5Writer {
 public:
  explicit H5Writer(const std::filesystem::path& path);
  ~H5Writer();
  H5Writer(const H5Writer&) = delete;
  H5Writer& operator=(const H5Writer&) = delete;

  void write(const std::string& path, std::span<const double> values,
             std::span<const std::int64_t> shape, std::string_view units);
  void write(const std::string& path, std::span<const float> values,
             std::span<const std::int64_t> shape, std::string_view units);
  void write(const std::string& path, std::span<const std::int64_t> values,
             std::span<const std::int64_t> shape, std::string_view units);
  void write(const std::string& path, std::span<const std::int32_t> values,
             std::span<const std::int64_t> shape, std::string_view units);
  /// Writes complex numbers with a last axis of length 2 (re, im).
  void write(const std::string& path, std::span<const std::complex<double>> values,
             std::span<const std::int64_t> shape, std::string_view units);
  template <typename T>
  void write(const std::string& path, const std::vector<T>& values,
             std::initializer_list<std::int64_t> shape, std::string_view units) {
    write(path, std::span<const T>(values),
          std::span<const std::int64_t>(shape.begin(), shape.size()), units);
  }
  /// Writes in compressed chunks (shuffle, deflate). It serves large arrays that are seldom read.
  void write_compressed(const std::string& path, std::span<const float> values,
                        std::span<const std::int64_t> shape, std::string_view units);
  /// Creates a dataset of doubles of this shape, filled with zeros, for write_slab().
  void create(const std::string& path, std::initializer_list<std::int64_t> shape,
              std::string_view units);
  /// Fills start[d] … start[d]+count[d]-1 of a dataset that create() made.
  void write_slab(const std::string& path, std::span<const std::int64_t> start,
                  std::span<const std::int64_t> count, std::span<const double> values);
  void write_scalar(const std::string& path, double value, std::string_view units);
  void write_scalar(const std::string& path, std::int64_t value, std::string_view units);
  void write_text(const std::string& path, std::string_view text);
  /// Writes an attribute of an existing object ("/" for the file).
  void attribute(const std::string& path, const std::string& name, std::string_view text);

  /// Returns the identifier of the open file, for walks over its objects; -1 after commit().
  hid_t id() const { return file_.id(); }

  /// Completes the file: closes, checks, syncs and renames it.
  void commit();

 private:
  enum class Layout { kContiguous, kCompressed };
  /// Numbers in memory, and the HDF5 type that they have there.
  struct Values {
    const void* data;
    std::size_t count;
    hid_t memory_type;
  };
  void write_values(const std::string& path, const Values& values,
                    std::span<const std::int64_t> shape, std::string_view units,
                    Layout layout = Layout::kContiguous);
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  H5Handle file_;
  bool committed_ = false;
};

}  // namespace quasi
