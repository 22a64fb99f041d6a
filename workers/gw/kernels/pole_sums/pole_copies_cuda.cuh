#pragma once

#include <algorithm>
#include <cstdint>

#include "workers/backend/unset_vector.hpp"
#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

// Copies plasmon-pole models (docs/theory/gw.md 6.2) from host memory to a device. The host packs
// some rows at a time, so that its work space stays small.
namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;

/// Copies the lower triangle G' ≤ G of a real symmetric matrix to a device, row by row.
/// @param n      edge of the matrix
/// @param value  returns the element in row g and column h
template <typename Value>
DeviceBuffer<double> packed_on_device(CudaContext& context, std::int64_t n, const char* what,
                                      const Value& value) {
  constexpr std::int64_t kValues = std::int64_t{1} << 23;  // elements of one copy, 64 MiB
  DeviceBuffer<double> there(static_cast<std::size_t>(elements_of_change(n, true)), what);
  UnsetVector<double> piece(static_cast<std::size_t>(std::max(kValues, n)));
  for (std::int64_t begin = 0, end = 0; begin < n; begin = end) {
    const std::int64_t before = elements_of_rows(begin, n, true);
    for (end = begin + 1; end < n && elements_of_rows(end + 1, n, true) - before <= kValues;) ++end;
#pragma omp parallel for schedule(dynamic, 4)
    for (std::int64_t g = begin; g < end; ++g) {
      double* const row = piece.data() + (elements_of_rows(g, n, true) - before);
      for (std::int64_t h = 0; h <= g; ++h) row[h] = value(g, h);
    }
    context.staging().to_device(
        piece.data(),
        (elements_of_rows(end, n, true) - before) * static_cast<std::int64_t>(sizeof(double)),
        there.data() + before, context.stream(), what);
  }
  return there;
}

/// Refers to a row-major matrix in host memory. The stride is the number of elements from the start
/// of a row to the start of the next one.
template <typename T>
struct HostRows {
  const T* data;
  std::int64_t stride;
};

/// Copies the first `columns` elements of each of `rows` rows from host memory to a device. Rows
/// follow each other without gaps there.
template <typename T, typename OnDevice>
void rows_to_device(CudaContext& context, const HostRows<T>& from, std::int64_t rows,
                    std::int64_t columns, OnDevice* to) {
  constexpr const char* kWhat = "plasmon poles";
  constexpr std::int64_t kValues = std::int64_t{1} << 23;  // elements of one copy
  static_assert(sizeof(T) == sizeof(OnDevice));
  const std::int64_t at_once =
      columns == from.stride ? rows : std::max<std::int64_t>(1, kValues / columns);
  UnsetVector<T> piece(columns == from.stride ? 0 : static_cast<std::size_t>(at_once * columns));
  for (std::int64_t begin = 0; begin < rows; begin += at_once) {
    const std::int64_t count = std::min(at_once, rows - begin);
    const T* source = from.data + begin * from.stride;
    if (columns != from.stride) {
#pragma omp parallel for schedule(static)
      for (std::int64_t row = 0; row < count; ++row)
        std::copy_n(source + row * from.stride, columns, piece.data() + row * columns);
      source = piece.data();
    }
    context.staging().to_device(source, count * columns * static_cast<std::int64_t>(sizeof(T)),
                                to + begin * columns, context.stream(), kWhat);
  }
}

}  // namespace
}  // namespace quasi::gw::cuda
