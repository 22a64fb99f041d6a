#include "workers/gw/solver/perturbation/state_coupling.hpp"

#include <cmath>

#include "workers/gw/kernels/dense/zgemm_cpu.hpp"

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

std::vector<Cplx> state_coupling(const PotentialDerivative& potential, const Vec3& k,
                                 const WavesAtPoint& bra, const IVec3& umklapp,
                                 const WavesAtPoint& ket) {
  std::vector<IVec3> from_k_plus_p;
  for (const IVec3& g : bra.waves.g) from_k_plus_p.push_back(g - umklapp);
  const std::vector<Cplx> matrix = potential(k, from_k_plus_p, ket.waves.g);
  const std::int64_t n_bra = bra.waves.coefficients.extent[0],
                     n_ket = ket.waves.coefficients.extent[0],
                     bra_pw = bra.waves.coefficients.extent[1],
                     ket_pw = ket.waves.coefficients.extent[1];
  // c†_bra (∂V c_ket): first ∂V c_ket, as [n_bra_pw][n_ket].
  std::vector<Cplx> applied(static_cast<std::size_t>(bra_pw * n_ket));
  zgemm({.transpose_b = CblasTrans, .m = bra_pw, .n = n_ket, .k = ket_pw}, {matrix.data(), ket_pw},
        {ket.waves.coefficients.data, ket_pw}, {applied.data(), n_ket});
  std::vector<Cplx> conjugate(static_cast<std::size_t>(n_bra * bra_pw));
  for (std::size_t i = 0; i < conjugate.size(); ++i)
    conjugate[i] = std::conj(bra.waves.coefficients.data[i]);
  std::vector<Cplx> elements(static_cast<std::size_t>(n_bra * n_ket));
  zgemm({.transpose_b = CblasNoTrans, .m = n_bra, .n = n_ket, .k = bra_pw},
        {conjugate.data(), bra_pw}, {applied.data(), n_ket}, {elements.data(), n_ket});
  return elements;
}

}  // namespace quasi::gw
