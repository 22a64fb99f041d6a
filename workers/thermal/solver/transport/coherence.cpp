#include "workers/thermal/solver/transport/coherence.hpp"

#include <algorithm>

#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/physics/wigner.hpp"

namespace quasi::thermal {

std::vector<std::complex<double>> velocity_operator(const Transport& t,
                                                    const DynamicalMatrixBuilder& builder,
                                                    std::int64_t point) {
  const int nb = t.modes.n_branches;
  const auto size = static_cast<std::size_t>(nb * nb);
  int c[3];
  t.symmetry.mesh.coordinates(point, c);
  Vec3 q{};
  for (int d = 0; d < 3; ++d) q[d] = static_cast<double>(c[d]) / t.symmetry.mesh.n[d];
  DynamicalMatrix matrix = builder.at(q, true);
  std::vector<Vec3> position;
  for (const Vec3& p : t.crystal.position) position.push_back(t.crystal.cartesian_nm(p));
  const std::complex<double>* e = &t.modes.eigenvector[static_cast<std::size_t>(point) * size];
  std::vector<std::complex<double>> result(3 * size, 0.0);
  std::vector<std::complex<double>> half(size);
  for (int g = 0; g < 3; ++g) {
    // D' = D e^{−iq·(r_κ − r_κ')}. Its gradient is taken in the phases of the eigenvectors.
    auto& slope = matrix.gradient[g];
    for (int i = 0; i < nb; ++i)
      for (int j = 0; j < nb; ++j)
        slope[i * nb + j] -= std::complex<double>(0.0, position[i / 3][g] - position[j / 3][g]) *
                             matrix.d[i * nb + j];
    for (int i = 0; i < nb; ++i)
      for (int s = 0; s < nb; ++s) {
        std::complex<double> sum = 0.0;
        for (int j = 0; j < nb; ++j) sum += slope[i * nb + j] * e[s * nb + j];
        half[i * nb + s] = sum;
      }
    for (int a = 0; a < nb; ++a)
      for (int b = 0; b < nb; ++b) {
        const std::int64_t ma = point * nb + a;
        const std::int64_t mb = point * nb + b;
        if (!t.modes.active(ma, t.options.omega_max_rad_ps) ||
            !t.modes.active(mb, t.options.omega_max_rad_ps))
          continue;
        std::complex<double> sum = 0.0;
        for (int i = 0; i < nb; ++i) sum += std::conj(e[a * nb + i]) * half[i * nb + b];
        result[static_cast<std::size_t>(g) * size + static_cast<std::size_t>(a * nb + b)] =
            sum / (t.modes.omega_rad_ps[ma] + t.modes.omega_rad_ps[mb]);
      }
  }
  return result;
}

std::vector<Coherence> coherence_conductivity(
    const Transport& t, const SecondOrder& constants, const std::vector<double>& temperatures_k,
    const std::vector<std::vector<double>>& rates_per_ps) {
  const DynamicalMatrixBuilder builder(t.crystal, constants, t.options.harmonic);
  const PhysicalConstants& constant = t.options.constants();
  const int nb = t.modes.n_branches;
  const auto size = static_cast<std::size_t>(nb * nb);
  std::vector<Coherence> result(temperatures_k.size());
  for (Coherence& c : result)
    c.by_row_w_per_mk.assign(static_cast<std::size_t>(t.n_rows()), Mat3{});
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < t.symmetry.n_irreducible(); ++i) {
    const std::int64_t point = t.symmetry.irreducible[i];
    const auto v = velocity_operator(t, builder, point);
    const std::int32_t* subspace = &t.modes.subspace[static_cast<std::size_t>(point * nb)];
    std::vector<double> weight(static_cast<std::size_t>(nb));
    for (std::size_t k = 0; k < temperatures_k.size(); ++k) {
      const double temperature = temperatures_k[k];
      const double scale =
          constant.hbar_1e34_j_s * constant.hbar_1e34_j_s / constant.kb_1e23_j_k *
          t.symmetry.multiplicity[i] /
          (temperature * temperature * t.crystal.volume_nm3() * static_cast<double>(t.modes.n_q));
      for (int s = 0; s < nb; ++s) {
        const double omega = t.modes.omega_rad_ps[point * nb + s];
        const double n = t.modes.active(point * nb + s, t.options.omega_max_rad_ps)
                             ? bose_einstein(omega, temperature, constant.hbar_over_kb_k_ps())
                             : 0.0;
        weight[s] = n * (n + 1.0);
      }
      for (int a = 0; a < nb; ++a)
        for (int b = 0; b < a; ++b) {
          if (subspace[a] == subspace[b]) continue;
          const double pair = wigner_pair_weight(
              t.modes.omega_rad_ps[point * nb + a], t.modes.omega_rad_ps[point * nb + b], weight[a],
              weight[b], rates_per_ps[k][i * nb + a], rates_per_ps[k][i * nb + b]);
          Mat3 half{};  // sum of both orders of the pair; each mode gets half
          for (int x = 0; x < 3; ++x)
            for (int y = 0; y < 3; ++y)
              half[x][y] = scale * pair *
                           (v[x * size + static_cast<std::size_t>(a * nb + b)] *
                            v[y * size + static_cast<std::size_t>(b * nb + a)])
                               .real();
          if (t.symmetry.folded) half = t.symmetry.symmetrised(half);
          for (const int s : {a, b})
            for (int x = 0; x < 3; ++x)
              result[k].by_row_w_per_mk[i * nb + s][x] =
                  result[k].by_row_w_per_mk[i * nb + s][x] + half[x];
        }
    }
  }
  for (Coherence& c : result) c.kappa_w_per_mk = total(c.by_row_w_per_mk);
  return result;
}

}  // namespace quasi::thermal
