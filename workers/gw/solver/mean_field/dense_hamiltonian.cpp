#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/backend/team/blas_threads.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/brillouin_zone.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/mean_field/gauge.hpp"
#include "workers/gw/solver/screening/coulomb/mini_zone.hpp"
#include "workers/gw/solver/screening/long_wave.hpp"

namespace quasi::gw {
namespace {

int projector_k_index(const Projectors& p, const Vec3& k) {
  for (std::size_t i = 0; i < p.k.size(); ++i) {
    const Vec3 d = p.k[i] - k;
    if (std::abs(d[0]) + std::abs(d[1]) + std::abs(d[2]) < 1e-6) return static_cast<int>(i);
  }
  throw InvalidInput("VKB has no projectors for the k-point (" + std::to_string(k[0]) + ", " +
                     std::to_string(k[1]) + ", " + std::to_string(k[2]) + ") of WFN");
}

/// Kinetic energy and local potential at k on the plane waves `g`.
std::vector<Cplx> local_hamiltonian(const Crystal& crystal, const Vec3& k,
                                    const std::vector<IVec3>& g, const PlaneWaveField& potential,
                                    int spin) {
  const std::size_t n = g.size();
  const GIndex field_index(potential.header.g);
  const auto& v = potential.values[static_cast<std::size_t>(
      std::min<int>(spin, static_cast<int>(potential.values.size()) - 1))];
  std::vector<Cplx> h(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const std::int32_t at = field_index.find(g[i] - g[j]);
      if (at >= 0) h[i * n + j] = v[static_cast<std::size_t>(at)];
    }
  for (std::size_t i = 0; i < n; ++i) {
    const Vec3 p = k + to_real(g[i]);
    h[i * n + i] += metric_dot(crystal.bdot, p, p);
  }
  return h;
}

/// H += Σ_p β_p(G) right_p(G').
void add_projectors(const ProjectorProducts& projectors, std::size_t n, std::vector<Cplx>& h) {
  const auto& [beta, right] = projectors;
  const Cplx one{1.0, 0.0};
  const auto edge = static_cast<int>(n);
  if (beta.empty()) return;
  const ThreadedBlas threads(8.0 * static_cast<double>(beta.size()) * static_cast<double>(n));
  cblas_zgemm(CblasRowMajor, CblasTrans, CblasNoTrans, edge, edge,
              static_cast<int>(beta.size() / n), &one, beta.data(), edge, right.data(), edge, &one,
              h.data(), edge);
}

std::vector<Cplx> conjugate(std::vector<Cplx> values) {
  for (Cplx& value : values) value = std::conj(value);
  return values;
}

/// Finds the n_bands lowest eigenstates at one k of WFN in the gauge of fix_gauge().
LowestStates states_of_point(const Wavefunctions& waves, int k_index, int spin, int n_bands,
                             const FileHamiltonian& hamiltonian, GwKernels& kernels) {
  const auto& [potential, projectors, eigensolver] = hamiltonian;
  const auto& g = waves.waves[static_cast<std::size_t>(k_index)].g;
  const auto n = static_cast<std::int64_t>(g.size());
  if (n < n_bands)
    throw InvalidInput(std::to_string(n_bands) + " bands are wanted but k-point " +
                       std::to_string(k_index + 1) + " has only " + std::to_string(n) +
                       " plane waves");
  if (eigensolver.method == Eigensolver::kOperator)
    return operator_states(hamiltonian_parts(waves, k_index, spin, potential, projectors), g,
                           n_bands, eigensolver, kernels.hamiltonian());
  LowestStates states;
  const auto h = dense_hamiltonian(waves, k_index, spin, potential, projectors);
  states.energy_ry.resize(static_cast<std::size_t>(n_bands));
  states.coefficients.resize(static_cast<std::size_t>(n_bands * n));
  kernels.dense().eigen_hermitian(view<const Cplx>(h, n, n),
                                  view<double>(states.energy_ry, n_bands),
                                  view<Cplx>(states.coefficients, n_bands, n));
  fix_gauge(g, states.energy_ry, kDegenerateStates_ry, states.coefficients);
  return states;
}

/// Compares the eigenvalues of H at one k with those of WFN.
/// @throws InvalidInput if one differs by more than 1e-4 Ry
void require_file_energies(const Wavefunctions& waves, int spin, int ik,
                           const std::vector<double>& values) {
  const int n_bands = static_cast<int>(values.size());
  for (int band = 0; band < std::min(waves.n_bands, n_bands); ++band)
    if (std::abs(values[static_cast<std::size_t>(band)] - waves.energy(spin, ik, band)) > 1e-4)
      throw InvalidInput("the Hamiltonian of VSC and VKB has the eigenvalue " +
                         std::to_string(values[static_cast<std::size_t>(band)]) + " Ry for band " +
                         std::to_string(band + 1) + " at k-point " + std::to_string(ik + 1) +
                         ", WFN has " + std::to_string(waves.energy(spin, ik, band)) +
                         "; are meanfield.vsc and meanfield.vxc exchanged?");
}

}  // namespace

ProjectorProducts projectors_of_point(const Wavefunctions& waves, int k_index, int spin,
                                      const Projectors& projectors) {
  const auto& g = waves.waves[static_cast<std::size_t>(k_index)].g;
  const std::size_t n = g.size();
  const int pk = projector_k_index(projectors, waves.k[static_cast<std::size_t>(k_index)]);
  const auto& list = projectors.g[static_cast<std::size_t>(pk)];
  const GIndex projector_index(list);
  const auto n_proj = static_cast<std::size_t>(projectors.n_projectors);
  std::vector<Cplx> beta(n_proj * n);
  const Cplx* from = projectors.beta[static_cast<std::size_t>(pk)].data() +
                     static_cast<std::size_t>(spin) * n_proj * list.size();
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t at = projector_index.find(g[i]);
    if (at < 0)
      throw InvalidInput("VKB lacks a plane wave of k-point " + std::to_string(k_index + 1) +
                         " of WFN");
    for (std::size_t p = 0; p < n_proj; ++p)
      beta[p * n + i] = from[p * list.size() + static_cast<std::size_t>(at)];
  }
  std::vector<Cplx> right = apply_d(projectors, conjugate(beta), n, spin);
  return {std::move(beta), std::move(right)};
}

