#pragma once

#include <cstdint>

#include "workers/thermal/kernels/tables_4ph.hpp"

namespace quasi::thermal::cuda4ph {

/// Mesh coordinates of a point in the first zone, one load.
struct alignas(8) ZonePoint {
  std::int16_t x, y, z, unused;
};

/// The pairs of ContractionPlan4ph in the order in which a thread walks over their cells.
///
/// e^{iq·R} of all cells would be many scattered loads per process. Instead each thread keeps one phase
/// and multiplies it by e^{±iq·a_i}, three numbers of its q'', from cell to cell along a walk through
/// all of them that steps by one lattice vector at a time; every thread of a block takes the same
/// steps. The three numbers come from short tables by the coordinates of q''.
struct Walk4ph {
  int n_steps = 0;
  const std::int32_t* step = nullptr;     ///< [n_steps] 0: stay; ±(i+1): by ±a_i
  const std::int32_t* first = nullptr;    ///< [n_steps + 1] first pair met at the step's end
  const std::int32_t* atoms = nullptr;    ///< [n_pairs] κ'' · 256 + κ''', in walking order
  /// [n_steps] the same in one word, for at most four atoms: direction (0 stay, 1–3 by +a_i, 4–6 by −a_i) and,
  /// from bit 8 on, a bit for each κ''·n_atoms + κ''' met there.
  const std::uint32_t* program = nullptr;
  const ZonePoint* zone = nullptr;        ///< [n_q]
  const Complex<double>* turn[3] = {};    ///< [i][−2N_i … 2N_i) e^{2πi m/N_i}, pointers to m = 0
};

/// One 16-byte load; the arrays start at multiples of 16.
__device__ inline Complex<double> load(const Complex<double>* from) {
  const double2 value = *reinterpret_cast<const double2*>(from);
  return {value.x, value.y};
}
__device__ inline Complex<double> fused_multiply(Complex<double> a, Complex<double> b) {
  return {fma(a.re, b.re, -a.im * b.im), fma(a.re, b.im, a.im * b.re)};
}
__device__ inline void fused_add(Complex<double>& sum, Complex<double> a, Complex<double> b) {
  sum.re = fma(a.re, b.re, fma(-a.im, b.im, sum.re));
  sum.im = fma(a.re, b.im, fma(a.im, b.re, sum.im));
}

/// Step 3 of ContractionPlan4ph by one thread: |V|². `pair` holds A of the thread's (λ, λ') in walking
/// order, `program` Walk4ph::program in shared memory. kAtoms > 0: eigenvectors stay in registers; 0: any
/// number of atoms, read as needed.
template <int kAtoms>
__device__ inline double squared_element(const Tables4ph& t, const Walk4ph& walk, const std::uint32_t* program,
                                         const Complex<double>* pair, std::int32_t mode2,
                                         std::int32_t mode3, ZonePoint q2, double sign) {
  const int nb = kAtoms > 0 ? 3 * kAtoms : t.n_branches;
  const Complex<double>* e2 = t.eigenvector + static_cast<std::int64_t>(mode2) * nb;
  const Complex<double>* e3 = t.eigenvector + static_cast<std::int64_t>(mode3) * nb;
  Complex<double> turn[3] = {load(walk.turn[0] + q2.x), load(walk.turn[1] + q2.y), load(walk.turn[2] + q2.z)};
  for (int i = 0; i < 3; ++i) turn[i].im *= sign;
  Complex<double> phase{1.0, 0.0};
  const auto step = [&](int direction) {  // 1–3: +a_i; 4–6: −a_i
    const int axis = direction > 3 ? direction - 4 : direction - 1;
    Complex<double> by = axis == 0 ? turn[0] : axis == 1 ? turn[1] : turn[2];
    if (direction > 3) by.im = -by.im;
    phase = fused_multiply(phase, by);
  };
  Complex<double> v{0.0, 0.0};
  if constexpr (kAtoms > 0) {
    constexpr int kKept = 3 * kAtoms;
    Complex<double> kept[kKept];
    Complex<double> w[kKept] = {};
#pragma unroll
    for (int x = 0; x < kKept; ++x) {
      kept[x] = load(e2 + x);
      kept[x].im *= sign;
    }
    const Complex<double>* a = pair;
    for (int s = 0; s < walk.n_steps; ++s) {
      const std::uint32_t word = program[s];
      if ((word & 7u) != 0) step(static_cast<int>(word & 7u));
      if (word < 256u) continue;
#pragma unroll
      for (int third = 0; third < kAtoms; ++third) {
        Complex<double> u[3];
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
      const Complex<double> e = load(e3 + x);
      fused_add(v, w[x], {e.re, -e.im});
    }
  } else {
    for (int s = 0; s < walk.n_steps; ++s) {
      const int direction = walk.step[s];
      if (direction != 0) step(direction > 0 ? direction : 3 - direction);
      for (int p = walk.first[s]; p < walk.first[s + 1]; ++p) {
        const int third = walk.atoms[p] / 256;
        const int fourth = walk.atoms[p] % 256;
        const Complex<double>* a = pair + 9 * p;
        Complex<double> sum[3] = {};
        for (int b = 0; b < 3; ++b) {
          const Complex<double> e = e2[3 * third + b];
          const Complex<double> u = fused_multiply(phase, {e.re, sign * e.im});
          for (int c = 0; c < 3; ++c) fused_add(sum[c], u, load(a + 3 * b + c));
        }
        for (int c = 0; c < 3; ++c) {
          const Complex<double> e = e3[3 * fourth + c];
          fused_add(v, sum[c], {e.re, -e.im});
        }
      }
    }
  }
  return v.re * v.re + v.im * v.im;
}

}  // namespace quasi::thermal::cuda4ph
