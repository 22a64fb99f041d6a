#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace quasi {

/// Leaves new elements unset where no value is given, so that whoever fills gigabytes, on all threads, is the first to touch them: setting
/// them to 0 by one thread first takes longer than most of what is then done with them.
template <typename T>
struct UnsetAllocator : std::allocator<T> {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  template <typename U>
  struct rebind {
    using other = UnsetAllocator<U>;
  };
  template <typename U>
  void construct(U*) noexcept {}
  template <typename U, typename Arg, typename... More>
  void construct(U* at, Arg&& arg, More&&... more) {
    ::new (static_cast<void*>(at)) U(std::forward<Arg>(arg), std::forward<More>(more)...);
  }
};

/// A vector whose elements are unset after UnsetVector(n) and resize(n).
template <typename T>
using UnsetVector = std::vector<T, UnsetAllocator<T>>;

}  // namespace quasi
