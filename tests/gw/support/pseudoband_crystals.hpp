#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "workers/gw/kernels/hamiltonian/hamiltonian_operator.hpp"
#include "workers/gw/model/empirical_crystal.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/filtered_pseudobands.hpp"
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
inline MeanField loaded(const std::string& crystal, double cutoff_ry, int bands,
                        const char* solver) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  const Deck deck = parse_deck("[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncrystal = \"" +
                                   crystal + "\"\ncutoff_ry = " + std::to_string(cutoff_ry) +
                                   "\nbands = " + std::to_string(bands) + "\nsolver = \"" + solver +
                                   "\"\n[epsilon]\ncutoff_ry = 3.0\n[pseudobands]\nvectors = 1\n",
                               {}, "test", ".");
  return load_mean_field(deck.mean_field, demand_of(deck), *kernels, silent);
}
/// Returns the number of plane waves of such a crystal at Γ.
inline int plane_waves(const std::string& crystal, double cutoff_ry) {
  return static_cast<int>(loaded(crystal, cutoff_ry, 30, "dense").waves.waves[0].g.size());
}

/// Makes pseudobands with every plane wave as a vector, whose sum has no noise. `plan` gets as many
/// vectors.
inline Wavefunctions of_every_plane_wave(const MeanField& lowest, PseudobandPlan& plan,
                                         PseudobandUse use) {
  const KPointWaves& at = lowest.waves.waves[0];
  const std::size_t n = at.g.size(), kept = static_cast<std::size_t>(plan.kept);
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
