#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace quasi::gw {

/// Rows G of a matrix between plane waves, [begin, end). Ranges of rows of a pole model that a
/// device takes begin at a multiple of kRowsOfRange.
struct ElementRows {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
inline constexpr std::int64_t kRowsOfRange = 32;

/// Largest number of slices that a deck may ask for.
inline constexpr int kMostColumnSlices = 64;

// The matrices χ(0), ε̃⁻¹ and the plasmon poles of a Hermitian W are cut into slices
// (docs/theory/gw.md 4.3). A slice holds rows of one triangle of a matrix. The other triangle is
// its adjoint, so that these rows are columns G' of the whole matrix as well. The number of slices
// and their ends do not depend on the number of devices, so that bits do not either.

/// Cuts the rows of the triangle G ≤ G' of a matrix of edge n into slices of about equal size.
/// @return at most `count` slices, none of which is empty
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

/// Cuts the rows of the triangle G' ≤ G of a matrix of edge n into slices of about equal size.
/// Ends other than the last are multiples of kRowsOfRange.
/// @return at most `count` slices, none of which is empty
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

/// Returns the number of elements of the largest slice of χ in device memory. A slice is a
/// rectangle of its rows G and of the columns G' ≥ its first row.
inline std::int64_t largest_chi_slice(std::int64_t n, std::int64_t count) {
  std::int64_t largest = 0;
  for (const ElementRows& rows : slices_of_upper_triangle(n, count))
    largest = std::max(largest, rows.size() * (n - rows.begin));
  return largest;
}

/// Returns the number of elements of the largest slice of the poles in device memory. A slice is a
/// rectangle of its rows G and of the columns G' < its last row.
inline std::int64_t largest_pole_slice(std::int64_t n, std::int64_t count) {
  std::int64_t largest = 0;
  for (const ElementRows& rows : slices_of_lower_triangle(n, count))
    largest = std::max(largest, rows.size() * rows.end);
  return largest;
}

/// Returns the number of rows that one step of the sliced inversion eliminates.
inline std::int64_t rows_of_panel(std::int64_t n, std::int64_t count) {
  constexpr std::int64_t kMost = 4096;  // a panel and its product keep to a tenth of a device
  return std::clamp<std::int64_t>((n + count - 1) / count, 1, kMost);
}

}  // namespace quasi::gw
