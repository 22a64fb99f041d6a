#pragma once

#include <nv/target>

#include "workers/backend/host_device.hpp"

namespace quasi::mosfet::cuda {

/// 1/b from the hardware's 20-bit estimate and two Newton steps: within one unit in the last place for
/// normal b, with none of the branches that the full division has for its special cases.
QUASI_HD inline double fast_reciprocal(double b) {
  NV_IF_ELSE_TARGET(NV_IS_DEVICE,
                    (double r;
                     asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(b));
                     r = fma(r, fma(-b, r, 1.0), r);
                     return fma(r, fma(-b, r, 1.0), r);),
                    (return 1.0 / b;))
}

/// a/b with fast_reciprocal and one correction.
struct FastQuotient {
  QUASI_HD double operator()(double a, double b) const {
    const double r = fast_reciprocal(b), q = a * r;
    return fma(fma(-b, q, a), r, q);
  }
};

}  // namespace quasi::mosfet::cuda
