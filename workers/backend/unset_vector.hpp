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

/// Leaves new elements unset where no value is given, so that whoever fills gigabytes, on all
/// threads, is the first to touch them: setting them to 0 by one thread first takes longer than
/// most of what is then done with them.
template <typename T>
struct UnsetAllocator : std::allocator<T> {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  template <typename U>
  struct rebind {
    using other = UnsetAllocator<U>;
  };
  /// Large arrays ask for large pages: the kernel then has one to hand over where there were 512,
  /// each set to 0 under one lock.
  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kLargePage_bytes) return std::allocator<T>::allocate(count);
    if (bytes > SIZE_MAX - kLargePage_bytes) throw std::bad_alloc();
    const std::size_t whole = (bytes + kLargePage_bytes - 1) / kLargePage_bytes * kLargePage_bytes;
    void* const there = std::aligned_alloc(kLargePage_bytes, whole);
    if (there == nullptr) throw std::bad_alloc();
    madvise(there, whole, MADV_HUGEPAGE);  // a wish: where it cannot be had, ordinary pages do
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

/// A vector whose elements are unset after UnsetVector(n) and resize(n).
template <typename T>
using UnsetVector = std::vector<T, UnsetAllocator<T>>;

}  // namespace quasi
