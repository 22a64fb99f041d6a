#pragma once

#include <fftw3.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace quasi::gw {

/// Array with FFTW's alignment, so that one plan serves every such array.
class FftArray {
 public:
  FftArray() = default;
  explicit FftArray(std::int64_t count)
      : data_(count > 0 ? fftw_alloc_complex(static_cast<std::size_t>(count)) : nullptr), count_(count) {
    if (count > 0 && data_ == nullptr) throw std::bad_alloc();
  }
  ~FftArray() { fftw_free(data_); }
  FftArray(FftArray&& other) noexcept { *this = std::move(other); }
  FftArray& operator=(FftArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  std::complex<double>* data() const { return reinterpret_cast<std::complex<double>*>(data_); }
  std::int64_t size() const { return count_; }

 private:
  fftw_complex* data_ = nullptr;
  std::int64_t count_ = 0;
};

/// In-place transform f(r) = Σ_G f(G) e^{+iGr} of one box (and its un-normalised twin with e^{−iGr}).
/// The planner only estimates: a measured plan may differ from run to run, and so may its last bits.
class FftPlan {
 public:
  enum class Sign { kPlus, kMinus };
  FftPlan() = default;
  FftPlan(std::array<int, 3> box, Sign sign) {
    FftArray scratch(std::int64_t{1} * box[0] * box[1] * box[2]);
    auto* at = reinterpret_cast<fftw_complex*>(scratch.data());
    plan_ = fftw_plan_dft_3d(box[0], box[1], box[2], at, at,
                             sign == Sign::kPlus ? FFTW_BACKWARD : FFTW_FORWARD, FFTW_ESTIMATE);
  }
  ~FftPlan() { if (plan_ != nullptr) fftw_destroy_plan(plan_); }
  FftPlan(FftPlan&& other) noexcept : plan_(std::exchange(other.plan_, nullptr)) {}
  FftPlan& operator=(FftPlan&& other) noexcept {
    std::swap(plan_, other.plan_);
    return *this;
  }
  /// @param data  from FftArray, at its start or at a multiple of the box (any even count of values)
  void run(std::complex<double>* data) const {
    auto* at = reinterpret_cast<fftw_complex*>(data);
    fftw_execute_dft(plan_, at, at);
  }

 private:
  fftw_plan plan_ = nullptr;
};

}  // namespace quasi::gw
