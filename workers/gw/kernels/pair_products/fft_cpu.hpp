#pragma once

#include <fftw3.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace quasi::gw {

/// Returns the lock for making and destroying FFTW plans, which must not happen at the same time.
/// Transforms may run at the same time.
inline std::mutex& fftw_planner() {
  static std::mutex planner;
  return planner;
}

/// Array with FFTW's alignment, so that one plan serves all such arrays.
class FftArray {
 public:
  FftArray() = default;
  explicit FftArray(std::int64_t count)
      : data_(count > 0 ? fftw_alloc_complex(static_cast<std::size_t>(count)) : nullptr),
        count_(count) {
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

/// In-place transform f(r) = Σ_G f(G) e^{+iGr} of one box, and its un-normalised inverse with
/// e^{−iGr}. The planner only estimates, because a measured plan, and with it the last bits, may
/// differ from run to run. See docs/theory/gw.md 3 for the equations.
class FftPlan {
 public:
  enum class Sign { kPlus, kMinus };
  FftPlan() = default;
  FftPlan(std::array<int, 3> box, Sign sign) {
    FftArray scratch(std::int64_t{1} * box[0] * box[1] * box[2]);
    auto* at = reinterpret_cast<fftw_complex*>(scratch.data());
    const std::lock_guard lock(fftw_planner());
    plan_ = fftw_plan_dft_3d(box[0], box[1], box[2], at, at,
                             sign == Sign::kPlus ? FFTW_BACKWARD : FFTW_FORWARD, FFTW_ESTIMATE);
  }
  ~FftPlan() {
    if (plan_ == nullptr) return;
    const std::lock_guard lock(fftw_planner());
    fftw_destroy_plan(plan_);
  }
  FftPlan(FftPlan&& other) noexcept : plan_(std::exchange(other.plan_, nullptr)) {}
  FftPlan& operator=(FftPlan&& other) noexcept {
    std::swap(plan_, other.plan_);
    return *this;
  }
  /// @param data  start of an FftArray, or a multiple of the box from it (an even count of values)
  void run(std::complex<double>* data) const {
    auto* at = reinterpret_cast<fftw_complex*>(data);
    fftw_execute_dft(plan_, at, at);
  }

 private:
  fftw_plan plan_ = nullptr;
};

/// In-place transform f(r) → Σ_r f(r) e^{+iGr} of one box, if only the G of a sphere are needed, or
/// f(G) → Σ_G f(G) e^{−iGr}, if f is 0 but for the G of a sphere.
///
/// It transforms axis by axis. Towards the sphere the last axis comes first. After each axis it
/// leaves out the lines of frequencies that no needed G has. If half of each axis is needed,
/// 1 + ½ + ¼ of three passes remain. Other values are left undefined. From the sphere the passes
/// come in reverse order.
class SphereTransform {
 public:
  enum class Direction { kToSphere, kFromSphere };
  SphereTransform() = default;
  /// @param box_index  (i·n1 + j)·n2 + k of the G of the sphere
  SphereTransform(std::array<int, 3> box, const std::vector<std::int32_t>& box_index,
                  Direction direction = Direction::kToSphere)
      : sign_(direction == Direction::kToSphere ? FFTW_BACKWARD : FFTW_FORWARD) {
    const std::array<std::vector<Range>, 3> wanted = wanted_ranges(box, box_index);
    FftArray scratch(std::int64_t{1} * box[0] * box[1] * box[2]);
    const std::lock_guard lock(fftw_planner());
    const int plane = box[1] * box[2];
    add_plan(scratch, 0, {box[2], 1, 1}, {{box[0] * box[1], box[2], box[2]}});
    for (const Range& k : wanted[2])
      add_plan(scratch, k.begin, {box[1], box[2], box[2]},
               {{box[0], plane, plane}, {k.size(), 1, 1}});
    for (const Range& j : wanted[1])
      for (const Range& k : wanted[2])
        add_plan(scratch, j.begin * box[2] + k.begin, {box[0], plane, plane},
                 {{j.size(), box[2], box[2]}, {k.size(), 1, 1}});
    if (direction == Direction::kFromSphere) std::reverse(steps_.begin(), steps_.end());
  }
  ~SphereTransform() {
    const std::lock_guard lock(fftw_planner());
    for (const Step& step : steps_) fftw_destroy_plan(step.plan);
  }
  SphereTransform(SphereTransform&& other) noexcept : steps_(std::exchange(other.steps_, {})) {}
  SphereTransform& operator=(SphereTransform&& other) noexcept {
    std::swap(steps_, other.steps_);
    return *this;
  }

  /// @param data  start of an FftArray
  void run(std::complex<double>* data) const {
    for (const Step& step : steps_) {
      auto* at = reinterpret_cast<fftw_complex*>(data + step.offset);
      fftw_execute_dft(step.plan, at, at);
    }
  }

 private:
  struct Step {
    fftw_plan plan;
    std::int64_t offset;
  };
  struct Range {
    int begin, end;
    int size() const { return end - begin; }
  };

  /// Returns the needed frequencies of each axis, as runs of consecutive indices.
  static std::array<std::vector<Range>, 3> wanted_ranges(
      std::array<int, 3> box, const std::vector<std::int32_t>& box_index) {
    std::array<std::vector<char>, 3> occurs;
    for (int d = 0; d < 3; ++d) occurs[d].assign(static_cast<std::size_t>(box[d]), 0);
    for (const std::int32_t index : box_index) {
      occurs[0][static_cast<std::size_t>(index / (box[1] * box[2]))] = 1;
      occurs[1][static_cast<std::size_t>(index / box[2] % box[1])] = 1;
      occurs[2][static_cast<std::size_t>(index % box[2])] = 1;
    }
    std::array<std::vector<Range>, 3> ranges;
    for (int d = 0; d < 3; ++d)
      for (int i = 0; i < box[d]; ++i) {
        if (!occurs[d][static_cast<std::size_t>(i)]) continue;
        if (ranges[d].empty() || ranges[d].back().end != i)
          ranges[d].push_back({i, i + 1});
        else
          ranges[d].back().end = i + 1;
      }
    return ranges;
  }

  void add_plan(const FftArray& scratch, std::int64_t offset, fftw_iodim axis,
                std::vector<fftw_iodim> many) {
    auto* at = reinterpret_cast<fftw_complex*>(scratch.data() + offset);
    steps_.push_back({fftw_plan_guru_dft(1, &axis, static_cast<int>(many.size()), many.data(), at,
                                         at, sign_, FFTW_ESTIMATE),
                      offset});
  }

  int sign_ = FFTW_BACKWARD;
  std::vector<Step> steps_;
};

}  // namespace quasi::gw
