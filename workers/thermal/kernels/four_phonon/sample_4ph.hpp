#pragma once

#include <cstdint>

#include "workers/backend/philox.hpp"
#include "workers/thermal/kernels/four_phonon/tables_4ph.hpp"
#include "workers/thermal/kernels/sample_layout.hpp"

/// Sampling of four-phonon sums (docs/theory/thermal.md 10) [guo2024]. Random words are keyed by
/// the seed and the modes of a draw. Any number of threads and devices therefore gives one and the
/// same sample.
namespace quasi::thermal {

/// Returns |V|² of one tuple from the constants contracted with λ. It combines steps 2 and 3 of
/// ContractionPlan4ph for a process that shares λ' with no other.
QUASI_HD inline double lone_squared_element(const Tables4ph& t, Channel4ph channel,
                                            std::int64_t row, std::int32_t mode1,
                                            std::int32_t mode2, std::int32_t mode3) {
  const int nb = t.n_branches;
  const Complex<double>* e1 = t.eigenvector + static_cast<std::int64_t>(mode1) * nb;
  const Complex<double>* e2 = t.eigenvector + static_cast<std::int64_t>(mode2) * nb;
  const Complex<double>* e3 = t.eigenvector + static_cast<std::int64_t>(mode3) * nb;
  const Complex<double>* phase1 = t.phase + static_cast<std::int64_t>(mode1 / nb) * t.n_cells;
  const Complex<double>* phase2 = t.phase + static_cast<std::int64_t>(mode2 / nb) * t.n_cells;
  const Complex<double>* contracted = t.contracted + row * t.n_triples * 27;
  Complex<double> v;
  for (int pair = 0; pair < t.n_pairs; ++pair) {
    Complex<double> a[9];
    for (int triple = t.pair_begin[pair]; triple < t.pair_begin[pair + 1]; ++triple)
      for (int b = 0; b < 3; ++b) {
        Complex<double> site = phase1[t.triple_cell[triple]] * e1[3 * t.triple_atom[triple] + b];
        if (sign_second(channel) < 0) site = conj(site);
        const Complex<double>* c = contracted + 27 * static_cast<std::int64_t>(triple) + 9 * b;
        for (int x = 0; x < 9; ++x) a[x] += site * c[x];
      }
    for (int b = 0; b < 3; ++b) {
      Complex<double> site = phase2[t.pair_cell[pair]] * e2[3 * t.pair_third[pair] + b];
      if (sign_third(channel) < 0) site = conj(site);
      for (int c = 0; c < 3; ++c)
        v += site * (a[3 * b + c] * conj(e3[3 * t.pair_fourth[pair] + c]));
    }
  }
  return squared_of_sum_4ph(t, v);
}

/// Returns the number of modes in the degenerate set of `mode`, whose first mode is t.set[mode].
QUASI_HD inline std::int32_t set_size_4ph(const Tables4ph& t, std::int32_t mode) {
  const std::int32_t first = t.set[mode];
  const std::int32_t end_of_point = (first / t.n_branches + 1) * t.n_branches;
  std::int32_t end = first + 1;
  while (end < end_of_point && t.set[end] == first) ++end;
  return end - first;
}

/// Returns the mean of |V|² over the degenerate sets of the four phonons of a tuple. The mean does
/// not depend on the choice of eigenvectors inside the sets, and neither do the tuple's W and
/// multiplicity summed over the sets. A sample of means therefore has a mean and a variance that no
/// choice of eigenvectors changes. @param row    row of the first phonon; the rows of its point are
/// neighbours @param count  set to the number of matrix elements that were evaluated
QUASI_HD inline double mean_squared_element_4ph(const Tables4ph& t, std::int64_t row,
                                                const Quartet4ph& quartet, double* count) {
  const std::int32_t first[4] = {t.set[quartet.mode0], t.set[quartet.mode1], t.set[quartet.mode2],
                                 t.set[quartet.mode3]};
  const std::int32_t size[4] = {set_size_4ph(t, quartet.mode0), set_size_4ph(t, quartet.mode1),
                                set_size_4ph(t, quartet.mode2), set_size_4ph(t, quartet.mode3)};
  double sum = 0.0;
  for (std::int32_t a = 0; a < size[0]; ++a)
    for (std::int32_t b = 0; b < size[1]; ++b)
      for (std::int32_t c = 0; c < size[2]; ++c)
        for (std::int32_t d = 0; d < size[3]; ++d)
          sum += lone_squared_element(t, quartet.channel, row + first[0] - quartet.mode0 + a,
                                      first[1] + b, first[2] + c, first[3] + d);
  *count = static_cast<double>(size[0]) * size[1] * size[2] * size[3];
  return sum / *count;
}

using UniformLayout4ph = UniformLayout;
using ThinnedLayout4ph = ThinnedLayout;
using AddChunks4ph = AddChunks;

/// Estimates as FourPhonon does [guo2024]. Tuples are drawn uniformly from the box of indices,
/// which holds Nq² nb³ of them for each mode. index = (row·3 + channel)·chunks + chunk. The draws
/// of a chunk are added in their order.
struct SampleUniform4ph {
  Tables4ph tables;
  std::uint64_t seed;
  std::int64_t first_draw, last_draw;
  int chunks;
  bool elements;  ///< false: phase spaces only
  double* sums;   ///< [rows][3][chunks][UniformLayout4ph]

