#pragma once

#include <cmath>
#include <cstdint>

#include "workers/backend/philox.hpp"
#include "workers/thermal/kernels/sample_layout.hpp"
#include "workers/thermal/kernels/three_phonon/process_3ph.hpp"
#include "workers/thermal/kernels/three_phonon/tetrahedra/mesh_tetrahedra.hpp"

/// Sampling of three-phonon sums (docs/theory/thermal.md 10) [guo2024]. Random words are keyed by
/// the seed and the modes of a draw, so any number of threads and devices gives the same sample.
namespace quasi::thermal {

inline constexpr int kChannels3 = 2;  ///< absorption, emission

/// Views of the problem on the device that draws.
struct SampleTables3 {
  QMesh mesh;
  int nb;
  int n_temperatures;
  ProcessRules3 rules;
  const Complex<double>* e;   ///< [n_modes][nb]
  const std::int32_t* point;  ///< [n_rows / nb] q of the rows
  const int* first_zone;      ///< [n_q][3]
  const double* occupation;   ///< [n_temperatures][n_modes]
  Blocks3View blocks;
  PhaseTable phase;
  TetrahedraView3 tetrahedra;  ///< with kTetrahedra

  QUASI_HD std::int64_t n_modes() const { return mesh.size() * nb; }
  QUASI_HD std::int64_t mode_of_row(std::int64_t row) const {
    return static_cast<std::int64_t>(point[row / nb]) * nb + row % nb;
  }
  QUASI_HD static Channel3 channel(std::int64_t number) {
    return number == 0 ? Channel3::kAbsorption : Channel3::kEmission;
  }
  /// Tests one triple of modes.
  /// @tparam kTetrahedra  whether the broadening is that of tetrahedra
  /// @param delta_ps      receives δ(Δω)
  template <bool kTetrahedra>
  QUASI_HD bool find(Channel3 channel, std::int64_t m0, std::int64_t m1, std::int64_t m2,
                     double& delta_ps) const {
    if constexpr (kTetrahedra) {
      if (!rules.active(m1) || !rules.active(m2)) return false;
      delta_ps = tetrahedra.delta_ps(channel, rules.omega_rad_ps[m0], m1, m2);
      return delta_ps > 0.0;
    }
    double mismatch;
    double width;
    if (!rules.allowed(channel, m0, m1, m2, mismatch, width)) return false;
    delta_ps = rules.delta_ps(mismatch, width);
    return true;
  }
  QUASI_HD double squared_element(Channel3 channel, std::int64_t m0, std::int64_t m1,
                                  std::int64_t m2) const {
    Triplet3 triplet{.channel = channel, .e0 = e + m0 * nb, .e1 = e + m1 * nb, .e2 = e + m2 * nb};
    mesh.coordinates(m1 / nb, triplet.c1);
    mesh.coordinates(m2 / nb, triplet.c2);
    return norm(matrix_element_3ph(blocks, phase, triplet));
  }
  QUASI_HD bool is_normal(Channel3 channel, std::int64_t m0, std::int64_t m1,
                          std::int64_t m2) const {
    return is_normal_3ph(channel, first_zone + 3 * (m0 / nb), first_zone + 3 * (m1 / nb),
                         first_zone + 3 * (m2 / nb));
  }
  /// Returns the Bose factor of a process at a temperature.
  QUASI_HD double occupations(Channel3 channel, int temperature, std::int64_t m1,
                              std::int64_t m2) const {
    const double* n = occupation + temperature * n_modes();
    return occupation_factor_3ph(channel == Channel3::kEmission, n[m1], n[m2]);
  }
};

/// Sums the published estimator: (q', s', s'') is drawn uniformly from the Nq nb² candidates. The
/// index is (row·2 + channel)·chunks + chunk, with rows counted from `first_row` on.
template <bool kTetrahedra>
struct SampleUniform3 {
  SampleTables3 tables;
  std::int64_t first_row;
  std::uint64_t seed;
  std::int64_t draws;
  int chunks;
  bool elements;  ///< false leaves out the matrix elements: phase spaces only
  double* sums;   ///< [rows][2][chunks][UniformLayout]

  QUASI_HD static std::int64_t box(const SampleTables3& t) { return t.n_modes() * t.nb; }

