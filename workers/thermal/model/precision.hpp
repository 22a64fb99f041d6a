#pragma once

namespace quasi::thermal {

/// Floating-point numbers of the innermost products of matrix elements. Constants are contracted,
/// and sums over processes are taken, in FP64 in both cases (docs/theory/thermal.md 11.6).
enum class Precision {
  kDouble,  ///< FP64 throughout
  kMixed,   ///< FP32 for three phonons: Fourier sum along the last axis and the products with it;
            ///< for four phonons: sum over pairs of the last two atoms
};

}  // namespace quasi::thermal
