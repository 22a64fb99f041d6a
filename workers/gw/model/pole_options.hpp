#pragma once

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Rules that replace or drop terms of the plasmon-pole sum near its poles (docs/theory/gw.md 6.2).
/// physics/plasmon_pole.hpp defines them, and every kernel agrees with its functions.
struct PoleRules {
  /// Half width γ: the term of an empty band is dropped within γ of its pole.
  double half_width_ry = 0.5 / kRydberg_ev;
  /// The term of an empty band is also dropped closer to its pole than ω̃ / max_ratio.
  double max_ratio = 500.0;
  /// For x < 0, SX − X is dropped where |ω̃²/(x² − ω̃²)| exceeds this number.
  double screened_exchange_cut = 4.0;
};

/// Method of the full plasmon-pole matrix Σ_lm(E) (docs/theory/gw.md 7).
struct OffDiagonalOptions {
  /// kTwoProducts sums every (n, E) by the two products of docs/theory/gw.md 7. The other methods
  /// use sums of terms separable in |E − E_n| and ω̃ for the pairs that cross no pole
  /// (kernels/pole_sums/offdiagonal/separable_pole.hpp), and the two products for the others.
  enum class Method { kTwoProducts, kExponentialSums, kRationalSums };
  /// Arithmetic of complex products: four real products, three real products, or integers that
  /// emulate FP64. Only CUDA has the last two.
  enum class Products { kNative, kThreeMultiplications, kEmulated };
  Method method = Method::kTwoProducts;
  Products products = Products::kNative;
  /// Relative error of the separable sums.
  double tolerance_relative = 1e-7;
  /// Largest residual of products that are not native; the call fails above it.
  double max_residual = 1e-9;
};

}  // namespace quasi::gw
