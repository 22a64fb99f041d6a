#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace quasi::gw {

/// Holds a range [begin, end) of row numbers of a matrix whose rows and columns are plane waves.
/// PoleSumKernels::load_rows() needs a `begin` that is a multiple of kRowsOfRange.
struct ElementRows {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
inline constexpr std::int64_t kRowsOfRange = 32;

/// Largest value of the deck key epsilon.column_slices.
inline constexpr int kMostColumnSlices = 64;

// A slice is a range of rows of one triangle of a Hermitian matrix, so that one device need not
// hold the whole matrix (docs/theory/gw.md 4.3). χ(0), ε̃⁻¹ and the plasmon poles of W are
// cut this way. The other triangle is the adjoint, so that a row of one triangle is a column of the
// other. The ends of the slices do not depend on the number of devices. Results are therefore equal
// in every bit for any number of devices.

/// Cuts the rows of the upper triangle G ≤ G' of a matrix of edge n into slices. All slices have
/// nearly the same number of elements of the triangle.
/// @param n      edge of the matrix, ≥ 1
/// @param count  wanted number of slices, ≥ 1
/// @return at most `count` slices in ascending order, none of which is empty
inline std::vector<ElementRows> slices_of_upper_triangle(std::int64_t n, std::int64_t count) {
  std::vector<ElementRows> slices;
  for (std::int64_t i = 1, begin = 0; i <= count; ++i) {
    const double left = 1.0 - static_cast<double>(i) / static_cast<double>(count);
    const std::int64_t end =
        i == count ? n : std::llround(static_cast<double>(n) * (1.0 - std::sqrt(left)));
    if (end <= begin) continue;
    slices.push_back({begin, end});
    begin = end;
  }
  return slices;
}

/// Cuts the rows of the lower triangle G' ≤ G of a matrix of edge n into slices. All slices have
/// nearly the same number of elements of the triangle. Every end but the last is a multiple of
/// kRowsOfRange.
/// @param n      edge of the matrix, ≥ 1
/// @param count  wanted number of slices, ≥ 1
/// @return at most `count` slices in ascending order, none of which is empty
inline std::vector<ElementRows> slices_of_lower_triangle(std::int64_t n, std::int64_t count) {
  std::vector<ElementRows> slices;
  for (std::int64_t i = 1, begin = 0; i <= count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(count),
                 rows = static_cast<double>(n) * std::sqrt(share);
    const std::int64_t end =
        i == count ? n
                   : std::min<std::int64_t>(n, std::llround(rows / kRowsOfRange) * kRowsOfRange);
    if (end <= begin) continue;
    slices.push_back({begin, end});
    begin = end;
  }
  return slices;
}

/// Returns the number of elements that the largest slice of χ takes in device memory. The device
/// holds the rectangle of the rows [begin, end) and the columns G' ≥ begin.
inline std::int64_t largest_chi_slice(std::int64_t n, std::int64_t count) {
  std::int64_t largest = 0;
  for (const ElementRows& rows : slices_of_upper_triangle(n, count))
    largest = std::max(largest, rows.size() * (n - rows.begin));
  return largest;
}

/// Returns the number of elements that the largest slice of the poles takes in device memory. The
/// device holds the rectangle of the rows [begin, end) and the columns G' < end.
inline std::int64_t largest_pole_slice(std::int64_t n, std::int64_t count) {
  std::int64_t largest = 0;
  for (const ElementRows& rows : slices_of_lower_triangle(n, count))
    largest = std::max(largest, rows.size() * rows.end);
  return largest;
}

/// Returns the number of rows that one step of invert_in_slices() eliminates.
/// @param n      edge of the matrix
/// @param count  number of slices
inline std::int64_t rows_of_panel(std::int64_t n, std::int64_t count) {
  // A panel of 4096 rows and its product fill at most a tenth of the memory of a device.
  constexpr std::int64_t kMost = 4096;
  return std::clamp<std::int64_t>((n + count - 1) / count, 1, kMost);
}

}  // namespace quasi::gw