  QUASI_HD void operator()(std::int64_t index) const {
    const SampleTables3& t = tables;
    const UniformLayout layout{t.n_temperatures};
    double* out = sums + index * layout.size();
    for (int i = 0; i < layout.size(); ++i) out[i] = 0.0;
    const std::int64_t chunk = index % chunks;
    const std::int64_t number = index / chunks % kChannels3;
    const Channel3 channel = SampleTables3::channel(number);
    const std::int64_t m0 = t.mode_of_row(first_row + index / chunks / kChannels3);
    if (!t.rules.active(m0)) return;
    for (std::int64_t draw = draws * chunk / chunks; draw < draws * (chunk + 1) / chunks; ++draw) {
      // The last counter word tells orders and channels apart: four phonons have 0 to 2.
      std::int64_t at =
          Philox::at(static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32),
                     static_cast<std::uint32_t>(m0), static_cast<std::uint32_t>(8 + number),
                     static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32))
              .below(box(t));
      const std::int64_t s2 = at % t.nb;
      const std::int64_t m1 = at / t.nb;
      const std::int64_t m2 =
          static_cast<std::int64_t>(t.mesh.add(m0 / t.nb, m1 / t.nb, static_cast<int>(channel))) *
              t.nb +
          s2;
      double delta;
      if (!t.template find<kTetrahedra>(channel, m0, m1, m2, delta)) continue;
      const double density =
          delta / (t.rules.omega_rad_ps[m0] * t.rules.omega_rad_ps[m1] * t.rules.omega_rad_ps[m2]);
      const double squared = elements ? t.squared_element(channel, m0, m1, m2) : 0.0;
      const bool normal = t.is_normal(channel, m0, m1, m2);
      for (int temperature = 0; temperature < t.n_temperatures; ++temperature) {
        const double w = density * t.occupations(channel, temperature, m1, m2);
        out[layout.rate(temperature)] += w * squared;
        if (normal) out[layout.normal(temperature)] += w * squared;
        out[layout.square(temperature)] += w * squared * w * squared;
        out[layout.weighted_phase_space(temperature)] += w;
      }
      out[layout.phase_space()] += delta;
      out[layout.six_count()] += 6.0;
      out[layout.evaluations()] += elements ? 1.0 : 0.0;
    }
  }
};

/// Finds all processes and draws each with probability p = min(1, n·max_T u/Σu), where
/// u = |Bose factor| δ. The index is (row·2 + channel)·chunks + chunk of q', with rows counted from
/// `first_row` on.
///
/// The weight W = u/(ωω'ω'') would prefer slow partners, whose |V|² ∝ ωω'ω'' is small. With u the
/// terms of the sum are nearly equal.
template <bool kTetrahedra>
struct SampleThinned3 {
  SampleTables3 tables;
  std::int64_t first_row;
  std::uint64_t seed;
  double draws;              ///< n; 0 draws nothing and sums the weights
  const double* weight_sum;  ///< [rows][2][n_temperatures] Σu
  int chunks;
  double* sums;  ///< [rows][2][chunks][ThinnedLayout]

  QUASI_HD double drawn(std::int64_t sum, Channel3 channel, double delta, std::int64_t m0,
                        std::int64_t m1, std::int64_t m2) const {
    if (!(draws > 0.0)) return 0.0;
    double share = 0.0;
    for (int temperature = 0; temperature < tables.n_temperatures; ++temperature) {
      const double all = weight_sum[sum * tables.n_temperatures + temperature];
      const double u = std::fabs(delta * tables.occupations(channel, temperature, m1, m2));
      if (all > 0.0 && u / all > share) share = u / all;
    }
    const double p = draws * share < 1.0 ? draws * share : 1.0;
    const double u =
        Philox::at(static_cast<std::uint32_t>(m0), static_cast<std::uint32_t>(m1),
                   static_cast<std::uint32_t>(m2), channel == Channel3::kAbsorption ? 8u : 9u,
                   static_cast<std::uint32_t>(seed),
                   static_cast<std::uint32_t>(seed >> 32) ^ 0x80000000u)
            .unit();
    return u < p ? p : 0.0;
  }

  QUASI_HD void operator()(std::int64_t index) const {
    const SampleTables3& t = tables;
    const ThinnedLayout layout{t.n_temperatures};
    double* out = sums + index * layout.size();
    for (int i = 0; i < layout.size(); ++i) out[i] = 0.0;
    const std::int64_t chunk = index % chunks;
    const std::int64_t sum = index / chunks;
    const Channel3 channel = SampleTables3::channel(sum % kChannels3);
    const std::int64_t m0 = t.mode_of_row(first_row + sum / kChannels3);
    if (!t.rules.active(m0)) return;
    const std::int64_t nq = t.mesh.size();
    const auto add = [&](int slot, double value) { out[slot] += value; };
    for (std::int64_t q1 = nq * chunk / chunks; q1 < nq * (chunk + 1) / chunks; ++q1) {
      const std::int64_t q2 = t.mesh.add(m0 / t.nb, q1, static_cast<int>(channel));
      for (std::int64_t m1 = q1 * t.nb; m1 < (q1 + 1) * t.nb; ++m1)
        for (std::int64_t m2 = q2 * t.nb; m2 < (q2 + 1) * t.nb; ++m2) {
          double delta;
          if (!t.template find<kTetrahedra>(channel, m0, m1, m2, delta)) continue;
          const double density = delta / (t.rules.omega_rad_ps[m0] * t.rules.omega_rad_ps[m1] *
                                          t.rules.omega_rad_ps[m2]);
          const double p = drawn(sum, channel, delta, m0, m1, m2);
          const double squared = p > 0.0 ? t.squared_element(channel, m0, m1, m2) : 0.0;
          const bool normal = t.is_normal(channel, m0, m1, m2);
          for (int temperature = 0; temperature < t.n_temperatures; ++temperature) {
            const double occupation = t.occupations(channel, temperature, m1, m2);
            add_thinned_at(layout, temperature,
                           {.probability = p,
                            .weighted_phase_space = density * occupation,
                            .draw_weight = delta * std::fabs(occupation),
                            .squared = squared,
                            .normal = normal,
                            .weights_only = !(draws > 0.0)},
                           add);
          }
          add(layout.phase_space(), delta);
          add(layout.six_count(), 6.0);
          add(layout.evaluations(), p > 0.0 ? 1.0 : 0.0);
        }
    }
  }
};

}  // namespace quasi::thermal
