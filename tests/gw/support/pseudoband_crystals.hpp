#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/gw/support/cpu_hamiltonians.hpp"
#include "workers/gw/kernels/hamiltonian/hamiltonian_operator.hpp"
#include "workers/gw/model/empirical_crystal.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/filtered_pseudobands.hpp"
#include "workers/gw/solver/mean_field/random_factors.hpp"
#include "workers/gw/solver/self_energy/quasiparticle.hpp"

namespace quasi::gw::test {

/// Returns eight atoms of a built-in crystal at Γ, by default with most states of 5 Ry.
inline EmpiricalCrystal eight_atoms(const std::string& name = "silicon", double cutoff_ry = 5.0,
                                    int bands = 170) {
  EmpiricalCrystal crystal;
  crystal.name = name;
  crystal.cubic_cell = true;
  crystal.wavefunction_cutoff_ry = cutoff_ry;
  crystal.bands = bands;
  return crystal;
}

/// Holds mean and standard error of independent values.
struct Statistics {
  explicit Statistics(const std::vector<double>& values) {
    const auto n = static_cast<double>(values.size());
    for (const double value : values) mean += value / n;
    double sum = 0.0;
    for (const double value : values) sum += (value - mean) * (value - mean);
    error = std::sqrt(sum / (n * (n - 1.0)));
  }
  double mean = 0.0, error = 0.0;
};

/// Returns Σ of the valence top and the conduction bottom, averaged over multiplets, eV.
inline std::pair<double, double> edges(const MeanField& field,
                                       const std::vector<SelfEnergyAtK>& sums,
                                       const SigmaOptions& options) {
  const auto list = quasiparticles(field, sums, {}, options, {Derivative::kAnalytic, 0.0}, false);
  const auto top = static_cast<std::size_t>(field.n_occupied - options.band_min);
  return {list.at(top).sigma_ev, list.at(top + 1).sigma_ev};
}

/// Returns the mean field of a built-in crystal by one of the eigensolvers.
/// @param more  further lines of [meanfield]
inline MeanField loaded(const std::string& crystal, double cutoff_ry, int bands, const char* solver,
                        const std::string& more = "") {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  const Deck deck =
      parse_deck("[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncrystal = \"" + crystal +
                     "\"\ncutoff_ry = " + std::to_string(cutoff_ry) +
                     "\nbands = " + std::to_string(bands) + "\nsolver = \"" + solver + "\"\n" +
                     more + "[epsilon]\ncutoff_ry = 3.0\n[pseudobands]\nvectors = 1\n",
                 {}, "test", ".");
  return load_mean_field(deck.mean_field, demand_of(deck), *kernels, silent);
}
/// Returns the number of plane waves of such a crystal at Γ.
inline int plane_waves(const std::string& crystal, double cutoff_ry) {
  return static_cast<int>(loaded(crystal, cutoff_ry, 30, "dense").waves.waves[0].g.size());
}

/// Applies Σ_n p_k(E_n)|n⟩⟨n| to (1 − P) θ with all states n of one k-point, for each
/// window and vector.
inline std::vector<Cplx> by_states(const Wavefunctions& all, const PseudobandPlan& plan, bool real,
                                   int ik) {
  const KPointWaves& at = all.waves[static_cast<std::size_t>(ik)];
  const std::size_t n = at.g.size() * static_cast<std::size_t>(all.header.n_spinor),
                    n_vectors = plan.chosen.size();
  const std::vector<Cplx>& states = at.coefficients[0];
  const RandomFactors factors(plan.seed, 0, 0, ik, real);
  std::vector<Cplx> made(plan.filter->size() * n_vectors * n);
  for (std::size_t r = 0; r < n_vectors; ++r)
    for (int band = plan.kept; band < all.n_bands; ++band) {
      const Cplx* const state = states.data() + static_cast<std::size_t>(band) * n;
      Cplx overlap;
      for (std::size_t i = 0; i < n; ++i)
        overlap += std::conj(state[i]) * factors.at(plan.chosen[r], static_cast<int>(i)) /
                   std::sqrt(static_cast<double>(n_vectors));
      for (std::size_t k = 0; k < plan.filter->size(); ++k) {
        const Cplx factor = plan.filter->value(k, all.energy(0, ik, band)) * overlap;
        Cplx* const xi = made.data() + (k * n_vectors + r) * n;
        for (std::size_t i = 0; i < n; ++i) xi[i] += factor * state[i];
      }
    }
  return made;
}

/// Compares the vectors of the recursion with those of all states. @return the largest difference
inline double difference_from_states(const MeanField& lowest, const Wavefunctions& all, bool real) {
  const PseudobandPlan plan = plan_filtered_pseudobands(lowest, {.vectors = 3, .seed = 5}, true);
  const Wavefunctions made =
      filtered_pseudobands(lowest, plan, PseudobandUse::kScreening, cpu_hamiltonians());
  double largest = 0.0;
  for (int ik = 0; ik < all.n_k(); ++ik) {
    const auto at = static_cast<std::size_t>(ik);
    EXPECT_EQ(all.waves[at].g, lowest.waves.waves[at].g);
    const std::vector<Cplx> expected = by_states(all, plan, real, ik);
    const std::vector<Cplx>& found = made.waves[at].coefficients[0];
    const std::size_t first = found.size() - expected.size();
    EXPECT_EQ(first * static_cast<std::size_t>(plan.bands() - plan.kept),
              expected.size() * static_cast<std::size_t>(plan.kept));
    for (std::size_t i = 0; i < expected.size(); ++i)
      largest = std::max(largest, std::abs(found[first + i] - expected[i]));
  }
  return largest;
}

/// Makes pseudobands with every plane wave of every component as a vector, whose sum has no noise.
/// `plan` gets as many vectors.
inline Wavefunctions of_every_plane_wave(const MeanField& lowest, PseudobandPlan& plan,
                                         PseudobandUse use) {
  const KPointWaves& at = lowest.waves.waves[0];
  const std::size_t n = at.g.size() * static_cast<std::size_t>(lowest.n_spinor()),
                    kept = static_cast<std::size_t>(plan.kept);
  const std::vector<Cplx>& states = at.coefficients[0];
  plan.chosen.resize(n);
  std::vector<Cplx> x(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i * n + i] = 1.0;
    for (std::size_t band = 0; band < kept; ++band)
      for (std::size_t j = 0; j < n; ++j)
        x[i * n + j] -= std::conj(states[band * n + i]) * states[band * n + j];
  }
  const WindowPolynomials& filter = *plan.filter;
  std::vector<Cplx> vectors((filter.size() + 1) * n * n);
  HamiltonianOperator(lowest.hamiltonian(lowest.waves, 0, 0))
      .expand({filter.centre_ry(), filter.half_ry(),
               view<const double>(filter.coefficients(), filter.size() + 1, filter.degree() + 1)},
              view<const Cplx>(x, n, n), view<Cplx>(vectors, filter.size() + 1, n, n));
  vectors.resize(filter.size() * n * n);
  Wavefunctions made = without_states(lowest.waves, plan.bands());
  set_energies(lowest.waves, plan, use, made);
  std::vector<Cplx> rows(states.begin(), states.begin() + static_cast<std::ptrdiff_t>(kept * n));
  rows.insert(rows.end(), vectors.begin(), vectors.end());
  made.waves.push_back({.g = at.g, .coefficients = {std::move(rows)}});
  return made;
}

}  // namespace quasi::gw::test
