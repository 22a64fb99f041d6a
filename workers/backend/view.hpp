#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "workers/backend/host_device.hpp"

namespace quasi {

/// Dense row-major array that another object owns: a pointer and the extents, slowest index first.
/// Indices are not checked. It is usable in host and device code.
template <typename T, int Rank>
struct View {
  T* data = nullptr;
  std::int64_t extent[Rank] = {};

  template <typename... Index>
  QUASI_HD T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == Rank);
    const std::int64_t at[Rank] = {static_cast<std::int64_t>(index)...};
    std::int64_t offset = at[0];
    for (int d = 1; d < Rank; ++d) offset = offset * extent[d] + at[d];
    return data[offset];
  }

  QUASI_HD std::int64_t size() const {
    std::int64_t n = 1;
    for (int d = 0; d < Rank; ++d) n *= extent[d];
    return n;
  }
};

/// Makes a view of any container with data(), e.g. view<const double>(omega, n_q, n_branches).
template <typename T, typename Container, typename... Extent>
View<T, sizeof...(Extent)> view(Container& container, Extent... extent) {
  return {container.data(), {static_cast<std::int64_t>(extent)...}};
}

}  // namespace quasi
