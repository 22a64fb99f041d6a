#include "workers/gw/solver/perturbation/state_coupling.hpp"

#include <cmath>

#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/solver/perturbation/spinors/spin_orbit_displacement.hpp"

namespace quasi::gw {

BraPoint bra_point(const Vec3& k, const Vec3& p) {
  BraPoint point{.k = k + p};
  for (int i = 0; i < 3; ++i) {
    // A hundred-millionth keeps 1 − rounding from folding to 1 instead of 0.
    point.umklapp[i] = static_cast<int>(std::floor(point.k[i] + 1e-8));
    point.k[i] -= point.umklapp[i];
  }
  return point;
}

std::vector<Cplx> state_coupling(const Perturbation& perturbation, const Vec3& k,
                                 const WavesAtPoint& bra, const IVec3& umklapp,
                                 const WavesAtPoint& ket) {
  std::vector<IVec3> from_k_plus_p;
  for (const IVec3& g : bra.waves.g) from_k_plus_p.push_back(g - umklapp);
  const std::vector<Cplx> matrix = perturbation.potential(k, from_k_plus_p, ket.waves.g);
  const std::int64_t n_bra = bra.waves.coefficients.extent[0],
                     n_ket = ket.waves.coefficients.extent[0],
                     bra_row = bra.waves.coefficients.extent[1],
                     ket_row = ket.waves.coefficients.extent[1], bra_pw = std::ssize(from_k_plus_p),
                     ket_pw = std::ssize(ket.waves.g);
  std::vector<Cplx> conjugate(static_cast<std::size_t>(n_bra * bra_row));
  for (std::size_t i = 0; i < conjugate.size(); ++i)
    conjugate[i] = std::conj(bra.waves.coefficients.data[i]);
  // c†_bra (∂V c_ket) of each component: first ∂V c_ket, as [bra_pw][n_ket].
  std::vector<Cplx> applied(static_cast<std::size_t>(bra_pw * n_ket)),
      elements(static_cast<std::size_t>(n_bra * n_ket));
  for (std::int64_t component = 0; component < bra_row / bra_pw; ++component) {
    zgemm({.transpose_b = CblasTrans, .m = bra_pw, .n = n_ket, .k = ket_pw},
          {matrix.data(), ket_pw}, {ket.waves.coefficients.data + component * ket_pw, ket_row},
          {applied.data(), n_ket});
    zgemm({.transpose_b = CblasNoTrans, .m = n_bra, .n = n_ket, .k = bra_pw, .beta = 1.0},
          {conjugate.data() + component * bra_pw, bra_row}, {applied.data(), n_ket},
          {elements.data(), n_ket});
  }
  if (perturbation.spin_orbit != nullptr)
    perturbation.spin_orbit
        ->elements({k + perturbation.p, from_k_plus_p, bra.waves.coefficients},
                   {k, ket.waves.g, ket.waves.coefficients})
        .add({0, n_ket}, elements.data());
  return elements;
}

}  // namespace quasi::gw
