#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/scatter/matrix_element_4ph_cuda.cuh"

namespace quasi::thermal::cuda4ph {

__device__ inline double with_sign(double value, unsigned sign_bit) {
  return __hiloint2double(static_cast<int>(static_cast<unsigned>(__double2hiint(value)) ^ sign_bit),
                          __double2loint(value));
}
__device__ inline float with_sign(float value, unsigned sign_bit) {
  return __uint_as_float(__float_as_uint(value) ^ sign_bit);
}

/// Computes matrix elements of kN processes with one A in Form4ph::kSwapped. Each element of A is
/// read once for all of them. Shared memory gives a warp 128 bytes a cycle, which would limit a
/// single process.
///
/// `a` holds, cell by cell along the path, A_11 or the conjugate of A_12 alone, or A_11 + A_12 and
/// A_11 − A_12 as neighbours. e''e^{iq''·R} is carried from cell to cell and conjugated where A_12
/// is alone. One sum then serves both, because Re w and −Im w are the parts of w*.
/// @tparam kStride  distance of the numbers of one thread in `slot`
template <int kN, int kStride, typename Real>
struct SwappedElements {
  Complex<Real> u[kN][3];  ///< e''e^{iq''·R} of the first atom, conjugated where `conjugated`
  Real real[kN][3] = {};
  Real imaginary[kN][3] = {};
  unsigned conjugated;    ///< the sign bit: u is conjugated
  Complex<double>* slot;  ///< [3][kN] at distance kStride: e^{±iq''·a_i}, kept out of registers

  __device__ __forceinline__ SwappedElements(const CellPath4ph& path, std::uint32_t first_step,
                                             const LastTwo (&last)[kN], Complex<double>* storage)
      : conjugated(sign_of_step(first_step)), slot(storage) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      const Complex<double> factor[3] = {load(path.step_phase[0] + last[n].q2.x),
                                         load(path.step_phase[1] + last[n].q2.y),
                                         load(path.step_phase[2] + last[n].q2.z)};
#pragma unroll
      for (int i = 0; i < 3; ++i)
        *reinterpret_cast<Complex<Real>*>(slot + (i * kN + n) * kStride) = {
            static_cast<Real>(factor[i].re), static_cast<Real>(factor[i].im * last[n].sign)};
#pragma unroll
      for (int b = 0; b < 3; ++b) {
        u[n][b] = rounded<Real>(load(path.half + 3 * static_cast<std::int64_t>(last[n].mode2) + b));
        u[n][b].im = with_sign(u[n][b].im * static_cast<Real>(last[n].sign), conjugated);
      }
    }
  }
  /// Returns the sign bit if A_12 is alone at the end of a step, else 0.
  __device__ __forceinline__ static unsigned sign_of_step(std::uint32_t step) {
    return (step >> 8) == 2u ? 0x80000000u : 0u;
  }
  __device__ __forceinline__ void add(int b, int c, Complex<Real> for_real,
                                      Complex<Real> for_imaginary) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      real[n][c] = fma(u[n][b].re, for_real.re, fma(-u[n][b].im, for_real.im, real[n][c]));
      imaginary[n][c] =
          fma(u[n][b].re, for_imaginary.im, fma(u[n][b].im, for_imaginary.re, imaginary[n][c]));
    }
  }
  /// Adds the pairs of a cell.
  /// @param ahead  the first kAhead elements of the cell
  /// @return       elements used
  template <int kAhead>
  __device__ __forceinline__ int add_cell(std::uint32_t step, const Complex<Real>* a,
                                          Complex<Real> (&ahead)[kAhead]) {
    const auto next = [&](int i, int n_elements) {
      const Complex<Real> x = ahead[i % kAhead];
      if (i + kAhead < n_elements) ahead[i % kAhead] = load(a + i + kAhead);
      return x;
    };
    const std::uint32_t fourth = step >> 8;  // bit 0: A_11, bit 1: A_12
    if (fourth == 3u) {
#pragma unroll
      for (int e = 0; e < 9; ++e) {
        const Complex<Real> sum = next(2 * e, 18);
        add(e / 3, e % 3, sum, next(2 * e + 1, 18));
      }
      return 18;
    }
    if (fourth != 0u) {
#pragma unroll
      for (int e = 0; e < 9; ++e) {
        const Complex<Real> x = next(e, 9);
        add(e / 3, e % 3, x, x);
      }
      return 9;
    }
    return 0;
  }
  /// Multiplies u by the phase of a step.
  __device__ __forceinline__ void advance(std::uint32_t step) {
    const std::uint32_t direction = step & 7u;  // 1–3: +a_i; 4–6: −a_i
    const unsigned wanted = sign_of_step(step);
    const unsigned back = (direction > 3u ? 0x80000000u : 0u) ^ wanted;
    const Complex<double>* by =
        slot + (direction > 3u ? direction - 4u : direction - 1u) * (kN * kStride);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      const Complex<Real> factor = load(reinterpret_cast<const Complex<Real>*>(by + n * kStride));
      const Real im = with_sign(factor.im, back);
#pragma unroll
      for (int b = 0; b < 3; ++b) {
        const Real re = u[n][b].re, side = with_sign(u[n][b].im, conjugated ^ wanted);
        const Real across = re * im, down = side * im;
        u[n][b].im = fma(side, factor.re, across);
        u[n][b].re = fma(re, factor.re, -down);
      }
    }
    conjugated = wanted;
  }
  /// Returns |V|² of process n.
  __device__ __forceinline__ double squared(const CellPath4ph& path, std::int32_t mode3,
                                            int n) const {
    Real v = 0;
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      const auto e = rounded<Real>(load(path.half + 3 * static_cast<std::int64_t>(mode3) + c));
      v = fma(real[n][c], e.re, fma(imaginary[n][c], e.im, v));
    }
    return static_cast<double>(v) * v;
  }
};

/// Computes |V|² of kN processes with one A (docs/theory/thermal.md 11.4 and 11.5).
/// @param program  CellPath4ph::program in shared memory; its first step stays
/// @param slot     SwappedElements::slot
template <int kN, int kStride, typename Real>
__device__ __forceinline__ void squared_elements_swapped(
    const CellPath4ph& path, const std::uint32_t* program, const Complex<Real>* a,
    const LastTwo (&last)[kN], Complex<double>* slot, double (&squared)[kN]) {
  constexpr int kAhead = 3;  // elements of A that are loaded while others are used
  Complex<Real> ahead[kAhead];
  std::uint32_t word = program[0];
  SwappedElements<kN, kStride, Real> sums(path, word, last, slot);
  for (int s = 1;; ++s) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) ahead[i] = load(a + i);
    const std::uint32_t following = program[min(s, path.n_steps - 1)];
    a += sums.add_cell(word, a, ahead);
    if (s == path.n_steps) break;
    word = following;
    sums.advance(word);
  }
#pragma unroll
  for (int n = 0; n < kN; ++n) squared[n] = sums.squared(path, last[n].mode3, n);
}

}  // namespace quasi::thermal::cuda4ph
