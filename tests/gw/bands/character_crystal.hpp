#pragma once

// Begin here: the built-in crystal that the tests of bands by character share.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "workers/gw/solver/bands/band_character.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw::test {

/// A quantity of bands at irreducible points of the grid: [band][irreducible k].
using Table = std::vector<std::vector<double>>;

/// A built-in crystal with 14 bands on an n × n × n grid, and its states at any k.
struct CharacterCrystal {
  EmpiricalCrystal crystal;
  std::unique_ptr<GwKernels> kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  MeanField field;
  StatesAt states;

  explicit CharacterCrystal(const std::string& name, int n, double cutoff_ry = 6.0)
      : CharacterCrystal(crystal_on_grid(name, n, cutoff_ry)) {}
  explicit CharacterCrystal(EmpiricalCrystal c)
      : crystal(std::move(c)),
        field(empirical_mean_field(crystal, *kernels, silent)),
        states(empirical_states(crystal, field.crystal(), *kernels)) {}

  static EmpiricalCrystal crystal_on_grid(const std::string& name, int n, double cutoff_ry) {
    EmpiricalCrystal c;
    c.name = name;
    c.wavefunction_cutoff_ry = cutoff_ry;
    c.k_grid = {n, n, n};
    c.bands = 14;
    c.by_velocity = true;
    return c;
  }

  /// The largest window of at most `limit` bands that cuts no multiplet of the grid. Jobs choose
  /// their windows by this rule.
  int window(int limit) const { return whole_band_counts(field.waves, 5, limit).back(); }

  /// Mean-field energies in eV.
  Table energies(int n_bands) const {
    Table e(static_cast<std::size_t>(n_bands), std::vector<double>(field.waves.k.size()));
    for (int b = 0; b < n_bands; ++b)
      for (int ik = 0; ik < field.waves.n_k(); ++ik)
        e[static_cast<std::size_t>(b)][static_cast<std::size_t>(ik)] =
            field.waves.energy(0, ik, b) * kRydberg_ev;
    return e;
  }

  /// Bands along a path with corrections (eV) by the character of states, which `states_on_path`
  /// computes.
  CharacterBands along(const Table& correction, const BandPath& path,
                       const StatesAt& states_on_path) {
    const int n = static_cast<int>(correction.size());
    return bands_by_character(field, {0, 0, n, energies(n), correction}, path, states_on_path,
                              silent);
  }
};

}  // namespace quasi::gw::test
