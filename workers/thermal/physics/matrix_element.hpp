#pragma once

#include <cstdint>

#include "workers/backend/complex.hpp"
#include "workers/backend/host_device.hpp"

namespace quasi::thermal {

/// +1: absorption, λ + λ' → λ''; −1: emission, λ → λ' + λ''.
enum class Channel3 : int { kAbsorption = 1, kEmission = -1 };

/// Momentum-space view of third-order constants: blocks of atoms and cells with mass-scaled
/// tensors.
struct Blocks3View {
  std::int64_t n_blocks = 0;
  const int* atom = nullptr;       ///< [n_blocks][3]
  const int* cell = nullptr;       ///< [n_blocks][2][3]
  const double* tensor = nullptr;  ///< [n_blocks][27], eV/(Å³ amu^{3/2})
};

/// exp(2πi x/N) by table: phase of an integer product, periodic in N.
struct PhaseTable {
  const Complex<double>* axis[3];  ///< [N_d] exp(2πi m/N_d)
  int n[3];
  /// exp(i q·R) for the mesh point with integer coordinates c.
  QUASI_HD Complex<double> operator()(const int c[3], const int cell[3]) const {
    Complex<double> phase{1.0, 0.0};
    for (int d = 0; d < 3; ++d) {
      int m = static_cast<int>(static_cast<std::int64_t>(c[d]) * cell[d] % n[d]);
      if (m < 0) m += n[d];
      phase = phase * axis[d][m];
    }
    return phase;
  }
};

/// V±(λ, λ', λ'') summed block by block (docs/theory/thermal.md 6): the naive form of the
/// published strategies [guo2025].
///
///   V± = Σ Φ_{αβγ}/√(mm'm'') e_λ(κα) · E_λ'(κ'β)^{(*)} · E_λ''(κ''γ)*,  E = e e^{iq·R}
///
/// λ' is conjugated for emission. @return eV/(Å³ amu^{3/2}).
QUASI_HD inline Complex<double> matrix_element_3ph(
    const Blocks3View& blocks, const PhaseTable& phase, Channel3 channel, const Complex<double>* e0,
    const Complex<double>* e1, const Complex<double>* e2, const int c1[3], const int c2[3]) {
  Complex<double> sum{0.0, 0.0};
  const bool emission = channel == Channel3::kEmission;
  for (std::int64_t block = 0; block < blocks.n_blocks; ++block) {
    const int* atom = blocks.atom + block * 3;
    const int* cell = blocks.cell + block * 6;
    const double* tensor = blocks.tensor + block * 27;
    Complex<double> p1 = phase(c1, cell);
    if (emission) p1 = conj(p1);
    const Complex<double> p = p1 * conj(phase(c2, cell + 3));
    Complex<double> block_sum{0.0, 0.0};
    for (int a = 0; a < 3; ++a) {
      Complex<double> row{0.0, 0.0};
      for (int b = 0; b < 3; ++b) {
        Complex<double> inner{0.0, 0.0};
        for (int c = 0; c < 3; ++c)
          inner += tensor[(a * 3 + b) * 3 + c] * conj(e2[3 * atom[2] + c]);
        const Complex<double> middle = e1[3 * atom[1] + b];
        row += (emission ? conj(middle) : middle) * inner;
      }
      block_sum += e0[3 * atom[0] + a] * row;
    }
    sum += p * block_sum;
  }
  return sum;
}

}  // namespace quasi::thermal
