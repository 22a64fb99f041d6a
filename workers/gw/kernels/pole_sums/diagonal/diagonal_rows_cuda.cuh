#pragma once

#include <cuda_runtime.h>

#include "workers/gw/kernels/pole_sums/diagonal/pole_groups.hpp"
#include "workers/gw/kernels/pole_sums/reciprocal.cuh"
#include "workers/gw/physics/plasmon_pole.hpp"

/// The three sorts of rows of the diagonal plasmon-pole sum (docs/theory/gw.md 6.2), as one thread
/// sums them: `add` takes one element of the tile and one row, `finish_row` ends a row.
namespace quasi::gw::cuda {

/// Smooth rows: elements hold B = A/ω̃ and τ = 1/ω̃, and K energies share one reciprocal
/// (pole_groups.hpp). kReal: the sum is real, as that of a folded model is.
template <int K, bool kReal>
struct SmoothRows {
  static constexpr int kSide = 4;
  static constexpr int kLength = smooth_row_length(K);
  static constexpr int kSums = kReal ? K : 2 * K;
  struct Element {
    double b_re, b_im, tau;
  };
  static __device__ Element element(double2 strength, double pole_ry) {
    const double inverse = 1.0 / pole_ry;
    return {strength.x * inverse, strength.y * inverse, pole_ry >= kStaticPole_ry ? 0.0 : inverse};
  }

  double t[kSums] = {};

  __device__ void add(const Element& e, double2 mg, double2 mh, const double* d) {
    const double u_re = fma(e.b_re, mh.x, e.b_im * mh.y);
    const double u_im = fma(e.b_im, mh.x, -e.b_re * mh.y);
    const double c_re = fma(mg.x, u_re, -mg.y * u_im);
    double polynomial = d[K - 1];
#pragma unroll
    for (int k = K - 2; k >= 0; --k) polynomial = fma(polynomial, e.tau, d[k]);
    double power = reciprocal_of_normal(fma(polynomial, e.tau, 1.0));
#pragma unroll
    for (int k = 0; k < K; ++k) {
      t[k] = fma(c_re, power, t[k]);
      if constexpr (!kReal) t[K + k] = fma(fma(mg.x, u_im, mg.y * u_re), power, t[K + k]);
      if (k + 1 < K) power *= e.tau;
    }
  }
  /// Turns the t_m of one row into its energies and starts the next row.
  __device__ void finish_row(const double* row, double* sums) {
    const double* c = row + K;
#pragma unroll
    for (int j = 0; j < K; ++j)
#pragma unroll
      for (int m = 0; m < K; ++m) {
        sums[j] = fma(c[j * K + m], t[m], sums[j]);
        if constexpr (!kReal) sums[K + j] = fma(c[j * K + m], t[K + m], sums[K + j]);
      }
#pragma unroll
    for (int k = 0; k < kSums; ++k) t[k] = 0.0;
  }
};

/// Split rows: total and SX − X of occupied bands far from their poles from one reciprocal
/// (pole_groups.hpp).
template <int K, bool kReal>
struct SplitRows {
  static constexpr int kSide = K <= 2 ? 4 : 2;
  static constexpr int kLength = split_row_length(K);
  static constexpr int kParts = kReal ? 1 : 2;
  static constexpr int kSums = 2 * K * kParts;
  using Element = typename SmoothRows<K, kReal>::Element;
  static __device__ Element element(double2 strength, double pole_ry) {
    return SmoothRows<K, kReal>::element(strength, pole_ry);
  }

  double t[kSums] = {};
  bool second_is_slope = false;

  __device__ void add(const Element& e, double2 mg, double2 mh, const double* row) {
    const double u_re = fma(e.b_re, mh.x, e.b_im * mh.y);
    const double u_im = fma(e.b_im, mh.x, -e.b_re * mh.y);
    const double c[2] = {fma(mg.x, u_re, -mg.y * u_im), fma(mg.x, u_im, mg.y * u_re)};
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (k == 1 && second_is_slope) break;
      const double plus = fma(row[k], e.tau, 1.0), minus = fma(-row[k], e.tau, 1.0);
      const bool near = e.tau >= row[K + k] && e.tau <= row[2 * K + k];
      const double r = reciprocal_of_normal(near ? plus : plus * minus);
      const double total = near ? r : minus * r, sx = near ? r : 2.0 * r;
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        t[part * K + k] = fma(c[part], total, t[part * K + k]);
        t[(kParts + part) * K + k] = fma(c[part], sx, t[(kParts + part) * K + k]);
        if (K > 1 && k == 0 && second_is_slope)
          t[part * K + K - 1] = fma(c[part], -e.tau * total * total, t[part * K + K - 1]);
      }
    }
  }
  /// Adds the sums of one row with its weight and starts the next row.
  __device__ void finish_row(const double* row, double* sums) {
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
      sums[k] = fma(row[3 * K], t[k], sums[k]);
      t[k] = 0.0;
    }
  }
};

/// Direct rows: total and SX with the rules near poles of physics/plasmon_pole.hpp.
template <int K, bool kReal>
struct DirectRows {
  static constexpr int kSide = 2;
  static constexpr int kLength = direct_row_length(K);
  static constexpr int kParts = kReal ? 1 : 2;
  static constexpr int kSums = 2 * K * kParts;
  struct Element {
    double a_re, a_im, pole;
  };
  static __device__ Element element(double2 strength, double pole_ry) {
    return {strength.x, strength.y, pole_ry};
  }

  double t[kSums] = {};
  PoleRules rules;
  bool second_is_slope = false;

  __device__ void add(const Element& e, double2 mg, double2 mh, const double* row) {
    const double u_re = fma(e.a_re, mh.x, e.a_im * mh.y);
    const double u_im = fma(e.a_im, mh.x, -e.a_re * mh.y);
    const double c[2] = {fma(mg.x, u_re, -mg.y * u_im), fma(mg.x, u_im, mg.y * u_re)};
    const auto value = [](double weight, PoleQuotient q, bool slope) {
      const double f = q.numerator * reciprocal_of_normal(q.denominator);
      // d/dx of 1/(x ± ω̃), and of the 0 of a dropped term, is −f².
      return weight * (slope ? -f * f : f);
    };
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const bool slope = k == 1 && second_is_slope;
      double total = 0.0;
      double sx = 0.0;
      if (row[K] != 0.0)
        total += value(row[K], pole_quotient_occupied(row[k], e.pole, rules.screened_exchange_cut),
                       slope);
      if (row[K + 1] != 0.0)
        total +=
            value(row[K + 1],
                  pole_quotient_empty(row[k], e.pole, rules.half_width_ry, rules.max_ratio), slope);
      if (row[K + 2] != 0.0 && !slope)
        sx = value(row[K + 2],
                   pole_quotient_screened_exchange(row[k], e.pole, rules.half_width_ry,
                                                   rules.max_ratio, rules.screened_exchange_cut),
                   false);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        t[part * K + k] = fma(c[part], total, t[part * K + k]);
        t[(kParts + part) * K + k] = fma(c[part], sx, t[(kParts + part) * K + k]);
      }
    }
  }
  __device__ void finish_row(const double*, double*) {}
};

}  // namespace quasi::gw::cuda
