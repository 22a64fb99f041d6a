#pragma once

#include <complex>
#include <vector>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// ε⁻¹_00 of a slab at one short q in its plane.
struct HeadSample {
  Vec3 q{};  ///< reduced
  std::complex<double> inverse_head;
};

/// γ(p) of a slab at one frequency, from W_00(p) = 8πv_c/(1 + γ(p) p² v_c), Bohr
/// (docs/theory/gw.md 5.2). It is the polynomial through its values at some lengths p, damped
/// by e^{−(p/P)⁸} towards its value at the longest, P. One value alone stands for all p.
class SheetScreening {
 public:
  /// @param p      lengths in ascending order, 1/Bohr; one or more, all different
  /// @param gamma  γ(p) at each
  SheetScreening(std::vector<double> p, std::vector<std::complex<double>> gamma);
  std::complex<double> operator()(double p) const;

 private:
  std::vector<double> p_, weight_;
  std::vector<std::complex<double>> gamma_;
};

/// Returns the lengths of n samples up to `longest`, p_j = longest (1 − cos(πj/n))/2 for j = 1
/// … n. Every second one belongs to the set of n/2.
std::vector<double> sample_lengths(int n, double longest);

}  // namespace quasi::gw