ProjectorProducts projectors_at(const Crystal& crystal, const Vec3& k, const std::vector<IVec3>& g,
                                int spin, const RadialProjectors& projectors) {
  std::vector<Vec3> points;
  for (const IVec3& v : g)
    points.push_back(to_cartesian(crystal.bvec, crystal.blat_per_bohr, k + to_real(v)));
  std::vector<Cplx> beta = projectors.at(points);
  std::vector<Cplx> right = projectors.apply_d(conjugate(beta), g.size(), spin);
  return {std::move(beta), std::move(right)};
}

std::vector<Cplx> dense_hamiltonian(const Wavefunctions& waves, int k_index, int spin,
                                    const PlaneWaveField& potential, const Projectors& projectors) {
  const auto ik = static_cast<std::size_t>(k_index);
  const auto& g = waves.waves[ik].g;
  std::vector<Cplx> h = local_hamiltonian(waves.header.crystal, waves.k[ik], g, potential, spin);
  add_projectors(projectors_of_point(waves, k_index, spin, projectors), g.size(), h);
  return h;
}

std::vector<Cplx> dense_hamiltonian_at(const Crystal& crystal, const Vec3& k,
                                       const std::vector<IVec3>& g, int spin,
                                       const PlaneWaveField& potential,
                                       const RadialProjectors& projectors) {
  std::vector<Cplx> h = local_hamiltonian(crystal, k, g, potential, spin);
  add_projectors(projectors_at(crystal, k, g, spin, projectors), g.size(), h);
  return h;
}

DenseStates dense_states_at(const ContinuousHamiltonian& hamiltonian, const Vec3& k, int spin,
                            int n_bands, GwKernels& kernels) {
  const auto& [crystal, cutoff_ry, potential, projectors, eigensolver] = hamiltonian;
  DenseStates states{
      .sphere = make_g_sphere(crystal.bdot, k, cutoff_ry), .energy_ry = {}, .coefficients = {}};
  const std::int64_t n = states.sphere.size();
  if (n < n_bands)
    throw InvalidInput(std::to_string(n_bands) + " bands are wanted but the cut-off of " +
                       std::to_string(cutoff_ry) + " Ry gives only " + std::to_string(n) +
                       " plane waves at (" + std::to_string(k[0]) + ", " + std::to_string(k[1]) +
                       ", " + std::to_string(k[2]) + ")");
  if (eigensolver.method == Eigensolver::kOperator) {
    LowestStates lowest = operator_states(
        hamiltonian_parts_at(crystal, k, states.sphere.g, spin, potential, projectors),
        states.sphere.g, n_bands, eigensolver, kernels.hamiltonian());
    states.energy_ry = std::move(lowest.energy_ry);
    states.coefficients = std::move(lowest.coefficients);
    states.largest_residual_ry = lowest.largest_residual_ry;
    return states;
  }
  const auto h = dense_hamiltonian_at(crystal, k, states.sphere.g, spin, potential, projectors);
  states.energy_ry.resize(static_cast<std::size_t>(n_bands));
  states.coefficients.resize(static_cast<std::size_t>(n_bands * n));
  kernels.dense().eigen_hermitian(view<const Cplx>(h, n, n),
                                  view<double>(states.energy_ry, n_bands),
                                  view<Cplx>(states.coefficients, n_bands, n));
  fix_gauge(states.sphere.g, states.energy_ry, kDegenerateStates_ry, states.coefficients);
  return states;
}

