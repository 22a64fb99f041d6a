#pragma once

#include <complex>
#include <vector>

#include "tests/oracle/gw/plasmon_pole_sums.hpp"

/// The first order of Σ by the literal sum over pairs of states. It uses nothing of workers/.
namespace quasi::oracle::gw {

/// States on one side of a perturbation.
struct Side {
  std::vector<double> energy_ry;   ///< [n]
  std::vector<double> occupation;  ///< 1 or 0, [n]
  std::vector<Complex> products;   ///< M(G) of one outer state with each n, [n][n_g]
};

/// Σ_n'n V_n'n Σ_GG' M_ln'(G) (F_n − F_n')/(E_n − E_n') I_GG' v̄(G') M*_mn(G') at energy E; where
/// E_n = E_n' the quotient is the derivative of F. Rules near the poles are left out: the caller
/// chooses energies far from them.
/// @param coupling  V, [n_bra][n_ket]
Complex sigma_derivative(const PoleModel& model, const Side& bra, const Side& ket,
                         const std::vector<Complex>& coupling, double energy_ry);

}  // namespace quasi::oracle::gw
