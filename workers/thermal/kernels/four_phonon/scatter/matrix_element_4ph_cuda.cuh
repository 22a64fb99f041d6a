#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/tables_4ph.hpp"

namespace quasi::thermal::cuda4ph {

/// Slots of nine threads that share the contraction with λ' in Form4ph::kSwapped.
constexpr int kContractionSlots = 14;

/// Mesh coordinates of a point in the first zone, one load.
struct alignas(8) ZonePoint {
  std::int16_t x, y, z, unused;
};

/// The pairs of ContractionPlan4ph ordered along a path through their cells.
///
/// A load of e^{iq''·R} for every cell would be many scattered loads for each process. Instead each
/// thread keeps one phase and multiplies it by e^{±iq''·a_i} from cell to cell. The path visits all
/// cells in steps of one lattice vector, and every thread of a block takes the same steps. The
/// three factors come from short tables by the coordinates of q''.
struct CellPath4ph {
  int n_steps = 0;
  const std::int32_t* step = nullptr;   ///< [n_steps] 0: stay; ±(i+1): by ±a_i
  const std::int32_t* first = nullptr;  ///< [n_steps + 1] first pair met at the step's end
  const std::int32_t* atoms = nullptr;  ///< [n_pairs] κ'' · 256 + κ''', along the path
  /// [n_steps] the same in one word, for at most four atoms: direction (0 stay, 1–3 by +a_i, 4–6 by
  /// −a_i) and, from bit 8 on, a bit for each κ''·n_atoms + κ''' met there.
  const std::uint32_t* program = nullptr;
  /// [n_stops + 1] first pair, along the path, of the steps that end at a cell with pairs.
  int n_stops = 0;
  const std::int32_t* stop = nullptr;
  // Form4ph::kSwapped: where contract_shares() puts the sums of its slots.
  /// [n_triples] 4 · (place of the first element of the pair in A) + distance of its elements.
  const std::int32_t* triple_place = nullptr;
  /// [n_pairs] along the path: first slot that carries a part of the pair + 256 · their number.
  const std::int32_t* carry = nullptr;
  const Complex<double>* half = nullptr;  ///< Form4ph::kSwapped: [n_modes][3], the first atom's e
  const ZonePoint* zone = nullptr;        ///< [n_q]
  const Complex<double>* step_phase[3] =
      {};  ///< [i][−2N_i … 2N_i) e^{2πi m/N_i}, pointers to m = 0
};

/// Form of the sum of the matrix element.
enum class Form4ph {
  kPairs,  ///< over the pairs of the plan
  /// Form for crystals whose two atoms inversion exchanges (ContractionPlan4ph::swapped). κ'' is
  /// the first atom, and e(second) is the conjugate of e(first). Re Σ_c w_c e'''_c* therefore needs
  /// only Re(w_1 + w_2) and Im(w_1 − w_2) of the three components of the first atom.
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

/// The last two phonons of a process as its matrix element needs them.
struct LastTwo {
  std::int32_t mode2, mode3;
  ZonePoint q2;
  double sign;  ///< of λ''
};

/// e^{±iq''·a_i} of a process, and the phase e^{±iq''·R} along the path.
template <typename Real>
struct PathPhase {
  Complex<Real> factor[3];
  Complex<Real> phase{1, 0};

