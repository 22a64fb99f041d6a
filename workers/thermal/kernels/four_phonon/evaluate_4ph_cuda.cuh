#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/tables_4ph.hpp"

namespace quasi::thermal::cuda4ph {

/// Mesh coordinates of a point in the first zone, one load.
struct alignas(8) ZonePoint {
  std::int16_t x, y, z, unused;
};

/// The pairs of ContractionPlan4ph in the order in which a thread walks over their cells.
///
/// e^{iq·R} of all cells would be many scattered loads per process. Instead each thread keeps one
/// phase and multiplies it by e^{±iq·a_i}, three numbers of its q'', from cell to cell along a walk
/// through all of them that steps by one lattice vector at a time; every thread of a block takes
/// the same steps. The three numbers come from short tables by the coordinates of q''.
struct Walk4ph {
  int n_steps = 0;
  const std::int32_t* step = nullptr;   ///< [n_steps] 0: stay; ±(i+1): by ±a_i
  const std::int32_t* first = nullptr;  ///< [n_steps + 1] first pair met at the step's end
  const std::int32_t* atoms = nullptr;  ///< [n_pairs] κ'' · 256 + κ''', in walking order
  /// [n_steps] the same in one word, for at most four atoms: direction (0 stay, 1–3 by +a_i, 4–6 by
  /// −a_i) and, from bit 8 on, a bit for each κ''·n_atoms + κ''' met there.
  const std::uint32_t* program = nullptr;
  /// [n_stops + 1] first pair, in walking order, of the steps that meet any.
  int n_stops = 0;
  const std::int32_t* stop = nullptr;
  const Complex<double>* half = nullptr;  ///< Form4ph::kSwapped: [n_modes][3], the first atom's e
  const ZonePoint* zone = nullptr;        ///< [n_q]
  const Complex<double>* turn[3] = {};  ///< [i][−2N_i … 2N_i) e^{2πi m/N_i}, pointers to m = 0
};

/// How the matrix element is summed.
enum class Form4ph {
  kPairs,  ///< over the pairs of the plan
  /// Where inversion exchanges the two atoms of the cell (ContractionPlan4ph::swapped): κ'' is the
  /// first atom, and e(second) the conjugate of e(first), so that Re Σ_c w_c e'''_c* needs Re(w_1 +
  /// w_2) and Im(w_1 − w_2) of the first atom's three components alone.
  kSwapped,
};

/// One load of 16 or 8 bytes; the arrays start at multiples of that.
__device__ inline Complex<double> load(const Complex<double>* from) {
  const double2 value = *reinterpret_cast<const double2*>(from);
  return {value.x, value.y};
}
__device__ inline Complex<float> load(const Complex<float>* from) {
  const float2 value = *reinterpret_cast<const float2*>(from);
  return {value.x, value.y};
}
template <typename Real, typename Other>
__device__ inline Complex<Real> rounded(Complex<Other> x) {
  return {static_cast<Real>(x.re), static_cast<Real>(x.im)};
}
template <typename Real>
__device__ inline Complex<Real> fused_multiply(Complex<Real> a, Complex<Real> b) {
  return {fma(a.re, b.re, -a.im * b.im), fma(a.re, b.im, a.im * b.re)};
}
template <typename Real>
__device__ inline void fused_add(Complex<Real>& sum, Complex<Real> a, Complex<Real> b) {
  sum.re = fma(a.re, b.re, fma(-a.im, b.im, sum.re));
  sum.im = fma(a.re, b.im, fma(a.im, b.re, sum.im));
}

/// Step 3 of ContractionPlan4ph by one thread: |V|². `pair` holds A of the thread's (λ, λ') in
/// walking order, `program` Walk4ph::program in shared memory. kAtoms > 0: eigenvectors stay in
/// registers; 0: any number of atoms, read as needed.
template <int kAtoms, typename Real>
__device__ inline double squared_element(const Tables4ph& t, const Walk4ph& walk,
                                         const std::uint32_t* program, const Complex<Real>* pair,
                                         std::int32_t mode2, std::int32_t mode3, ZonePoint q2,
                                         double sign) {
  const int nb = kAtoms > 0 ? 3 * kAtoms : t.n_branches;
  const Complex<double>* e2 = t.eigenvector + static_cast<std::int64_t>(mode2) * nb;
  const Complex<double>* e3 = t.eigenvector + static_cast<std::int64_t>(mode3) * nb;
  const auto side = static_cast<Real>(sign);
  Complex<Real> turn[3] = {rounded<Real>(load(walk.turn[0] + q2.x)),
                           rounded<Real>(load(walk.turn[1] + q2.y)),
                           rounded<Real>(load(walk.turn[2] + q2.z))};
  for (int i = 0; i < 3; ++i) turn[i].im *= side;
  Complex<Real> phase{1, 0};
  const auto step = [&](int direction) {  // 1–3: +a_i; 4–6: −a_i
    const int axis = direction > 3 ? direction - 4 : direction - 1;
    Complex<Real> by = axis == 0 ? turn[0] : axis == 1 ? turn[1] : turn[2];
    if (direction > 3) by.im = -by.im;
    phase = fused_multiply(phase, by);
  };
  Complex<Real> v{0, 0};
  if constexpr (kAtoms > 0) {
    constexpr int kKept = 3 * kAtoms;
    Complex<Real> kept[kKept];
    Complex<Real> w[kKept] = {};
#pragma unroll
    for (int x = 0; x < kKept; ++x) {
      kept[x] = rounded<Real>(load(e2 + x));
      kept[x].im *= side;
    }
    const Complex<Real>* a = pair;
    for (int s = 0; s < walk.n_steps; ++s) {
      const std::uint32_t word = program[s];
      if ((word & 7u) != 0) step(static_cast<int>(word & 7u));
      if (word < 256u) continue;
#pragma unroll
      for (int third = 0; third < kAtoms; ++third) {
        Complex<Real> u[3];
#pragma unroll
        for (int b = 0; b < 3; ++b) u[b] = fused_multiply(phase, kept[3 * third + b]);
#pragma unroll
        for (int fourth = 0; fourth < kAtoms; ++fourth)
          if ((word >> (8 + third * kAtoms + fourth) & 1u) != 0) {
#pragma unroll
            for (int b = 0; b < 3; ++b)
#pragma unroll
              for (int c = 0; c < 3; ++c) fused_add(w[3 * fourth + c], u[b], load(a + 3 * b + c));
            a += 9;
          }
      }
    }
#pragma unroll
    for (int x = 0; x < kKept; ++x) {
      fused_add(v, w[x], rounded<Real>(conj(load(e3 + x))));
    }
  } else {
    for (int s = 0; s < walk.n_steps; ++s) {
      const int direction = walk.step[s];
      if (direction != 0) step(direction > 0 ? direction : 3 - direction);
      for (int p = walk.first[s]; p < walk.first[s + 1]; ++p) {
        const int third = walk.atoms[p] / 256;
        const int fourth = walk.atoms[p] % 256;
        const Complex<Real>* a = pair + 9 * p;
        Complex<Real> sum[3] = {};
        for (int b = 0; b < 3; ++b) {
          Complex<Real> e = rounded<Real>(e2[3 * third + b]);
          e.im *= side;
          const Complex<Real> u = fused_multiply(phase, e);
          for (int c = 0; c < 3; ++c) fused_add(sum[c], u, load(a + 3 * b + c));
        }
        for (int c = 0; c < 3; ++c) {
          fused_add(v, sum[c], rounded<Real>(conj(e3[3 * fourth + c])));
        }
      }
    }
  }
  return squared_of_sum_4ph(t, rounded<double>(v));
}

/// The last two phonons of a process as its matrix element needs them.
struct LastTwo {
  std::int32_t mode2, mode3;
  ZonePoint q2;
  double sign;  ///< of λ''
};

__device__ inline double with_sign(double value, unsigned sign_bit) {
  return __hiloint2double(static_cast<int>(static_cast<unsigned>(__double2hiint(value)) ^ sign_bit),
                          __double2loint(value));
}
__device__ inline float with_sign(float value, unsigned sign_bit) {
  return __uint_as_float(__float_as_uint(value) ^ sign_bit);
}

/// The same for Form4ph::kSwapped, of kN processes with one A, each of whose elements is read once
/// for all of them: the data pipe of shared memory, which hands a warp 128 bytes a cycle, is what
/// bounds a single one. `a` holds, stop by stop, A_11 or the conjugate of A_12 alone, or A_11 +
/// A_12 and A_11 − A_12 (elements beside each other). e''e^{iq''·R} itself is taken from cell to
/// cell, conjugated wherever A_12 is alone: then one sum serves both, because Re w and −Im w are
/// the parts of w*.
/// @param slot  [3][kN][kStride] numbers of a block at the thread's own place, for the turns of its
/// processes: read from
///              there in each step, they leave registers to the elements that are on their way
template <int kN, int kStride, typename Real>
__device__ __forceinline__ void squared_elements_swapped(
    const Walk4ph& walk, const std::uint32_t* program, const Complex<Real>* a,
    const LastTwo (&last)[kN], Complex<double>* slot, double (&squared)[kN]) {
  std::uint32_t word = program[0];  // the walk begins by staying
  unsigned conjugated =
      (word >> 8) == 2u ? 0x80000000u : 0u;  // the sign bit of what is taken along
  Complex<Real> u[kN][3];
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    const Complex<double> turn[3] = {load(walk.turn[0] + last[n].q2.x),
                                     load(walk.turn[1] + last[n].q2.y),
                                     load(walk.turn[2] + last[n].q2.z)};
#pragma unroll
    for (int i = 0; i < 3; ++i)
      *reinterpret_cast<Complex<Real>*>(slot + (i * kN + n) * kStride) = {
          static_cast<Real>(turn[i].re), static_cast<Real>(turn[i].im * last[n].sign)};
#pragma unroll
    for (int b = 0; b < 3; ++b) {
      u[n][b] = rounded<Real>(load(walk.half + 3 * static_cast<std::int64_t>(last[n].mode2) + b));
      u[n][b].im = with_sign(u[n][b].im * static_cast<Real>(last[n].sign), conjugated);
    }
  }
  Real real[kN][3] = {};
  Real imaginary[kN][3] = {};
  // Elements of A on their way while those before them are used: read just before use, each would
  // be waited for.
  constexpr int kAhead = 3;
  Complex<Real> ahead[kAhead];
  const auto next = [&](int i, int n_elements) {
    const Complex<Real> x = ahead[i % kAhead];
    if (i + kAhead < n_elements) ahead[i % kAhead] = load(a + i + kAhead);
    return x;
  };
  const auto add = [&](int b, int c, Complex<Real> for_real, Complex<Real> for_imaginary) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      real[n][c] = fma(u[n][b].re, for_real.re, fma(-u[n][b].im, for_real.im, real[n][c]));
      imaginary[n][c] =
          fma(u[n][b].re, for_imaginary.im, fma(u[n][b].im, for_imaginary.re, imaginary[n][c]));
    }
  };
  for (int s = 1;; ++s) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) ahead[i] = load(a + i);
    const std::uint32_t following = program[min(s, walk.n_steps - 1)];
    const std::uint32_t fourth = word >> 8;  // bit 0: A_11, bit 1: A_12
    if (fourth == 3u) {
#pragma unroll
      for (int e = 0; e < 9; ++e) {
        const Complex<Real> sum = next(2 * e, 18);
        add(e / 3, e % 3, sum, next(2 * e + 1, 18));
      }
      a += 18;
    } else if (fourth != 0u) {
#pragma unroll
      for (int e = 0; e < 9; ++e) {
        const Complex<Real> x = next(e, 9);
        add(e / 3, e % 3, x, x);
      }
      a += 9;
    }
    if (s == walk.n_steps) break;
    word = following;
    const std::uint32_t direction = word & 7u;  // 1–3: +a_i; 4–6: −a_i
    const unsigned wanted = (word >> 8) == 2u ? 0x80000000u : 0u;
    const unsigned back = (direction > 3u ? 0x80000000u : 0u) ^ wanted;
    const Complex<double>* by =
        slot + (direction > 3u ? direction - 4u : direction - 1u) * (kN * kStride);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      const Complex<Real> turn = load(reinterpret_cast<const Complex<Real>*>(by + n * kStride));
      const Real im = with_sign(turn.im, back);
#pragma unroll
      for (int b = 0; b < 3; ++b) {
        const Real re = u[n][b].re, side = with_sign(u[n][b].im, conjugated ^ wanted);
        const Real across = re * im,
                   down = side * im;  // in place: what is multiplied last is not needed again
        u[n][b].im = fma(side, turn.re, across);
        u[n][b].re = fma(re, turn.re, -down);
      }
    }
    conjugated = wanted;
  }
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    Real v = 0;
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      const auto e =
          rounded<Real>(load(walk.half + 3 * static_cast<std::int64_t>(last[n].mode3) + c));
      v = fma(real[n][c], e.re, fma(imaginary[n][c], e.im, v));
    }
    squared[n] = static_cast<double>(v) * v;
  }
}

}  // namespace quasi::thermal::cuda4ph
