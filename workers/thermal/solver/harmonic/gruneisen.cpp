#include "workers/thermal/solver/harmonic/gruneisen.hpp"

#include <cmath>
#include <complex>
#include <map>

#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

/// ∂D/∂(linear strain) for each lattice vector of the second atom, [nb][nb] in (rad/ps)².
using ShellByCell = std::map<Index3, std::vector<double>>;

ShellByCell strained_shells(const Transport& t, const SparseForceConstants& third) {
  const int nb = t.modes.n_branches;
  const double unit = t.options.constants().gruneisen_unit;
  ShellByCell shells;
  for (std::int64_t block = 0; block < third.n_blocks(); ++block) {
    const int* atom = &third.atom[static_cast<std::size_t>(block * 3)];
    const int* cell = &third.cell[static_cast<std::size_t>(block * 6)];
    const double* tensor = &third.tensor[static_cast<std::size_t>(block * 27)];
    auto& shell = shells[{cell[0], cell[1], cell[2]}];
    shell.resize(static_cast<std::size_t>(nb * nb), 0.0);
    const Vec3 r_nm = t.crystal.cartesian_nm(t.crystal.position[atom[2]]) +
                      t.crystal.lattice_vector_nm({cell[3], cell[4], cell[5]});
    const double scale =
        10.0 * unit /
        std::sqrt(t.crystal.mass_amu[atom[0]] * t.crystal.mass_amu[atom[1]]);  // nm → Å
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b)
        for (int c = 0; c < 3; ++c)
          shell[(3 * atom[0] + a) * nb + 3 * atom[1] + b] +=
              scale * tensor[9 * a + 3 * b + c] * r_nm[c];
  }
  return shells;
}

}  // namespace

std::vector<double> gruneisen_parameters(const Transport& t, const SparseForceConstants& third) {
  const int nb = t.modes.n_branches;
  const ShellByCell shells = strained_shells(t, third);
  std::vector<double> result(static_cast<std::size_t>(t.n_rows()), 0.0);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < t.symmetry.n_irreducible(); ++i) {
    const std::int64_t point = t.symmetry.irreducible[i];
    int c[3];
    t.symmetry.mesh.coordinates(point, c);
    std::vector<std::complex<double>> change(static_cast<std::size_t>(nb * nb), 0.0);
    for (const auto& [cell, shell] : shells) {
      double turns = 0.0;
      for (int d = 0; d < 3; ++d)
        turns += static_cast<double>(c[d]) / t.symmetry.mesh.n[d] * cell[d];
      const std::complex<double> phase =
          std::polar(1.0, 2.0 * units::kPi * (turns - std::round(turns)));
      for (std::size_t e = 0; e < change.size(); ++e) change[e] += phase * shell[e];
    }
    for (int s = 0; s < nb; ++s) {
      const std::int64_t mode = point * nb + s;
      if (!t.modes.active(mode, t.options.omega_max_rad_ps)) continue;
      const std::complex<double>* e = &t.modes.eigenvector[static_cast<std::size_t>(mode * nb)];
      double sum = 0.0;
      for (int a = 0; a < nb; ++a)
        for (int b = 0; b < nb; ++b)
          sum += (std::conj(e[a]) * change[static_cast<std::size_t>(a * nb + b)] * e[b]).real();
      const double omega = t.modes.omega_rad_ps[mode];
      result[static_cast<std::size_t>(i * nb + s)] = -sum / (6.0 * omega * omega);
    }
  }
  if (t.options.harmonic.average_degenerate)
    average_over_subspaces(t.modes, t.symmetry.irreducible, 1, result.data());
  return result;
}

double mean_gruneisen(const Transport& t, const std::vector<double>& gruneisen,
                      double temperature_k) {
  double weighted = 0.0;
  double capacity = 0.0;
  for (std::int64_t row = 0; row < t.n_rows(); ++row) {
    const std::int64_t mode = t.mode_of_row(row);
    if (!t.modes.active(mode, t.options.omega_max_rad_ps)) continue;
    const double c = t.symmetry.multiplicity[row / t.modes.n_branches] *
                     heat_capacity_kb(t.modes.omega_rad_ps[mode], temperature_k,
                                      t.options.constants().hbar_over_kb_k_ps());
    weighted += c * gruneisen[static_cast<std::size_t>(row)];
    capacity += c;
  }
  return capacity > 0.0 ? weighted / capacity : 0.0;
}

}  // namespace quasi::thermal