Wavefunctions shifted_dense_states(const Wavefunctions& waves, const Vec3& q0,
                                   const ContinuousHamiltonian& hamiltonian, GwKernels& kernels,
                                   Progress& progress) {
  Wavefunctions w;
  w.header = waves.header;
  w.wavefunction_cutoff_ry = waves.wavefunction_cutoff_ry;
  w.k_grid = waves.k_grid;
  for (int i = 0; i < 3; ++i) w.k_shift[i] = q0[i] * waves.k_grid[i];
  const Crystal& crystal = waves.header.crystal;
  std::vector<SymmetryOperation> group;
  for (const int s : little_group(crystal.symmetries, q0, true))
    group.push_back(crystal.symmetries[static_cast<std::size_t>(s)]);
  irreducible_points(waves.k_grid, q0, group, &w.k, &w.weight);
  const int n_spins = waves.header.n_spins;
  for (int spin = 0; spin < n_spins; ++spin)
    w.n_bands =
        std::max(w.n_bands, waves.last_occupied[static_cast<std::size_t>(spin * waves.n_k())] + 1);
  w.waves.resize(w.k.size());
  double residual_ry = 0.0;
  for (int spin = 0; spin < n_spins; ++spin) {
    const int n_v = waves.last_occupied[static_cast<std::size_t>(spin * waves.n_k())];
    for (std::size_t ik = 0; ik < w.k.size(); ++ik) {
      DenseStates states = dense_states_at(hamiltonian, w.k[ik], spin, w.n_bands, kernels);
      residual_ry = std::max(residual_ry, states.largest_residual_ry);
      w.waves[ik].g = std::move(states.sphere.g);
      w.waves[ik].coefficients.push_back(std::move(states.coefficients));
      w.energy_ry.insert(w.energy_ry.end(), states.energy_ry.begin(), states.energy_ry.end());
      for (int band = 0; band < w.n_bands; ++band) w.occupation.push_back(band < n_v ? 1.0 : 0.0);
      w.first_occupied.push_back(1);
      w.last_occupied.push_back(n_v);
      progress.report(
          "states at k + q0",
          static_cast<std::int64_t>(static_cast<std::size_t>(spin) * w.k.size() + ik) + 1,
          n_spins * static_cast<std::int64_t>(w.k.size()));
    }
  }
  log_residual(hamiltonian.eigensolver, residual_ry, progress);
  return w;
}

void replace_by_dense_states(Wavefunctions& waves, int n_bands, const FileHamiltonian& hamiltonian,
                             GwKernels& kernels, Progress& progress) {
  require_same_crystal(waves.header, "WFN", hamiltonian.potential.header, "VSC");
  require_same_crystal(waves.header, "WFN", hamiltonian.projectors.header, "VKB");
  const int n_spins = waves.header.n_spins;
  std::vector<double> energies, occupations;
  double residual_ry = 0.0;
  for (int spin = 0; spin < n_spins; ++spin)
    for (int ik = 0; ik < waves.n_k(); ++ik) {
      LowestStates found = states_of_point(waves, ik, spin, n_bands, hamiltonian, kernels);
      require_file_energies(waves, spin, ik, found.energy_ry);
      residual_ry = std::max(residual_ry, found.largest_residual_ry);
      energies.insert(energies.end(), found.energy_ry.begin(), found.energy_ry.end());
      for (int band = 0; band < n_bands; ++band)
        occupations.push_back(
            band < waves.last_occupied[static_cast<std::size_t>(spin * waves.n_k() + ik)] ? 1.0
                                                                                          : 0.0);
      waves.waves[static_cast<std::size_t>(ik)].coefficients[static_cast<std::size_t>(spin)] =
          std::move(found.coefficients);
      progress.report("diagonalisation", std::int64_t{1} * spin * waves.n_k() + ik + 1,
                      std::int64_t{1} * n_spins * waves.n_k());
    }
  log_residual(hamiltonian.eigensolver, residual_ry, progress);
  waves.energy_ry = std::move(energies);
  waves.occupation = std::move(occupations);
  waves.n_bands = n_bands;
}

}  // namespace quasi::gw
