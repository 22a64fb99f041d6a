#pragma once

#include <utility>

namespace quasi::cuda {

/// Owns one handle of CUDA or of a CUDA library and destroys it with `kDestroy`. It can be moved
/// but not copied. A default-constructed owner holds no handle.
template <typename Handle, auto kDestroy>
class OwnedHandle {
 public:
  OwnedHandle() = default;
  explicit OwnedHandle(Handle handle) : handle_(handle) {}
  // A failure to destroy is not reported, because it only follows an earlier failure.
  ~OwnedHandle() {
    if (handle_ != Handle{}) kDestroy(handle_);
  }
  OwnedHandle(OwnedHandle&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  OwnedHandle& operator=(OwnedHandle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_{};
};

}  // namespace quasi::cuda
