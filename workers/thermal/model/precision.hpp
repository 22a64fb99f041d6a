#pragma once

namespace quasi::thermal {

/// Floating-point numbers of the innermost products of matrix elements (docs/theory/thermal.md
/// 11.6). Constants are contracted in FP64 and processes are summed in FP64 in both cases.
enum class Precision {
  kDouble,  ///< FP64 throughout
  kMixed,   ///< FP32 in two places: for three phonons, in the Fourier sum along the last axis and
            ///< the products with it; for four phonons, in the sum over pairs of the last two atoms
};

}  // namespace quasi::thermal
