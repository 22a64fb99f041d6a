#pragma once

#include <algorithm>
#include <cstdint>

#include "workers/backend/unset_vector.hpp"
#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

// Copies of plasmon-pole models (docs/theory/gw.md 6.2) from host memory to a device. The host
// packs some rows at a time.
namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;

/// Copies the triangle G' ≤ G of a real symmetric matrix to a device, row by row.
/// @param value  value(g, h) gives an element
template <typename Value>
DeviceBuffer<double> packed_on_device(CudaContext& context, std::int64_t n, const char* what,
                                      const Value& value) {
  constexpr std::int64_t kValues = std::int64_t{1} << 23;  // packed at a time, 64 MiB
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

/// A row-major matrix in host memory; `stride` is the distance between rows in numbers.
template <typename T>
struct HostRows {
  const T* data;
  std::int64_t stride;
};

/// Copies the first columns of consecutive rows of a matrix in host memory to a device.
template <typename T, typename OnDevice>
void rows_to_device(CudaContext& context, const HostRows<T>& from, std::int64_t rows,
                    std::int64_t columns, OnDevice* to) {
  constexpr const char* kWhat = "plasmon poles";
  constexpr std::int64_t kValues = std::int64_t{1} << 23;  // packed at a time
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
