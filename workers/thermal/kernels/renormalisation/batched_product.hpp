#pragma once

#include <cstdint>

#include "workers/backend/complex.hpp"

namespace quasi::thermal {

/// Products C = A·B or A·B† of row-major matrices of the static bubble (docs/theory/thermal.md
/// 14.1), for every matrix of a batch: A is [m][k], B is [k][n] or, with the adjoint, [n][k], and C
/// is [m][n].
struct BatchedProduct {
  std::int64_t m, n, k;
  const Complex<double>* a;
  std::int64_t a_stride;  ///< values between two A; 0: all products share A
  const Complex<double>* b;
  std::int64_t b_stride;
  bool adjoint_b;
  Complex<double>* c;
  std::int64_t c_stride;
  std::int64_t batch;
};

}  // namespace quasi::thermal
