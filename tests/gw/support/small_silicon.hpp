#pragma once

#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"
#include "workers/gw/solver/screening/epsilon.hpp"
#include "workers/gw/solver/self_energy/quasiparticle.hpp"
#include "workers/gw/solver/self_energy/sigma_matrix.hpp"

namespace quasi::gw::test {

/// Built-in silicon on a coarse grid with low cut-offs: a whole Σ in a tenth of a second. Laws hold
/// on any grid.
struct SmallSilicon {
  std::unique_ptr<GwKernels> kernels = make_gw_kernels(find_device("cpu"));
  MeanField field;
  CoulombInteraction coulomb;
  std::vector<DielectricMatrix> epsilon;

  explicit SmallSilicon(EmpiricalCrystal crystal = small_crystal())
      : field(make(crystal)),
        coulomb(field.crystal(), field.waves.k_grid, {}),
        epsilon(screening(field)) {}

  static EmpiricalCrystal small_crystal() {
    EmpiricalCrystal crystal;
    crystal.wavefunction_cutoff_ry = 6.0;
    crystal.k_grid = {2, 2, 2};
    crystal.bands = 18;
    return crystal;
  }
  MeanField make(const EmpiricalCrystal& crystal) {
    SilentProgress silent;
    return empirical_mean_field(crystal, *kernels, silent);
  }
  std::vector<DielectricMatrix> screening(const MeanField& of,
                                          const std::vector<Cplx>& frequencies = {Cplx{}}) {
    SilentProgress silent;
    std::vector<DielectricMatrix> made;
    const EpsilonOptions options{
        .epsilon_cutoff_ry = 3.0,
        .bands = band_count_without_split(of.waves, of.waves.n_bands, 5, "bands"),
        .frequencies_ry = frequencies};
    for (const Vec3& q : screening_points(of))
      made.push_back(dielectric_matrix(of, q, options, coulomb, *kernels, silent));
    return made;
  }
  SigmaOptions options(int band_max = 8) const {
    SigmaOptions o{.bands = band_count_without_split(field.waves, field.waves.n_bands, 5, "bands"),
                   .bare_cutoff_ry = 6.0,
                   .screened_cutoff_ry = 3.0,
                   .band_min = 1,
                   .band_max = band_max};
    for (int ik = 0; ik < field.waves.n_k(); ++ik) o.kpoints.push_back(ik);
    o.band_max = band_count_without_split(field.waves, band_max, 1, "band_max", o.kpoints);
    o.slope = true;
    return o;
  }
  std::vector<SelfEnergyAtK> sigma(const SigmaOptions& o) { return sigma(field, epsilon, o); }
  std::vector<SelfEnergyAtK> sigma(const MeanField& of, const std::vector<DielectricMatrix>& eps,
                                   const SigmaOptions& o) {
    SilentProgress silent;
    return self_energy(of, eps, o, {coulomb, *kernels, silent});
  }
  std::vector<SigmaMatrixAtK> matrix(const SigmaOptions& o, const SigmaMatrixOptions& m) {
    SilentProgress silent;
    return self_energy_matrix(field, epsilon, o, m, {coulomb, *kernels, silent}, nullptr);
  }
  /// V_xc is undefined here. A toy: Σ(E_mf) of each multiplet, less 0.3 eV for empty states, so
  /// that the first turn opens the gap by 0.3 eV; diagonal matrices in eV.
  std::vector<std::vector<Cplx>> toy_vxc(const SigmaOptions& o) {
    const auto list = quasiparticles(field, sigma(o), {}, o, {Derivative::kAnalytic, 0.0}, false);
    const auto n = static_cast<std::size_t>(o.band_max - o.band_min + 1);
    std::vector<std::vector<Cplx>> vxc(list.size() / n, std::vector<Cplx>(n * n));
    for (std::size_t i = 0; i < list.size(); ++i)
      vxc[i / n][(i % n) * (n + 1)] =
          list[i].sigma_ev - (list[i].band > field.n_occupied ? 0.3 : 0.0);
    return vxc;
  }
};

inline std::vector<std::vector<double>> diagonal_of(
    const std::vector<std::vector<Cplx>>& matrices) {
  std::vector<std::vector<double>> diagonal;
  for (const auto& m : matrices) {
    const auto n = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(m.size()))));
    diagonal.emplace_back();
    for (std::size_t l = 0; l < n; ++l) diagonal.back().push_back(m[l * (n + 1)].real());
  }
  return diagonal;
}

/// A unitary d × d matrix by Gram–Schmidt from seeded numbers; rows are orthonormal.
inline std::vector<Cplx> random_unitary(std::size_t d, std::uint32_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<Cplx> u(d * d);
  for (Cplx& value : u) {
    const double re = normal(generator);
    value = {re, normal(generator)};
  }
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      Cplx overlap;
      for (std::size_t x = 0; x < d; ++x) overlap += std::conj(u[j * d + x]) * u[i * d + x];
      for (std::size_t x = 0; x < d; ++x) u[i * d + x] -= overlap * u[j * d + x];
    }
    double norm = 0.0;
    for (std::size_t x = 0; x < d; ++x) norm += std::norm(u[i * d + x]);
    for (std::size_t x = 0; x < d; ++x) u[i * d + x] /= std::sqrt(norm);
  }
  return u;
}

/// Rotates the members of every multiplet of [0, n_bands) at one k by a random unitary matrix;
/// returns the whole rotation, rows: new states in the old ones.
inline std::vector<Cplx> rotate_multiplets(MeanField& field, int ik, int n_bands,
                                           std::uint32_t seed) {
  const auto n = static_cast<std::size_t>(n_bands);
  std::vector<Cplx> whole(n * n);
  KPointWaves& waves = field.waves.waves[static_cast<std::size_t>(ik)];
  const std::size_t n_pw = waves.g.size() * static_cast<std::size_t>(field.n_spinor());
  for (const auto& [begin, end] : multiplets(field.waves, 0, ik, 0, n_bands)) {
    const auto d = static_cast<std::size_t>(end - begin), first = static_cast<std::size_t>(begin);
    const auto u = random_unitary(d, seed + static_cast<std::uint32_t>(begin));
    std::vector<Cplx> rotated(d * n_pw);
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = 0; j < d; ++j) {
        whole[(first + i) * n + first + j] = u[i * d + j];
        for (std::size_t x = 0; x < n_pw; ++x)
          rotated[i * n_pw + x] += u[i * d + j] * waves.coefficients[0][(first + j) * n_pw + x];
      }
    std::copy(rotated.begin(), rotated.end(),
              waves.coefficients[0].begin() + static_cast<std::ptrdiff_t>(first * n_pw));
  }
  return whole;
}

}  // namespace quasi::gw::test
