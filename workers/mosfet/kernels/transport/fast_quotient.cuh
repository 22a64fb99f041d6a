#pragma once

#include <nv/target>

#include "workers/backend/host_device.hpp"

namespace quasi::mosfet::cuda {

/// Returns the hardware's estimate of 1/b, good to 20 bits, without the branches of the full
/// division for special cases.
QUASI_HD inline double rough_reciprocal(double b) {
  NV_IF_ELSE_TARGET(NV_IS_DEVICE,
                    (double r; asm("rcp.approx.ftz.f64 %0, %1;"
                                   : "=d"(r)
                                   : "d"(b));
                     return r;),
                    (return 1.0 / b;))
}

/// Computes a/b to one unit in the last place for normal b: with b r = 1 − e, the error of
/// r(1+e+e²) is e³.
struct FastQuotient {
  QUASI_HD double operator()(double a, double b) const {
    const double r = rough_reciprocal(b), e = fma(-b, r, 1.0), q = a * r;
    return fma(q, fma(e, e, e), q);
  }
};

}  // namespace quasi::mosfet::cuda
