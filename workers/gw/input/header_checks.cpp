#include "workers/gw/input/header_checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"

namespace quasi::gw {
namespace {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

[[noreturn]] void reject(const std::string& file, const std::string& sentence) {
  throw InvalidInput("'" + file + "': " + sentence);
}

bool finite(double value) { return std::isfinite(value); }
bool finite(const Cplx& value) {
  return std::isfinite(value.real()) && std::isfinite(value.imag());
}

}  // namespace

void require_in_range(std::int64_t value, std::int64_t min, std::int64_t max,
                      const std::string& what, const std::string& file) {
  if (value < min || value > max)
    reject(file, what + " is " + std::to_string(value) + "; it must lie in [" +
                     std::to_string(min) + ", " + std::to_string(max) +
                     "]. Is the file corrupted, or written by a big-endian machine?");
}

template <typename Values>
void require_finite(const Values& values, const std::string& what, const std::string& file) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!finite(values[i]))
      reject(file, what + " number " + std::to_string(i + 1) +
                       " is not a finite number; rerun the mean field");
}
template void require_finite(const std::vector<double>&, const std::string&, const std::string&);
template void require_finite(const std::vector<Cplx>&, const std::string&, const std::string&);

void check_g_list(const std::vector<IVec3>& g, const IVec3& fft_grid, const std::string& of,
                  const std::string& file) {
  for (std::size_t i = 0; i < g.size(); ++i)
    for (int axis = 0; axis < 3; ++axis)
      if (2 * std::abs(std::int64_t{g[i][axis]}) > fft_grid[axis] + 1)
        reject(file, "G-vector " + std::to_string(i + 1) + of + " has component " +
                         std::to_string(g[i][axis]) + " along axis " + std::to_string(axis + 1) +
                         ", outside the FFT grid of " + std::to_string(fft_grid[axis]));
  std::vector<IVec3> sorted = g;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    reject(file, "G-vector " +
                     std::to_string(std::find(g.begin(), g.end(), *twice) - g.begin() + 1) + of +
                     " occurs twice");
}

void check_header(const MeanFieldHeader& header, const std::string& file) {
  const Crystal& crystal = header.crystal;
  for (const Mat3* m : {&crystal.avec, &crystal.bvec, &crystal.adot, &crystal.bdot})
    for (const Vec3& row : *m)
      for (const double value : row)
        if (!finite(value)) reject(file, "the cell holds a value that is not finite");
  if (!(crystal.volume_bohr3 > 0.0) || !(crystal.alat_bohr > 0.0))
    reject(file, "cell volume " + number(crystal.volume_bohr3) + " Bohr³ and lattice parameter " +
                     number(crystal.alat_bohr) + " Bohr must be positive");
  const Mat3& a = crystal.avec;
  const double det = a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
                     a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
                     a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
  const double volume = std::abs(det) * std::pow(crystal.alat_bohr, 3);
  if (std::abs(volume - crystal.volume_bohr3) > 1e-6 * crystal.volume_bohr3)
    reject(file, "the cell volume is given as " + number(crystal.volume_bohr3) +
                     " Bohr³ but the lattice vectors span " + number(volume));
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const double metric =
          crystal.blat_per_bohr * crystal.blat_per_bohr * dot(crystal.bvec[i], crystal.bvec[j]);
      if (std::abs(metric - crystal.bdot[i][j]) > 1e-6 * std::abs(crystal.bdot[0][0]))
        reject(file, "bdot(" + std::to_string(i + 1) + "," + std::to_string(j + 1) + ") is " +
                         number(crystal.bdot[i][j]) + " but the reciprocal vectors give " +
                         number(metric));
    }
  for (int axis = 0; axis < 3; ++axis)
    require_in_range(header.fft_grid[axis], 1, 100000,
                     "FFT grid along axis " + std::to_string(axis + 1), file);
  if (!(header.density_cutoff_ry > 0.0) || !finite(header.density_cutoff_ry))
    reject(file, "the density cut-off is " + number(header.density_cutoff_ry) +
                     " Ry; it must be positive");

  if (crystal.symmetries.empty())
    reject(file, "there is no symmetry operation; at least the identity is needed");
  for (std::size_t s = 0; s < crystal.symmetries.size(); ++s) {
    const IMat3& rotation = crystal.symmetries[s].rotation;
    // Numbers of a damaged file must not overflow in the determinant.
    for (const auto& row : rotation)
      for (const int entry : row)
        require_in_range(entry, -1000, 1000,
                         "an entry of symmetry operation " + std::to_string(s + 1), file);
    if (std::abs(determinant(rotation)) != 1)
      reject(file, "symmetry operation " + std::to_string(s + 1) + " has determinant " +
                       std::to_string(determinant(rotation)) + "; it must be ±1");
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        double rotated = 0.0;
        for (int p = 0; p < 3; ++p)
          for (int q = 0; q < 3; ++q)
            rotated += rotation[p][i] * crystal.bdot[p][q] * rotation[q][j];
        if (std::abs(rotated - crystal.bdot[i][j]) > 1e-5 * std::abs(crystal.bdot[0][0]))
          reject(file, "symmetry operation " + std::to_string(s + 1) +
                           " does not preserve the reciprocal metric");
      }
    for (const double t : crystal.symmetries[s].translation)
      if (!finite(t))
        reject(file,
               "translation of symmetry operation " + std::to_string(s + 1) + " is not finite");
  }

  check_g_list(header.g, header.fft_grid, "", file);
}

