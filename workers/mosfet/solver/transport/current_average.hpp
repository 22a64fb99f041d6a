#pragma once

#include <optional>
#include <vector>

namespace quasi::mosfet {

/// I(x), e/(fs nm), averaged over a window of time, and how flat and how steady it is.
struct SteadyWindow {
  double mean = 0;             ///< x-mean between the contact nodes
  double spread = 0;           ///< max − min over the half nodes between the contact nodes
  double spread_contacts = 0;  ///< the same over all half nodes
  double drift = 0;            ///< change of the mean since the window before this one
  double length_fs = 0;
  bool drift_known = false;     ///< there was a window before this one
  bool steady = false;          ///< spread and drift are known and within the limit
  std::vector<double> profile;  ///< I(x) [nx+1]
};

/// What counts as steady: spread and drift below `relative`·|mean|, or below `absolute`.
struct SteadyLimit {
  double relative = 0, absolute = 0;
};

/// Keeps ∫I dt of the last steps of a point, slice by slice, and averages over windows of length L
/// with the weight sin²(π(t−t₀)/L): what oscillates, as the plasma of the contacts does for
/// picoseconds, falls as (period/L)³ and not, as under a plain mean, as period/L. What flickers
/// without end, as the nonlinear weights of the transport let the contacts do at some 1e-5 of their
/// thermal flux, needs longer windows: L, 2L, 4L and 8L are tried.
class CurrentAverage {
 public:
  explicit CurrentAverage(double window_fs) : window_fs_(window_fs) {}
  double window_fs() const { return window_fs_; }

  /// `integral` [nx+1] is ∫I dt from the end of the slice before to `until_fs`.
  void add(double until_fs, const std::vector<double>& integral);
  /// The shortest of the windows that end now and are steady; else the one with the least spread
  /// and drift. Shorter than L while t < L; no value before the first slice.
  std::optional<SteadyWindow> window(const SteadyLimit& limit) const;

  /// What a checkpoint keeps: rows of [from, to, ∫I dt at nx+1 half nodes].
  const std::vector<double>& slices() const { return slices_; }
  void restore(std::vector<double> slices, int half_nodes);

 private:
  std::vector<double> average(double from_fs, double until_fs) const;
  SteadyWindow of_length(double length_fs, double now_fs, const SteadyLimit& limit) const;

  double window_fs_;
  std::size_t width_ = 0;  ///< of a row of slices_
  std::vector<double> slices_;
};

}  // namespace quasi::mosfet
