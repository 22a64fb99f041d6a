#pragma once

#include <cstdint>
#include <vector>

namespace quasi::thermal {

/// Uncertainty of third-order constants that depend on n parameters p: dΦ = Σ_i B_i dp_i, with the
/// covariance of the p_i.
struct ConstantsCovariance {
  /// One element of the sparse map B from parameters to constants.
  struct Entry {
    std::int64_t parameter;  ///< from zero
    std::int64_t element;    ///< position in SparseForceConstants::tensor
    double value;            ///< ∂Φ/∂p, eV/Å³ per unit of the parameter
  };
  std::int64_t n_parameters = 0;
  std::vector<Entry> basis;
  std::vector<double> covariance;  ///< [n][n], symmetric, product of the units of two parameters
};

}  // namespace quasi::thermal
