#pragma once

#include <cstdint>

#include "workers/backend/complex.hpp"
#include "workers/backend/host_device.hpp"

namespace quasi::thermal {

/// The channel of a three-phonon process; its value is the sign of q' in q ± q' = q''.
enum class Channel3 : int {
  kAbsorption = 1,  ///< λ + λ' → λ''
  kEmission = -1,   ///< λ → λ' + λ''
};

/// A view of third-order force constants as blocks of three atoms. The first atom of a block lies
/// in the cell at the origin.
struct Blocks3View {
  std::int64_t n_blocks = 0;
  const int* atom = nullptr;       ///< [n_blocks][3]
  const int* cell = nullptr;       ///< [n_blocks][2][3] cells of the second and the third atom
  const double* tensor = nullptr;  ///< [n_blocks][27] mass scaled, eV/(Å³ amu^{3/2})
};

/// Phase factors exp(iq·R) by table lookup: q is a mesh point, so q·R/2π is a multiple of 1/N along
/// every axis.
struct PhaseTable {
  const Complex<double>* axis[3];  ///< [N_d] exp(2πi m/N_d)
  int n[3];                        ///< points of the mesh along each axis
  /// Returns exp(iq·R) for the mesh point with integer coordinates c.
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

/// The three modes of one process as the matrix element needs them.
struct Triplet3 {
  Channel3 channel;
  const Complex<double>* e0;  ///< [3 n_atoms] eigenvector of λ
  const Complex<double>* e1;  ///< [3 n_atoms] eigenvector of λ'
  const Complex<double>* e2;  ///< [3 n_atoms] eigenvector of λ''
  int c1[3] = {0, 0, 0};      ///< mesh coordinates of q'
  int c2[3] = {0, 0, 0};      ///< mesh coordinates of q''
};

/// Computes the matrix element V±(λ, λ', λ'') as a sum over the blocks of force constants
/// (docs/theory/thermal.md 6), as ShengBTE and FourPhonon do [li2014, guo2025]:
///
///   V± = Σ Φ_{αβγ}/√(mm'm'') e_λ(κα) · E_λ'(κ'β)^{(*)} · E_λ''(κ''γ)*,  E = e e^{iq·R}
///
/// E_λ' is conjugated for emission. @return V in eV/(Å³ amu^{3/2}).
QUASI_HD inline Complex<double> matrix_element_3ph(const Blocks3View& blocks,
                                                   const PhaseTable& phase,
                                                   const Triplet3& triplet) {
  Complex<double> sum{0.0, 0.0};
  const bool emission = triplet.channel == Channel3::kEmission;
  for (std::int64_t block = 0; block < blocks.n_blocks; ++block) {
    const int* atom = blocks.atom + block * 3;
    const int* cell = blocks.cell + block * 6;
    const double* tensor = blocks.tensor + block * 27;
    Complex<double> p1 = phase(triplet.c1, cell);
    if (emission) p1 = conj(p1);
    const Complex<double> p = p1 * conj(phase(triplet.c2, cell + 3));
    Complex<double> block_sum{0.0, 0.0};
    for (int a = 0; a < 3; ++a) {
      Complex<double> row{0.0, 0.0};
      for (int b = 0; b < 3; ++b) {
        Complex<double> inner{0.0, 0.0};
        for (int c = 0; c < 3; ++c)
          inner += tensor[(a * 3 + b) * 3 + c] * conj(triplet.e2[3 * atom[2] + c]);
        const Complex<double> middle = triplet.e1[3 * atom[1] + b];
        row += (emission ? conj(middle) : middle) * inner;
      }
      block_sum += triplet.e0[3 * atom[0] + a] * row;
    }
    sum += p * block_sum;
  }
  return sum;
}

}  // namespace quasi::thermal
