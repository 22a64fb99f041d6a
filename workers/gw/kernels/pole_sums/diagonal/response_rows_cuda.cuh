#pragma once

#include <cuda_runtime.h>

#include "workers/gw/kernels/pole_sums/diagonal/response_rows.hpp"
#include "workers/gw/kernels/pole_sums/reciprocal.cuh"
#include "workers/gw/physics/plasmon_pole.hpp"
#include "workers/gw/physics/pole_response.hpp"

/// This file sums runs of rows of the response of Σ in one thread (docs/theory/gw.md 9.3).
namespace quasi::gw::cuda {

/// Returns the pole factors f (x) and e (y) of a row at one element (RowRule). @param tau  1/ω̃,
/// 1/Ry
template <RowRule kRule>
__device__ __forceinline__ double2 row_factors(const ResponseRow& row, double tau,
                                               const PoleRules& rules) {
  const double x = row.x_ry;
  if constexpr (kRule == RowRule::kSmoothOccupied)
    return {reciprocal_of_normal(fma(x, tau, 1.0)), 0.0};
  if constexpr (kRule == RowRule::kSmoothEmpty)
    return {reciprocal_of_normal(fma(x, tau, -1.0)), 0.0};
  if constexpr (kRule == RowRule::kTwoSmooth)
    return {reciprocal_of_normal(fma(x, tau, -1.0)),
            reciprocal_of_normal(fma(row.other_x_ry, tau, -1.0))};
  if constexpr (kRule == RowRule::kSplitSmooth) {
    // split_pole_values() with the reciprocal of the device.
    const double plus = fma(x, tau, 1.0), minus = fma(-x, tau, 1.0);
    const bool near = tau >= row.low_tau && tau <= row.high_tau;
    const double r = reciprocal_of_normal(near ? plus : plus * minus);
    return {near ? r : minus * r, near ? r : 2.0 * r};
  }
  if constexpr (kRule == RowRule::kDirectOccupied || kRule == RowRule::kDirectEmpty ||
                kRule == RowRule::kSplitDirect || kRule == RowRule::kTwoDirect) {
    const double pole = tau > 0.0 ? 1.0 / tau : kStaticPole_ry, width = rules.half_width_ry,
                 ratio = rules.max_ratio, cut = rules.screened_exchange_cut;
    double2 factors = {0.0, 0.0};
    if constexpr (kRule == RowRule::kDirectOccupied || kRule == RowRule::kSplitDirect)
      factors.x = pole * pole_factor_occupied(x, pole, cut);
    else
      factors.x = pole * pole_factor_empty(x, pole, width, ratio);
    if constexpr (kRule == RowRule::kSplitDirect)
      factors.y = pole * pole_factor_screened_exchange(x, pole, width, ratio, cut);
    if constexpr (kRule == RowRule::kTwoDirect)
      factors.y = pole * pole_factor_empty(row.other_x_ry, pole, width, ratio);
    return factors;
  }
  return {0.0, 0.0};
}

/// Holds a number that is complex, or real where all products are.
template <bool kReal>
struct ResponseNumber {
  double re = 0.0, im = 0.0;
  /// Adds g h*.
  __device__ __forceinline__ void add_product(const ResponseNumber& g, const ResponseNumber& h) {
    re = fma(g.re, h.re, re);
    if constexpr (kReal) return;
    re = fma(g.im, h.im, re);
    im = fma(g.im, h.re, fma(-g.re, h.im, im));
  }
  /// Adds a real factor times a product.
  __device__ __forceinline__ void add(const ResponseNumber& product, double factor) {
    re = fma(product.re, factor, re);
    if constexpr (!kReal) im = fma(product.im, factor, im);
  }
  /// Returns the real part of the product of this number with an element.
  __device__ __forceinline__ double times(double2 element) const {
    if constexpr (kReal) return re * element.x;
    return fma(re, element.x, -im * element.y);
  }
};
/// Returns a x + b y.
template <bool kReal>
__device__ __forceinline__ ResponseNumber<kReal> combined(double a, const ResponseNumber<kReal>& x,
                                                          double b,
                                                          const ResponseNumber<kReal>& y) {
  ResponseNumber<kReal> sum;
  sum.re = fma(a, x.re, b * y.re);
  if constexpr (!kReal) sum.im = fma(a, x.im, b * y.im);
  return sum;
}

/// Holds the sums over bands of the product M M* times 1, f, f², xf², e, xf³ and e² at one
/// element. The last two are summed with `kSlope` alone.
template <bool kReal, bool kSlope>
struct ElementSums {
  ResponseNumber<kReal> one, f, f2, xf2, e, xf3, e2;  ///< members are named by their factor