namespace {

/// Checks |k + G|² of every plane wave. A list of another k reaches beyond the cut-off.
void check_spheres(const Wavefunctions& waves, const std::string& file) {
  const double limit_ry = waves.wavefunction_cutoff_ry * (1.0 + 1e-6);
  for (int ik = 0; ik < waves.n_k(); ++ik) {
    const auto& list = waves.waves[static_cast<std::size_t>(ik)].g;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Vec3 k = waves.k[static_cast<std::size_t>(ik)] + to_real(list[i]);
      const double kinetic_ry = metric_dot(waves.header.crystal.bdot, k, k);
      if (kinetic_ry > limit_ry)
        reject(file, "plane wave " + std::to_string(i + 1) + " of k-point " +
                         std::to_string(ik + 1) + " has |k+G|² = " + number(kinetic_ry) +
                         " Ry, above the cut-off of " + number(waves.wavefunction_cutoff_ry) +
                         " Ry; are k-points exchanged? Rewrite the file from the mean field");
    }
  }
}

}  // namespace

void check_wavefunctions(const Wavefunctions& waves, const std::string& file) {
  require_finite(waves.weight, "k-point weight", file);
  require_finite(waves.energy_ry, "band energy", file);
  require_finite(waves.occupation, "occupation", file);
  double total = 0.0;
  for (int ik = 0; ik < waves.n_k(); ++ik) {
    for (const double component : waves.k[static_cast<std::size_t>(ik)])
      if (!finite(component) || std::abs(component) > 100.0)
        reject(file, "k-point " + std::to_string(ik + 1) + " has component " + number(component));
    total += waves.weight[static_cast<std::size_t>(ik)];
  }
  if (std::abs(total - 1.0) > 1e-6)
    reject(file, "the k-point weights sum to " + number(total) + ", not to 1");
  for (int axis = 0; axis < 3; ++axis)
    require_in_range(waves.k_grid[axis], 0, 10000, "k-grid along axis " + std::to_string(axis + 1),
                     file);
  if (!(waves.wavefunction_cutoff_ry > 0.0) ||
      waves.wavefunction_cutoff_ry > waves.header.density_cutoff_ry * (1.0 + 1e-9))
    reject(file, "the wavefunction cut-off is " + number(waves.wavefunction_cutoff_ry) +
                     " Ry; it must be positive and not above the density cut-off of " +
                     number(waves.header.density_cutoff_ry) + " Ry");
  for (const double f : waves.occupation)
    if (f < -1e-6 || f > 1.0 + 1e-6)
      reject(file, "an occupation is " + number(f) + "; it must lie in [0, 1] (per spin)");
  for (int ik = 0; ik < waves.n_k(); ++ik)
    check_g_list(waves.waves[static_cast<std::size_t>(ik)].g, waves.header.fft_grid,
                 " of k-point " + std::to_string(ik + 1), file);
  check_spheres(waves, file);
  for (int spin = 0; spin < waves.header.n_spins; ++spin)
    for (int ik = 0; ik < waves.n_k(); ++ik) {
      require_in_range(waves.last_occupied[static_cast<std::size_t>(spin * waves.n_k() + ik)], 0,
                       waves.n_bands,
                       "highest occupied band (ifmax) at k-point " + std::to_string(ik + 1), file);
      for (int band = 1; band < waves.n_bands; ++band)
        if (waves.energy(spin, ik, band) < waves.energy(spin, ik, band - 1) - 1e-6)
          reject(file, "bands " + std::to_string(band) + " and " + std::to_string(band + 1) +
                           " at k-point " + std::to_string(ik + 1) +
                           " are not in ascending order of energy");
      const KPointWaves& wave = waves.waves[static_cast<std::size_t>(ik)];
      const auto& c = wave.coefficients[static_cast<std::size_t>(spin)];
      if (c.is_mapped()) continue;  // checked as it was read
      const std::size_t row = wave.g.size() * static_cast<std::size_t>(waves.header.n_spinor);
      for (int band = 0; band < waves.n_bands; ++band)
        check_norm({c.data() + static_cast<std::size_t>(band) * row, row}, band, ik, file);
    }
}

