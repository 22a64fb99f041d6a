#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workers/backend/error.hpp"

namespace quasi {

/// Packs numbers, lists and texts into one list of doubles, the form of messages between ranks and
/// of pieces in a checkpoint. UnpackedValues reads them back in the same order with the same bits.
class PackedValues {
 public:
  void add(double value) { values_.push_back(value); }
  void add(const std::vector<double>& values) {
    add(static_cast<double>(values.size()));
    values_.insert(values_.end(), values.begin(), values.end());
  }
  /// Packs two single-precision numbers into the bytes of one double.
  void add(const std::vector<float>& values) {
    add_bytes(values.data(), values.size() * sizeof(float));
  }
  void add(std::string_view text) { add_bytes(text.data(), text.size()); }

  /// Returns the packed list. The object is empty afterwards.
  std::vector<double> take() { return std::move(values_); }

 private:
  void add_bytes(const void* data, std::size_t size) {
    add(static_cast<double>(size));
    const std::size_t at = values_.size();
    values_.resize(at + size / sizeof(double) + (size % sizeof(double) > 0 ? 1 : 0));
    if (size > 0) std::memcpy(values_.data() + at, data, size);
  }

  std::vector<double> values_;
};

/// Reads lists that PackedValues has packed. The memory must outlive the reader. Every call throws
/// StorageError if the list ends too early.
class UnpackedValues {
 public:
  UnpackedValues(const double* data, std::size_t count) : data_(data), left_(count) {}

  double number() { return *next(1); }
  std::vector<double> list() {
    const std::size_t count = size();
    const double* from = next(count);
    return {from, from + count};
  }
  std::vector<float> floats() {
    const std::size_t bytes = size();
    std::vector<float> values(bytes / sizeof(float));
    const double* from = next((bytes + sizeof(double) - 1) / sizeof(double));
    if (bytes > 0) std::memcpy(values.data(), from, bytes);
    return values;
  }
  std::string text() {
    const std::size_t bytes = size();
    const auto* from =
        reinterpret_cast<const char*>(next((bytes + sizeof(double) - 1) / sizeof(double)));
    return {from, bytes};
  }
  /// Returns a count that was added as a number and is at most `limit`.
  std::size_t size(double limit = 1e15) {
    const double value = number();
    if (!(value >= 0.0 && value <= limit))
      throw StorageError(
          "a packed list contains an invalid size; the checkpoint or message is damaged");
    return static_cast<std::size_t>(value);
  }

 private:
  const double* next(std::size_t count) {
    if (count > left_)
      throw StorageError("a packed list ends too early; the checkpoint or message is damaged");
    const double* from = data_;
    data_ += count;
    left_ -= count;
    return from;
  }

  const double* data_;
  std::size_t left_;
};

}  // namespace quasi
