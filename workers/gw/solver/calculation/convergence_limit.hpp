#pragma once

#include <vector>

namespace quasi::gw {

/// What a sequence of calculations tends to, and the error that the sequence itself implies.
struct ConvergenceLimit {
  double value = 0.0;
  double error = 0.0;
};

/// The limit x → 0 of energies that depend smoothly on x, where x is 1/N_b, 1/N_G or 1/N_k: the
/// straight line through the two finest calculations. Its error is the larger of
///   the change against the line through the second and third finest (curvature),
///   what the line adds to the finest calculation (the law may have come to its end already: bands
///   and plane waves are finite),
/// and on top of it the last step between calculations: parts of Σ converge from opposite sides, so
/// a sequence may turn. Two points show no curvature; twice what the line adds stands for it.
/// @param x  ≥ 2 different values > 0, descending; y  the energies
ConvergenceLimit convergence_limit(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace quasi::gw
