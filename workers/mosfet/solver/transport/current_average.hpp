#pragma once

#include <optional>
#include <vector>

namespace quasi::mosfet {

/// I(x), e/(fs nm), averaged over a window of time, with its spread along x and its drift in time.
struct SteadyWindow {
  double mean = 0;             ///< x-mean between the contact nodes
  double spread = 0;           ///< max − min over the half nodes between the contact nodes
  double spread_contacts = 0;  ///< max − min over all half nodes
  double drift = 0;            ///< change of the mean since the previous window
  double length_fs = 0;
  bool drift_known = false;     ///< there was a previous window
  bool steady = false;          ///< spread and drift are known and within the limit
  std::vector<double> profile;  ///< I(x) [nx+1]
};

/// Limit of a steady current: spread and drift are below `relative`·|mean|, or below `absolute`.
struct SteadyLimit {
  double relative = 0, absolute = 0;
};

/// Keeps ∫I dt of the last steps of a point, slice by slice, and averages over windows of length L
/// with the weight sin²(π(t−t₀)/L).
///
/// An oscillation, such as the plasma of the contacts over picoseconds, falls as (period/L)³ with
/// this weight and as period/L with a plain mean. The nonlinear weights of the transport can make
/// the contacts flicker without end at some 1e-5 of their thermal flux. This needs longer windows,
/// so L, 2L, 4L and 8L are tried.
class CurrentAverage {
 public:
  explicit CurrentAverage(double window_fs) : window_fs_(window_fs) {}
  double window_fs() const { return window_fs_; }

  /// Adds `integral` [nx+1], which is ∫I dt from the end of the previous slice to `until_fs`.
  void add(double until_fs, const std::vector<double>& integral);
  /// Returns the shortest steady window that ends at this time, else the window with the least
  /// spread and drift. The window is shorter than L while t < L. Returns no value before the first
  /// slice.
  std::optional<SteadyWindow> window(const SteadyLimit& limit) const;

  /// Returns the rows [from, to, ∫I dt at nx+1 half nodes] for a checkpoint.
  const std::vector<double>& slices() const { return slices_; }
  /// Restores the rows of slices().
  void restore(std::vector<double> slices, int half_nodes);

 private:
  std::vector<double> average(double from_fs, double until_fs) const;
  SteadyWindow window_of_length(double length_fs, double now_fs, const SteadyLimit& limit) const;

  double window_fs_;
  std::size_t width_ = 0;  ///< width of a row of slices_
  std::vector<double> slices_;
};

}  // namespace quasi::mosfet
