#pragma once

#include <complex>
#include <vector>

/// Slow, literal forms of sums over W in a subspace. They use nothing of workers/.
namespace quasi::oracle::gw {

using Complex = std::complex<double>;

/// W_GG' = Σ_ab C_Ga X_ab C*_G'b + s R_GG' + δ_GG' d_G of one frequency.
struct SubspaceMatrix {
  int n = 0, n_b = 0;
  std::vector<Complex> basis;     ///< C, [n][n_b]
  std::vector<Complex> inner;     ///< X, [n_b][n_b]
  Complex share;                  ///< s
  std::vector<Complex> rest;      ///< R, [n][n]
  std::vector<Complex> diagonal;  ///< d, [n]

  Complex element(int g, int h) const;
};

/// Σ_GG' M_l(G) W_GG' M*_m(G') of two rows of n plane waves.
Complex form(const SubspaceMatrix& w, const Complex* m_l, const Complex* m_m);

}  // namespace quasi::oracle::gw
