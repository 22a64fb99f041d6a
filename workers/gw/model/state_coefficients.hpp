#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

namespace quasi::gw {

/// Coefficients of states in a file that is mapped to memory, so that they may exceed the memory of
/// the host. The parts used last stay resident, up to a number of bytes. Older parts are read from
/// the file again when they are needed.
///
/// Thread-safe. A part that leaves memory while it is in use comes back by itself.
class MappedStates {
 public:
  /// Maps a file. The file is removed with this object, unless an exception ends the job: the job
  /// then resumes from the file.
  /// @param offset_bytes  of the first number in the file, a multiple of the page size
  /// @param count         complex numbers in the file
  /// @param memory_bytes  largest size of the parts that stay resident
  /// @throws StorageError if the file cannot be mapped
  MappedStates(std::filesystem::path file, std::size_t offset_bytes, std::size_t count,
               std::int64_t memory_bytes);
  ~MappedStates();
  MappedStates(const MappedStates&) = delete;
  MappedStates& operator=(const MappedStates&) = delete;

  /// Returns numbers [first, first + count).
  const std::complex<double>* part(std::size_t first, std::size_t count) const;
  std::int64_t bytes() const { return static_cast<std::int64_t>(count_) * 16; }
  std::int64_t memory_bytes() const { return memory_bytes_; }

 private:
  void drop(std::size_t chunk) const;
  std::filesystem::path file_;
  std::size_t offset_bytes_ = 0, count_ = 0, chunk_bytes_ = 0;
  std::int64_t memory_bytes_ = 0;
  char* begin_ = nullptr;  ///< of the mapping, with the header of the file
  mutable std::mutex mutex_;
  mutable std::list<std::size_t> resident_;                      ///< chunks, the last used first
  mutable std::vector<std::list<std::size_t>::iterator> place_;  ///< in `resident_`, or its end
};

/// Coefficients of all bands of one spin at one k-point, [n_bands][n_pw], in memory or in a file.
class StateCoefficients {
 public:
  using Cplx = std::complex<double>;
  StateCoefficients() = default;
  StateCoefficients(std::vector<Cplx> values) : values_(std::move(values)) {}
  StateCoefficients(std::shared_ptr<const MappedStates> file, std::size_t first, std::size_t count)
      : file_(std::move(file)), first_(first), count_(count) {}

  bool is_mapped() const { return file_ != nullptr; }
  std::size_t size() const { return is_mapped() ? count_ : values_.size(); }
  /// Returns numbers [first, first + count). Reading a mapped part costs no more than its own size.
  const Cplx* part(std::size_t first, std::size_t count) const {
    return is_mapped() ? file_->part(first_ + first, count) : values_.data() + first;
  }
  const Cplx* data() const { return part(0, size()); }
  const Cplx* begin() const { return data(); }
  const Cplx* end() const { return data() + size(); }
  const Cplx& operator[](std::size_t i) const { return *part(i, 1); }
  /// Bytes of memory that these numbers take. A file shares its memory between all its parts.
  double memory_bytes() const {
    const double own = 16.0 * static_cast<double>(size());
    if (!is_mapped() || file_->bytes() <= file_->memory_bytes()) return own;
    return own * static_cast<double>(file_->memory_bytes()) / static_cast<double>(file_->bytes());
  }

  /// Returns the numbers to be changed. Those of a file are copied to memory and leave the file.
  std::vector<Cplx>& in_memory() {
    if (is_mapped()) {
      values_.assign(begin(), end());
      file_.reset();
    }
    return values_;
  }
  operator const std::vector<Cplx>&() const {  // NOLINT: stands where a vector stood
    if (is_mapped()) throw std::logic_error("states in a file are no vector");
    return values_;
  }
  operator std::vector<Cplx>&() { return in_memory(); }  // NOLINT: as above
  void resize(std::size_t size) { in_memory().resize(size); }
  Cplx* data() { return in_memory().data(); }
  std::vector<Cplx>::iterator begin() { return in_memory().begin(); }
  std::vector<Cplx>::iterator end() { return in_memory().end(); }
  Cplx& operator[](std::size_t i) { return in_memory()[i]; }
  friend bool operator==(const StateCoefficients& a, const StateCoefficients& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::vector<Cplx> values_;
  std::shared_ptr<const MappedStates> file_;
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace quasi::gw