void check_norm(std::span<const Cplx> state, int band, int ik, const std::string& file) {
  double norm = 0.0;
  for (const Cplx& c : state) norm += std::norm(c);
  if (!(std::abs(norm - 1.0) < 1e-6))
    reject(file, "band " + std::to_string(band + 1) + " at k-point " + std::to_string(ik + 1) +
                     " has norm " + number(norm) +
                     ", not 1; ultrasoft or PAW wavefunctions cannot be used, only "
                     "norm-conserving ones");
}

void require_same_crystal(const MeanFieldHeader& a, const std::string& name_a,
                          const MeanFieldHeader& b, const std::string& name_b) {
  const auto differ = [&](const std::string& what, const std::string& x, const std::string& y) {
    throw InvalidInput(name_a + " and " + name_b + " belong to different calculations: " + what +
                       " is " + x + " in the first, " + y + " in the second");
  };
  const auto compare = [&](const std::string& what, double x, double y) {
    if (std::abs(x - y) > 1e-6 * std::max(1.0, std::abs(x))) differ(what, number(x), number(y));
  };
  compare("the cell volume (Bohr³)", a.crystal.volume_bohr3, b.crystal.volume_bohr3);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      compare("bdot(" + std::to_string(i + 1) + "," + std::to_string(j + 1) + ")",
              a.crystal.bdot[i][j], b.crystal.bdot[i][j]);
  compare("the density cut-off (Ry)", a.density_cutoff_ry, b.density_cutoff_ry);
  for (int i = 0; i < 3; ++i)
    compare("the FFT grid along axis " + std::to_string(i + 1), a.fft_grid[i], b.fft_grid[i]);
  compare("the number of spins", a.n_spins, b.n_spins);
  compare("the number of atoms", static_cast<double>(a.crystal.atoms.size()),
          static_cast<double>(b.crystal.atoms.size()));
  for (std::size_t i = 0; i < a.crystal.atoms.size(); ++i) {
    compare("the atomic number of atom " + std::to_string(i + 1), a.crystal.atoms[i].atomic_number,
            b.crystal.atoms[i].atomic_number);
    for (int j = 0; j < 3; ++j)
      compare("coordinate " + std::to_string(j + 1) + " of atom " + std::to_string(i + 1),
              a.crystal.atoms[i].position_alat[j], b.crystal.atoms[i].position_alat[j]);
  }
}

}  // namespace quasi::gw