  QUASI_HD static std::int64_t box(const Tables4ph& t) {
    const std::int64_t nb = t.n_branches;
    return t.mesh.size() * t.mesh.size() * nb * nb * nb;
  }

  QUASI_HD void operator()(std::int64_t index) const {
    const Tables4ph& t = tables;
    const UniformLayout4ph layout{t.n_temperatures};
    const int nb = t.n_branches;
    double* out = sums + index * layout.size();
    for (int i = 0; i < layout.size(); ++i) out[i] = 0.0;
    const auto chunk = static_cast<int>(index % chunks);
    const auto channel = static_cast<Channel4ph>(index / chunks % kChannels4ph);
    const std::int64_t row = index / chunks / kChannels4ph;
    const std::int64_t draws = last_draw - first_draw;
    const std::int32_t mode0 = t.point[row / nb] * nb + static_cast<std::int32_t>(row % nb);
    if (!(t.omega[mode0] > 0.0)) return;
    const std::int64_t all = box(t);
    for (std::int64_t draw = first_draw + draws * chunk / chunks;
         draw < first_draw + draws * (chunk + 1) / chunks; ++draw) {
      std::int64_t at =
          Philox::at(static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32),
                     static_cast<std::uint32_t>(mode0),
                     static_cast<std::uint32_t>(index / chunks % kChannels4ph),
                     static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32))
              .below(all);
      const auto s3 = static_cast<int>(at % nb);
      at /= nb;
      const auto mode2 = static_cast<std::int32_t>(at % t.n_modes());
      const auto mode1 = static_cast<std::int32_t>(at / t.n_modes());
      // The pair (λ'', λ''') of +- and -- has one order only.
      const std::int32_t sum = t.mesh.add(mode0 / nb, mode1 / nb, sign_second(channel));
      const std::int32_t mode3 = t.mesh.add(sum, mode2 / nb, sign_third(channel)) * nb + s3;
      if (!(t.omega[mode1] > 0.0) || !(t.omega[mode2] > 0.0) || !(t.omega[mode3] > 0.0)) continue;
      if (sign_third(channel) < 0 && mode2 > mode3) continue;
      const Process4ph process = test_candidate_4ph(t, channel, mode0, mode1, mode2, mode3);
      if (!(process.multiplicity > 0.0)) continue;
      const double delta = process.multiplicity * delta_4ph_ps(t.rules, process);
      const double omega[4] = {t.omega[mode0], t.omega[mode1], t.omega[mode2], t.omega[mode3]};
      const double density = delta * inverse_omega_product_4ph(t.rules, omega);
      double evaluated = 0.0;
      const double squared =
          elements
              ? mean_squared_element_4ph(t, row, {channel, mode0, mode1, mode2, mode3}, &evaluated)
              : 0.0;
      const bool normal = is_normal_4ph(t, channel, mode0 / nb, mode1 / nb, mode2 / nb, mode3 / nb);
      for (int temperature = 0; temperature < t.n_temperatures; ++temperature) {
        const double* n = t.occupation + temperature * t.n_modes();
        const double w = density * bose_factor_4ph(channel, n[mode1], n[mode2], n[mode3]);
        out[layout.rate(temperature)] += w * squared;
        if (normal) out[layout.normal(temperature)] += w * squared;
        out[layout.square(temperature)] += w * squared * w * squared;
        out[layout.weighted_phase_space(temperature)] += w;
      }
      out[layout.phase_space()] += delta;
      out[layout.six_count()] += std::rint(6.0 * process.multiplicity);
      out[layout.evaluations()] += evaluated;
    }
  }
};

