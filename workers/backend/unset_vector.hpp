#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace quasi {

/// Allocator that leaves new elements uninitialised if no value is given. The threads that fill an
/// array are then the first to touch its pages. Zeroing gigabytes on one thread would take longer
/// than most work on them.
template <typename T>
struct UnsetAllocator : std::allocator<T> {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  template <typename U>
  struct rebind {
    using other = UnsetAllocator<U>;
  };
  /// Allocates memory. Arrays of 2 MiB and more ask for large pages, so that the operating system
  /// zeroes and maps one page instead of 512. @throws std::bad_alloc without memory.
  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kLargePage_bytes) return std::allocator<T>::allocate(count);
    if (bytes > SIZE_MAX - kLargePage_bytes) throw std::bad_alloc();
    const std::size_t whole = (bytes + kLargePage_bytes - 1) / kLargePage_bytes * kLargePage_bytes;
    void* const there = std::aligned_alloc(kLargePage_bytes, whole);
    if (there == nullptr) throw std::bad_alloc();
    madvise(there, whole, MADV_HUGEPAGE);  // advice only; ordinary pages also work
    return static_cast<T*>(there);
  }
  void deallocate(T* there, std::size_t count) noexcept {
    if (count * sizeof(T) < kLargePage_bytes)
      std::allocator<T>::deallocate(there, count);
    else
      std::free(there);
  }
  template <typename U>
  void construct(U*) noexcept {}
  template <typename U, typename Arg, typename... More>
  void construct(U* at, Arg&& arg, More&&... more) {
    ::new (static_cast<void*>(at)) U(std::forward<Arg>(arg), std::forward<More>(more)...);
  }

 private:
  static constexpr std::size_t kLargePage_bytes = std::size_t{2} << 20;
};

/// A vector whose new elements are uninitialised after UnsetVector(n) and resize(n).
template <typename T>
using UnsetVector = std::vector<T, UnsetAllocator<T>>;

}  // namespace quasi
