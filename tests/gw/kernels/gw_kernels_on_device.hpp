#pragma once

// The suite of tests/gw/kernels that runs on every device, and plane waves in boxes for its cases.

#include <array>
#include <cstdint>
#include <vector>

#include "tests/support/every_device.hpp"

namespace quasi::test {

/// Suite of the kernels of pair products, polarizability and dense algebra.
class GwKernelsOnDevice : public OnEveryDevice {};

/// Index in a box of the point with integer coordinates `frequency`, wrapped around.
inline std::int32_t fold(const int* frequency, const std::array<int, 3>& box) {
  std::int32_t index = 0;
  for (int d = 0; d < 3; ++d) index = index * box[d] + (frequency[d] % box[d] + box[d]) % box[d];
  return index;
}

/// All integer vectors with |v_d| ≤ limit_d, three numbers each.
inline std::vector<int> frequencies_within(std::array<int, 3> limit) {
  std::vector<int> list;
  for (int i = -limit[0]; i <= limit[0]; ++i)
    for (int j = -limit[1]; j <= limit[1]; ++j)
      for (int k = -limit[2]; k <= limit[2]; ++k) list.insert(list.end(), {i, j, k});
  return list;
}

/// Indices in a box of the integer vectors `frequencies` (three numbers each).
inline std::vector<std::int32_t> box_indices(const std::vector<int>& frequencies,
                                             const std::array<int, 3>& box) {
  std::vector<std::int32_t> index;
  for (std::size_t g = 0; g < frequencies.size(); g += 3)
    index.push_back(fold(&frequencies[g], box));
  return index;
}

}  // namespace quasi::test
