#pragma once

#include <cmath>

#include "workers/backend/host_device.hpp"

/// Eigenpairs of one real symmetric tridiagonal matrix T (docs/theory/mosfet.md 9.4): Sturm counts,
/// bisection, and Rayleigh-quotient iteration on the twisted factorisation [dhillon2006]. These are
/// plain functions on pointers. One CPU thread or one GPU thread computes one pair.
namespace quasi::mosfet {

/// The matrix T: diagonal[0…n−1], and off[0…n−2] couples k and k+1. `scale_ev` bounds ‖T‖.
struct Tridiagonal {
  const double* diagonal;
  const double* off;
  int n;
  double scale_ev;
};

/// Returns the pivot, or the smallest pivot in place of an exact zero, which changes no sign that
/// matters.
QUASI_HD inline double guarded_pivot(double pivot, double scale_ev) {
  const double tiny = 1e-30 * scale_ev;
  return fabs(pivot) < tiny ? -tiny : pivot;
}

/// Returns the number of eigenvalues of T below `shift_ev`, which are the negative pivots of T −
/// shift.
QUASI_HD inline int sturm_count(const Tridiagonal& t, double shift_ev) {
  double pivot = guarded_pivot(t.diagonal[0] - shift_ev, t.scale_ev);
  int count = pivot < 0.0;
  for (int k = 1; k < t.n; ++k) {
    pivot =
        guarded_pivot(t.diagonal[k] - shift_ev - t.off[k - 1] * t.off[k - 1] / pivot, t.scale_ev);
    count += pivot < 0.0;
  }
  return count;
}

/// Returns the largest |row sum| of T, Gershgorin's bound on ‖T‖.
QUASI_HD inline double gershgorin_bound(const double* diagonal, const double* off, int n) {
  double bound = 0.0;
  for (int k = 0; k < n; ++k) {
    double row = fabs(diagonal[k]);
    if (k > 0) row += fabs(off[k - 1]);
    if (k + 1 < n) row += fabs(off[k]);
    bound = row > bound ? row : bound;
  }
  return bound;
}

/// Returns eigenvalue number `level` (from 0, ascending) by bisection to 1e-13 of the scale.
QUASI_HD inline double bisect_level(const Tridiagonal& t, int level) {
  double low = -t.scale_ev, high = t.scale_ev;
  while (high - low > 1e-13 * t.scale_ev) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    if (sturm_count(t, middle) > level)
      high = middle;
    else
      low = middle;
  }
  return 0.5 * (low + high);
}

/// Runs a Rayleigh-quotient iteration with the twisted factorisation of T − λ, from a close shift.
///
/// Forward pivots D⁺ and backward pivots D⁻ give γ_k = D⁺_k + D⁻_k − (d_k − λ). The vector is 1 at
/// the twist r, where |γ| is smallest, and follows from the pivots outwards. Then λ ← λ +
/// γ_r/(yᵀy), which is the Rayleigh quotient. The residual |γ_r|/‖y‖ is exact.
///
/// @param lambda_ev  in: shift; out: eigenvalue
/// @param y          [n] out: eigenvector, largest component near the twist, not normalised
/// @param forward, backward  [n] workspace
/// @return ‖y‖², or a negative number if the residual did not reach 4e-15 of the scale.
QUASI_HD inline double twisted_rayleigh(const Tridiagonal& t, double* lambda_ev, double* y,
                                        double* forward, double* backward) {
  constexpr int kMaxIterations = 8;
  for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
    const double shift = *lambda_ev;
    forward[0] = guarded_pivot(t.diagonal[0] - shift, t.scale_ev);
    for (int k = 1; k < t.n; ++k)
      forward[k] = guarded_pivot(
          t.diagonal[k] - shift - t.off[k - 1] * t.off[k - 1] / forward[k - 1], t.scale_ev);
    backward[t.n - 1] = guarded_pivot(t.diagonal[t.n - 1] - shift, t.scale_ev);
    for (int k = t.n - 2; k >= 0; --k)
      backward[k] =
          guarded_pivot(t.diagonal[k] - shift - t.off[k] * t.off[k] / backward[k + 1], t.scale_ev);
    int twist = 0;
    double gamma = forward[0] + backward[0] - (t.diagonal[0] - shift);
    for (int k = 1; k < t.n; ++k) {
      const double candidate = forward[k] + backward[k] - (t.diagonal[k] - shift);
      if (fabs(candidate) < fabs(gamma)) {
        gamma = candidate;
        twist = k;
      }
    }
    y[twist] = 1.0;
    double norm2 = 1.0;
    for (int k = twist; k > 0; --k) {
      y[k - 1] = -t.off[k - 1] * y[k] / forward[k - 1];
      norm2 += y[k - 1] * y[k - 1];
    }
    for (int k = twist; k + 1 < t.n; ++k) {
      y[k + 1] = -t.off[k] * y[k] / backward[k + 1];
      norm2 += y[k + 1] * y[k + 1];
    }
    *lambda_ev = shift + gamma / norm2;
    if (fabs(gamma) <= 4e-15 * t.scale_ev * sqrt(norm2)) return norm2;
  }
  return -1.0;
}

/// Returns true if only eigenvalue number `level` lies within 1e-13 of the scale around
/// `lambda_ev`, by two Sturm counts.
QUASI_HD inline bool certify_level(const Tridiagonal& t, int level, double lambda_ev) {
  const double width = 1e-13 * t.scale_ev;
  return sturm_count(t, lambda_ev - width) <= level && sturm_count(t, lambda_ev + width) > level;
}

/// Eigenvector and workspace of one level, all [n].
struct LevelVectors {
  double *psi, *forward, *backward;
};

/// Computes eigenpair number `level`. A warm start uses *lambda_ev and is certified by Sturm
/// counts. Without `warm`, or if the certificate fails, a cold bisection is used.
/// @return true if the pair converged. ψ is then normalised so that step Σψ² = 1, and its first
/// component above 1e-3 of the largest is positive.
QUASI_HD inline bool solve_level(const Tridiagonal& t, int level, bool warm, double step_nm,
                                 double* lambda_ev, const LevelVectors& vectors) {
  double *psi = vectors.psi, *forward = vectors.forward, *backward = vectors.backward;
  double norm2 = -1.0;
  if (warm) {
    norm2 = twisted_rayleigh(t, lambda_ev, psi, forward, backward);
    if (norm2 > 0.0 && !certify_level(t, level, *lambda_ev)) norm2 = -1.0;
  }
  if (norm2 < 0.0) {
    *lambda_ev = bisect_level(t, level);
    norm2 = twisted_rayleigh(t, lambda_ev, psi, forward, backward);
    if (norm2 < 0.0 || !certify_level(t, level, *lambda_ev)) return false;
  }
  double largest = 0.0;
  for (int k = 0; k < t.n; ++k) largest = fabs(psi[k]) > largest ? fabs(psi[k]) : largest;
  double sign = 0.0;
  for (int k = 0; k < t.n && sign == 0.0; ++k)
    if (fabs(psi[k]) > 1e-3 * largest) sign = psi[k] > 0.0 ? 1.0 : -1.0;
  const double factor = sign / sqrt(step_nm * norm2);
  for (int k = 0; k < t.n; ++k) psi[k] *= factor;
  return true;
}

}  // namespace quasi::mosfet