  __device__ __forceinline__ PathPhase(const CellPath4ph& path, ZonePoint q2, Real sign) {
    factor[0] = rounded<Real>(load(path.step_phase[0] + q2.x));
    factor[1] = rounded<Real>(load(path.step_phase[1] + q2.y));
    factor[2] = rounded<Real>(load(path.step_phase[2] + q2.z));
    for (int i = 0; i < 3; ++i) factor[i].im *= sign;
  }
  /// @param direction  1–3: +a_i; 4–6: −a_i
  __device__ __forceinline__ void step(int direction) {
    const int axis = direction > 3 ? direction - 4 : direction - 1;
    Complex<Real> by = axis == 0 ? factor[0] : axis == 1 ? factor[1] : factor[2];
    if (direction > 3) by.im = -by.im;
    phase = fused_multiply(phase, by);
  }
};

/// V of squared_element for a known number of atoms: e'' and the sums for e''' stay in registers.
template <int kAtoms, typename Real>
__device__ __forceinline__ Complex<Real> element_in_registers(
    const CellPath4ph& path, const std::uint32_t* program, const Complex<Real>* pair,
    const Complex<double>* e2, const Complex<double>* e3, const LastTwo& last) {
  const auto sign = static_cast<Real>(last.sign);
  PathPhase<Real> along(path, last.q2, sign);
  constexpr int kComponents = 3 * kAtoms;
  Complex<Real> kept[kComponents];
  Complex<Real> w[kComponents] = {};
#pragma unroll
  for (int x = 0; x < kComponents; ++x) {
    kept[x] = rounded<Real>(load(e2 + x));
    kept[x].im *= sign;
  }
  for (int s = 0; s < path.n_steps; ++s) {
    const std::uint32_t word = program[s];
    if ((word & 7u) != 0) along.step(static_cast<int>(word & 7u));
    if (word < 256u) continue;
#pragma unroll
    for (int third = 0; third < kAtoms; ++third) {
      Complex<Real> u[3];
#pragma unroll
      for (int b = 0; b < 3; ++b) u[b] = fused_multiply(along.phase, kept[3 * third + b]);
#pragma unroll
      for (int fourth = 0; fourth < kAtoms; ++fourth)
        if ((word >> (8 + third * kAtoms + fourth) & 1u) != 0) {
#pragma unroll
          for (int b = 0; b < 3; ++b)
#pragma unroll
            for (int c = 0; c < 3; ++c) fused_add(w[3 * fourth + c], u[b], load(pair + 3 * b + c));
          pair += 9;
        }
    }
  }
  Complex<Real> v{0, 0};
#pragma unroll
  for (int x = 0; x < kComponents; ++x) fused_add(v, w[x], rounded<Real>(conj(load(e3 + x))));
  return v;
}

/// V of squared_element for any number of atoms: eigenvectors are read as they are needed.
template <typename Real>
__device__ __forceinline__ Complex<Real> element_from_memory(const CellPath4ph& path,
                                                             const Complex<Real>* pair,
                                                             const Complex<double>* e2,
                                                             const Complex<double>* e3,
                                                             const LastTwo& last) {
  const auto sign = static_cast<Real>(last.sign);
  PathPhase<Real> along(path, last.q2, sign);
  Complex<Real> v{0, 0};
  for (int s = 0; s < path.n_steps; ++s) {
    const int direction = path.step[s];
    if (direction != 0) along.step(direction > 0 ? direction : 3 - direction);
    for (int p = path.first[s]; p < path.first[s + 1]; ++p) {
      const int third = path.atoms[p] / 256;
      const int fourth = path.atoms[p] % 256;
      const Complex<Real>* a = pair + 9 * p;
      Complex<Real> sum[3] = {};
      for (int b = 0; b < 3; ++b) {
        Complex<Real> e = rounded<Real>(e2[3 * third + b]);
        e.im *= sign;
        const Complex<Real> u = fused_multiply(along.phase, e);
        for (int c = 0; c < 3; ++c) fused_add(sum[c], u, load(a + 3 * b + c));
      }
      for (int c = 0; c < 3; ++c) fused_add(v, sum[c], rounded<Real>(conj(e3[3 * fourth + c])));
    }
  }
  return v;
}

/// Step 3 of ContractionPlan4ph by one thread: |V|² (docs/theory/thermal.md 11.4).
/// @tparam kAtoms   atoms of the cell; 0: any number
/// @param program   CellPath4ph::program in shared memory
/// @param pair      A of the (λ, λ') of the thread, ordered along the path
template <int kAtoms, typename Real>
__device__ __forceinline__ double squared_element(const Tables4ph& t, const CellPath4ph& path,
                                                  const std::uint32_t* program,
                                                  const Complex<Real>* pair, const LastTwo& last) {
  const int nb = kAtoms > 0 ? 3 * kAtoms : t.n_branches;
  const Complex<double>* e2 = t.eigenvector + static_cast<std::int64_t>(last.mode2) * nb;
  const Complex<double>* e3 = t.eigenvector + static_cast<std::int64_t>(last.mode3) * nb;
  Complex<Real> v;
  if constexpr (kAtoms > 0)
    v = element_in_registers<kAtoms>(path, program, pair, e2, e3, last);
  else
    v = element_from_memory(path, pair, e2, e3, last);
  return squared_of_sum_4ph(t, rounded<double>(v));
}

}  // namespace quasi::thermal::cuda4ph