  /// Adds the product of one run. @param factors  f and e
  template <bool kTwo>
  __device__ __forceinline__ void add(const ResponseNumber<kReal>& product, double x,
                                      double2 factors) {
    one.re += product.re;
    if constexpr (!kReal) one.im += product.im;
    if constexpr (kReal) {
      const double by_f = product.re * factors.x, by_f2 = by_f * factors.x;
      f.re += by_f;
      f2.re += by_f2;
      xf2.re = fma(by_f2, x, xf2.re);
      if constexpr (kSlope) xf3.re = fma(by_f2, x * factors.x, xf3.re);
    } else {
      const double square = factors.x * factors.x, by_x = x * square;
      f.add(product, factors.x);
      f2.add(product, square);
      xf2.add(product, by_x);
      if constexpr (kSlope) xf3.add(product, by_x * factors.x);
    }
    if constexpr (kTwo) e.add(product, factors.y);
    if constexpr (kSlope && kTwo) e2.add(product, factors.y * factors.y);
  }
};

/// Passes rows (l, n) through the 2 × 2 elements of a thread in a tile of (G, G').
template <bool kIsReal, bool kSlope>
struct ResponseRows {
  static constexpr bool kReal = kIsReal;
  static constexpr int kSide = 2;
  static constexpr int kLength = sizeof(ResponseRow) / sizeof(double);
  static constexpr int kPerChange = kSlope ? 2 : 1;
  using Number = ResponseNumber<kReal>;
  double tau[kSide][kSide];
  Number product[kSide][kSide];  ///< of the run so far
  ElementSums<kReal, kSlope> sums[kSide][kSide];

  /// Adds the product of one row to that of its run. @param mg, mh  M(G) and M(G')
  __device__ __forceinline__ void add_product(const Number (&mg)[kSide],
                                              const Number (&mh)[kSide]) {
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
      for (int j = 0; j < kSide; ++j) product[i][j].add_product(mg[i], mh[j]);
  }
  /// Ends a run by a rule that is known to the compiler, and begins the next one.
  template <RowRule kRule>
  __device__ __forceinline__ void end_run(const ResponseRow& row, const PoleRules& rules) {
    constexpr bool kTwo = kRule == RowRule::kSplitSmooth || kRule == RowRule::kSplitDirect ||
                          kRule == RowRule::kTwoSmooth || kRule == RowRule::kTwoDirect;
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
      for (int j = 0; j < kSide; ++j) {
        sums[i][j].template add<kTwo>(product[i][j], row.x_ry,
                                      row_factors<kRule>(row, tau[i][j], rules));
        product[i][j] = {};
      }
  }
  /// Ends a run by the rule of its rows. All threads of a block take the same branch.
  __device__ __forceinline__ void end_run(const ResponseRow& row, const PoleRules& rules) {
    switch (row.rule) {
      case RowRule::kNone:
        return end_run<RowRule::kNone>(row, rules);
      case RowRule::kSmoothOccupied:
        return end_run<RowRule::kSmoothOccupied>(row, rules);
      case RowRule::kSmoothEmpty:
        return end_run<RowRule::kSmoothEmpty>(row, rules);
      case RowRule::kDirectOccupied:
        return end_run<RowRule::kDirectOccupied>(row, rules);
      case RowRule::kDirectEmpty:
        return end_run<RowRule::kDirectEmpty>(row, rules);
      case RowRule::kSplitSmooth:
        return end_run<RowRule::kSplitSmooth>(row, rules);
      case RowRule::kSplitDirect:
        return end_run<RowRule::kSplitDirect>(row, rules);
      case RowRule::kTwoSmooth:
        return end_run<RowRule::kTwoSmooth>(row, rules);
      case RowRule::kTwoDirect:
        return end_run<RowRule::kTwoDirect>(row, rules);
    }
  }
};

}  // namespace quasi::gw::cuda