/// Draws a process with a probability that grows with its exact weight, p = min(1, n·max_T u/Σu),
/// where u = m |B| δ and B is the Bose factor.
///
/// With u the terms of the sum are nearly equal. W = u/(ωω'ω''ω''') would prefer slow partners,
/// whose |V|² is small in proportion.
struct Thinning4ph {
  std::uint64_t seed = 0;
  double draws = 0.0;  ///< n, expected for each row, channel and temperature; 0: none, only
                       ///< the weights are summed
  const double* weight_sum = nullptr;  ///< [rows][3][n_temperatures] Σu of all processes

  /// Draws a process of `row` or leaves it out. @param delta_ps  m δ of the process @return  p, or
  /// 0 if the process is not drawn
  QUASI_HD double draw(const Tables4ph& t, std::int64_t row, const Quartet4ph& quartet,
                       double delta_ps) const {
    if (!(draws > 0.0)) return 0.0;
    const Channel4ph channel = quartet.channel;
    double share = 0.0;
    for (int temperature = 0; temperature < t.n_temperatures; ++temperature) {
      const double* n = t.occupation + temperature * t.n_modes();
      const double all =
          weight_sum[(row * kChannels4ph + static_cast<int>(channel)) * t.n_temperatures +
                     temperature];
      const double u = delta_ps * std::fabs(bose_factor_4ph(channel, n[quartet.mode1],
                                                            n[quartet.mode2], n[quartet.mode3]));
      if (all > 0.0 && u / all > share) share = u / all;
    }
    const double p = draws * share < 1.0 ? draws * share : 1.0;
    const double u =
        Philox::at(static_cast<std::uint32_t>(quartet.mode0),
                   static_cast<std::uint32_t>(quartet.mode1),
                   static_cast<std::uint32_t>(quartet.mode2),
                   static_cast<std::uint32_t>(quartet.mode3), static_cast<std::uint32_t>(seed),
                   static_cast<std::uint32_t>(seed >> 32) ^
                       (1u + static_cast<std::uint32_t>(channel)) << 28)
            .unit();
    return u < p ? p : 0.0;
  }
};

/// A process of a thinned sample, drawn or not.
struct ThinnedProcess4ph {
  Channel4ph channel;
  std::int32_t mode1, mode2, mode3;  ///< numbers of the partners
  double multiplicity;               ///< m
  double delta_ps;                   ///< m δ
  double density;                    ///< m δ/(ωω'ω''ω''')
  bool normal;                       ///< the process is not an Umklapp process
  double probability;                ///< p of Thinning4ph::draw; 0: it was not drawn
  double squared;                    ///< |V|² of a drawn process
  bool weights_only;  ///< Σu over all processes is requested instead of Σ u/p over drawn ones
};

/// Adds a process to the sums of a sample (ThinnedLayout4ph) through add(slot, value).
template <typename Add>
QUASI_HD inline void add_thinned(const Tables4ph& t, const ThinnedProcess4ph& process,
                                 const Add& add) {
  const ThinnedLayout4ph layout{t.n_temperatures};
  for (int temperature = 0; temperature < t.n_temperatures; ++temperature) {
    const double* n = t.occupation + temperature * t.n_modes();
    const double bose =
        bose_factor_4ph(process.channel, n[process.mode1], n[process.mode2], n[process.mode3]);
    add_thinned_at(layout, temperature,
                   {.probability = process.probability,
                    .weighted_phase_space = process.density * bose,
                    .draw_weight = process.delta_ps * std::fabs(bose),
                    .squared = process.squared,
                    .normal = process.normal,
                    .weights_only = process.weights_only},
                   add);
  }
  add(layout.phase_space(), process.delta_ps);
  add(layout.six_count(), std::rint(6.0 * process.multiplicity));
  add(layout.evaluations(), process.probability > 0.0 ? 1.0 : 0.0);
}

}  // namespace quasi::thermal
