#pragma once

#include "workers/gw/solver/screening/epsilon.hpp"

namespace quasi::gw::test {

/// Returns ε⁻¹ of a static subspace as matrices between plane waves.
inline DielectricMatrix written_out(const DielectricMatrix& m) {
  DielectricMatrix whole = m;
  for (std::size_t f = 1; f < m.n_frequencies(); ++f) {
    UnsetVector<Cplx> room;
    whole.inverse.push_back(inverse_of(m, f, room));
  }
  whole.reduced = {};
  return whole;
}

}  // namespace quasi::gw::test
