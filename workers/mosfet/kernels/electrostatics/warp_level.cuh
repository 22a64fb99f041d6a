#pragma once

#include "workers/mosfet/kernels/transport/fast_quotient.cuh"
#include "workers/mosfet/physics/tridiagonal.hpp"

namespace quasi::mosfet::cuda {

/// Workspace of one warp for one level; all arrays are [n].
struct LevelWorkspace {
  double *psi, *forward, *backward, *up, *down;
};

/// Computes the leading minors of (T − shift)·per_scale from one end; their quotients are the
/// pivots. Each minor takes a multiply-add, while a pivot would take a division. With the factor
/// 4/scale the minors of a free wave neither grow nor shrink. They stay within the range of a
/// double for all sizes that the back end accepts. If one left the range, the level would fail its
/// certificate.
/// @param minors  minors[k] belongs to the rows up to k, counted from its end; null: count only
/// @return the number of changes of sign, which is the number of levels below `shift`
__device__ inline int sweep_minors(const Tridiagonal& t, double shift, double per_scale,
                                   bool from_last, double* minors) {
  double before = 0.0, minor = 1.0, off2 = 0.0;
  int count = 0;
#pragma unroll 4
  for (int step = 0; step < t.n; ++step) {
    const int k = from_last ? t.n - 1 - step : step;
    const double next = fma((t.diagonal[k] - shift) * per_scale, minor, -off2 * before);
    count += (next < 0.0) != (minor < 0.0);
    before = minor;
    minor = next;
    if (minors != nullptr) minors[k] = minor;
    if (step + 1 < t.n) {
      const double off = t.off[from_last ? k - 1 : k] * per_scale;
      off2 = off * off;
    }
  }
  return count;
}

/// Computes y_k = Π ratio outwards from the twist: `up` below it, `down` above it, 1 at it. Every
/// lane multiplies a chunk of neighbours, and scans over the lanes join the chunks.
__device__ inline void outward_products(int n, int twist, const double* up, const double* down,
                                        double* y) {
  constexpr unsigned kAll = 0xffffffffu;
  const int lane = threadIdx.x & 31, chunk = (n + 31) / 32;
  const int begin = min(n, lane * chunk), end = min(n, begin + chunk);
  double below = 1.0, above = 1.0;
  for (int k = begin; k < end; ++k) {
    if (k < twist) below *= up[k];
    if (k > twist) above *= down[k];
  }
  for (int step = 1; step < 32; step <<= 1) {
    const double from_above = __shfl_down_sync(kAll, below, step),
                 from_below = __shfl_up_sync(kAll, above, step);
    if (lane + step < 32) below *= from_above;
    if (lane >= step) above *= from_below;
  }
  below = __shfl_down_sync(kAll, below, 1);  // without the lane's own chunk
  above = __shfl_up_sync(kAll, above, 1);
  if (lane == 31) below = 1.0;
  if (lane == 0) above = 1.0;
  for (int k = end - 1; k >= begin; --k)
    if (k < twist) y[k] = below *= up[k];
  for (int k = begin; k < end; ++k)
    if (k > twist) y[k] = above *= down[k];
  if (lane == 0) y[twist] = 1.0;
}

/// The row of smallest |γ| and its γ, equal on all lanes.
struct Twist {
  double gamma = 1e300;
  int row = 0;
};

/// Finds the twist from the minors of both ends, and the quotients of neighbouring components on
/// either side of it. In a tie the lowest row is taken.
__device__ inline Twist find_twist(const Tridiagonal& t, double shift, const LevelWorkspace& work) {
  constexpr FastQuotient quotient{};
  const double per_scale = 4.0 / t.scale_ev;
  Twist twist;
  for (int k = threadIdx.x & 31; k < t.n; k += 32) {
    const double forward = work.forward[k], forward_before = k > 0 ? work.forward[k - 1] : 1.0;
    const double backward = work.backward[k],
                 backward_before = k + 1 < t.n ? work.backward[k + 1] : 1.0;
    const double candidate =
        (quotient(forward, forward_before) + quotient(backward, backward_before)) *
            (0.25 * t.scale_ev) -
        (t.diagonal[k] - shift);
    work.up[k] = k + 1 < t.n ? -t.off[k] * per_scale * quotient(forward_before, forward) : 0.0;
    work.down[k] = k > 0 ? -t.off[k - 1] * per_scale * quotient(backward_before, backward) : 0.0;
    if (fabs(candidate) < fabs(twist.gamma)) twist = {candidate, k};
  }
  for (int step = 16; step > 0; step >>= 1) {
    const double other = __shfl_xor_sync(0xffffffffu, twist.gamma, step);
    const int at = __shfl_xor_sync(0xffffffffu, twist.row, step);
    if (fabs(other) < fabs(twist.gamma) || (fabs(other) == fabs(twist.gamma) && at < twist.row))
      twist = {other, at};
  }
  return twist;
}

/// Normalises ψ to Δz Σψ² = 1. Its first component above 1e-3 of the largest becomes positive.
__device__ inline void normalise_level(int n, double step_nm, double norm2, double* psi) {
  constexpr unsigned kAll = 0xffffffffu;
  const int lane = threadIdx.x & 31;
  double largest = 0.0;
  for (int k = lane; k < n; k += 32) largest = fmax(largest, fabs(psi[k]));
  for (int step = 16; step > 0; step >>= 1)
    largest = fmax(largest, __shfl_xor_sync(kAll, largest, step));
  int first = n;
  for (int k = lane; k < n; k += 32)
    if (fabs(psi[k]) > 1e-3 * largest && k < first) first = k;
  for (int step = 16; step > 0; step >>= 1) first = min(first, __shfl_xor_sync(kAll, first, step));
  const double factor = (psi[first] > 0.0 ? 1.0 : -1.0) / sqrt(step_nm * norm2);
  __syncwarp();
  for (int k = lane; k < n; k += 32) psi[k] *= factor;
  __syncwarp();
}

/// Runs solve_level() with a warm start on one warp (docs/theory/mosfet.md 9.4). Forward and
/// backward recurrences run on two lanes at once, and all other work is spread over the lanes. If
/// it fails, lane 0 runs the plain cold solver. @return true if the pair converged and is
/// certified; *lambda_ev is equal on all lanes.
__device__ inline bool warp_solve_level(const Tridiagonal& t, int level, double step_nm,
                                        double* lambda_ev, const LevelWorkspace& work) {
  constexpr unsigned kAll = 0xffffffffu;
  constexpr int kMaxIterations = 8;
  const int lane = threadIdx.x & 31;
  const double width = 1e-13 * t.scale_ev, per_scale = 4.0 / t.scale_ev;
  int count = 0;
  double norm2 = -1.0, shift = *lambda_ev;
  for (int iteration = 0; iteration < kMaxIterations && norm2 < 0.0; ++iteration) {
    // Lanes 2 and 3 count the levels below either side of the shift, so the certificate takes no
    // further time.
    if (lane < 4)
      count = sweep_minors(t,
                           lane < 2    ? shift
                           : lane == 2 ? shift - width
                                       : shift + width,
                           per_scale, lane == 1,
                           lane == 0   ? work.forward
                           : lane == 1 ? work.backward
                                       : nullptr);
    __syncwarp();
    const Twist twist = find_twist(t, shift, work);
    outward_products(t.n, twist.row, work.up, work.down, work.psi);
    __syncwarp();
    double sum = 0.0;
    for (int k = lane; k < t.n; k += 32) sum += work.psi[k] * work.psi[k];
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(kAll, sum, step);
    shift += twist.gamma / sum;
    if (fabs(twist.gamma) <= 4e-15 * t.scale_ev * sqrt(sum)) norm2 = sum;
  }
  // The converged shift has moved by less than 4e-15 of the scale since the count.
  const int below = __shfl_sync(kAll, count, 2), above = __shfl_sync(kAll, count, 3);
  if (norm2 < 0.0 || below > level || above <= level) {
    int good = 0;
    if (lane == 0)
      good = solve_level(t, level, false, step_nm, &shift, {work.psi, work.forward, work.backward});
    __syncwarp();
    *lambda_ev = __shfl_sync(kAll, shift, 0);
    return __shfl_sync(kAll, good, 0) != 0;
  }
  normalise_level(t.n, step_nm, norm2, work.psi);
  *lambda_ev = shift;
  return true;
}

}  // namespace quasi::mosfet::cuda
