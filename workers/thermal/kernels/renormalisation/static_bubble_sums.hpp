#pragma once

#include <cmath>
#include <cstdint>

#include "workers/backend/complex.hpp"
#include "workers/backend/host_device.hpp"
#include "workers/thermal/physics/matrix_element.hpp"
#include "workers/thermal/physics/q_mesh.hpp"

/// Sums of the static bubble (docs/theory/thermal.md 14.1), one element for each index.
namespace quasi::thermal {

/// Weights of pairs of phonons in the bubble.
struct BubbleWeight {
  const double* omega_rad_ps;  ///< [n_modes]; 0 for a translation
  const double* occupation;    ///< [n_modes]
  double inverse_kt_ps;        ///< ħ/k_BT; 0 at T = 0

  /// Returns [(1 + n + n')/(ω + ω') + (n − n')/(ω' − ω)]/(ωω') in ps³, which is not
  /// negative; 0 for a translation.
  QUASI_HD double operator()(std::int64_t mode1, std::int64_t mode2) const {
    const bool ordered = omega_rad_ps[mode1] <= omega_rad_ps[mode2];
    const std::int64_t first = ordered ? mode1 : mode2, second = ordered ? mode2 : mode1;
    const double low = omega_rad_ps[first], high = omega_rad_ps[second];
    if (low == 0.0 || high == 0.0) return 0.0;
    const double n_low = occupation[first], n_high = occupation[second];
    // n − n' = n(n' + 1)(1 − e^{−ħ(ω'−ω)/k_BT}), which loses no digits where ω = ω'.
    const double gap = high - low;
    const double slope = gap > 0.0 ? -std::expm1(-inverse_kt_ps * gap) / gap : inverse_kt_ps;
    return ((1.0 + n_low + n_high) / (low + high) + n_low * (n_high + 1.0) * slope) / (low * high);
  }
};

/// Sums Φ/√(mm'm'') e^{−iq·R''} of the blocks of one target of the box of ΔR = R' − R''.
/// The index is 27·target + element.
struct FillBox {
  int nb;
  int c[3];  ///< integer coordinates of q
  PhaseTable phase;
  const int* target_first;            ///< [n_targets + 1] where the blocks of a target begin
  const std::int64_t* target_offset;  ///< [n_targets] of element 0 in the box
  const int* block;                   ///< [n_blocks] blocks sorted by target
  const int* third_cell;              ///< [n_blocks][3] R'' of each block
  const double* tensor;               ///< [n_blocks][27]
  Complex<double>* box;               ///< [c][b][a][3κ'+β][3κ+α][3κ''+γ]

  QUASI_HD void operator()(std::int64_t index) const {
    const std::int64_t target = index / 27;
    const int element = static_cast<int>(index % 27);
    Complex<double> sum;
    for (int at = target_first[target]; at < target_first[target + 1]; ++at) {
      const std::int64_t b = block[at];
      sum += tensor[27 * b + element] * conj(phase(c, third_cell + 3 * b));
    }
    const int first = element / 9, second = element / 3 % 3, third = element % 3;
    box[target_offset[target] + (static_cast<std::int64_t>(second) * nb + first) * nb + third] =
        sum;
  }
};

/// Copies the eigenvectors at q + p. The index is (point·nb + branch)·nb + component.
struct GatherSecondPhonons {
  QMesh mesh;
  int nb;
  std::int64_t q;
  std::int64_t first_point;        ///< p of point 0
  const Complex<double>* vectors;  ///< [n_q][branch][3κ+α]
  Complex<double>* second;         ///< [points][branch][3κ+α]

  QUASI_HD void operator()(std::int64_t index) const {
    const std::int64_t square = static_cast<std::int64_t>(nb) * nb;
    const std::int64_t point = mesh.add(q, first_point + index / square, 1);
    second[index] = vectors[point * square + index % square];
  }
};

/// Computes roots of weights. The index is (point·nb + s)·nb + s'.
struct RootWeights {
  QMesh mesh;
  int nb;
  std::int64_t q;
  std::int64_t first_point;
  BubbleWeight weight;
  double* root;  ///< [points][s][s']

  QUASI_HD void operator()(std::int64_t index) const {
    const std::int64_t p = first_point + index / nb / nb;
    const std::int64_t mode1 = p * nb + index / nb % nb;
    const std::int64_t mode2 = static_cast<std::int64_t>(mesh.add(q, p, 1)) * nb + index % nb;
    root[index] = std::sqrt(weight(mode1, mode2));
  }
};

/// Multiplies U by the roots of weights and reorders it. The index is that of `from`.
struct WeighElements {
  int nb;
  const double* root;           ///< [points][s][s']
  const Complex<double>* from;  ///< [points][s][x][s']
  Complex<double>* to;          ///< [points][x][s][s']

  QUASI_HD void operator()(std::int64_t index) const {
    const std::int64_t s2 = index % nb, x = index / nb % nb, s = index / nb / nb % nb;
    const std::int64_t point = index / nb / nb / nb;
    to[((point * nb + x) * nb + s) * nb + s2] = root[(point * nb + s) * nb + s2] * from[index];
  }
};

/// Adds the matrices of a chunk of points to its sum. The index is element·chunks + chunk.
struct AddPoints {
  int nb;
  std::int64_t n_points;
  int chunks;
  bool first;                    ///< the sums begin with these points
  const Complex<double>* terms;  ///< [points][nb][nb]
  Complex<double>* sums;         ///< [nb][nb][chunks]

  QUASI_HD void operator()(std::int64_t index) const {
    const std::int64_t element = index / chunks, chunk = index % chunks;
    Complex<double> sum;
    if (!first) sum = sums[index];
    for (std::int64_t point = n_points * chunk / chunks; point < n_points * (chunk + 1) / chunks;
         ++point)
      sum += terms[point * nb * nb + element];
    sums[index] = sum;
  }
};

}  // namespace quasi::thermal
