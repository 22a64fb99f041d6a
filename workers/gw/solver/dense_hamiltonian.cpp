#include "workers/gw/solver/dense_hamiltonian.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/gauge.hpp"

namespace quasi::gw {
namespace {

/// Σ_q D_pq conj(β_q(G)) needs the projectors of an atom together: they are grouped by species, atoms of
/// one species in file order. Returns the first projector of each atom.
std::vector<int> first_projector(const Projectors& p) {
  std::vector<int> first(p.species.size());
  int next = 0;
  for (int species = 0; species < static_cast<int>(p.projectors_of_species.size()); ++species)
    for (std::size_t atom = 0; atom < p.species.size(); ++atom)
      if (p.species[atom] == species) {
        first[atom] = next;
        next += p.projectors_of_species[static_cast<std::size_t>(species)];
      }
  return first;
}

int projector_k_index(const Projectors& p, const Vec3& k) {
  for (std::size_t i = 0; i < p.k.size(); ++i) {
    const Vec3 d = p.k[i] - k;
    if (std::abs(d[0]) + std::abs(d[1]) + std::abs(d[2]) < 1e-6) return static_cast<int>(i);
  }
  throw InvalidInput("VKB has no projectors for the k-point (" + std::to_string(k[0]) + ", " + std::to_string(k[1]) + ", " +
                     std::to_string(k[2]) + ") of WFN");
}

}  // namespace

std::vector<Cplx> dense_hamiltonian(const Wavefunctions& waves, int k_index, int spin, const PlaneWaveField& potential,
                                    const Projectors& projectors) {
  const auto& g = waves.waves[static_cast<std::size_t>(k_index)].g;
  const Vec3& k = waves.k[static_cast<std::size_t>(k_index)];
  const std::size_t n = g.size();
  const GIndex field_index(potential.header.g);
  const auto& v = potential.values[static_cast<std::size_t>(std::min<int>(spin, static_cast<int>(potential.values.size()) - 1))];
  std::vector<Cplx> h(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const std::int32_t at = field_index.find(g[i] - g[j]);
      if (at >= 0) h[i * n + j] = v[static_cast<std::size_t>(at)];
    }
  for (std::size_t i = 0; i < n; ++i) {
    const Vec3 p = k + to_real(g[i]);
    h[i * n + i] += metric_dot(waves.header.crystal.bdot, p, p);
  }
  const int pk = projector_k_index(projectors, k);
  const auto& list = projectors.g[static_cast<std::size_t>(pk)];
  const GIndex projector_index(list);
  const auto n_proj = static_cast<std::size_t>(projectors.n_projectors);
  if (n_proj == 0) return h;
  std::vector<Cplx> beta(n_proj * n), scaled(n_proj * n);
  const Cplx* from = projectors.beta[static_cast<std::size_t>(pk)].data() + static_cast<std::size_t>(spin) * n_proj * list.size();
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t at = projector_index.find(g[i]);
    if (at < 0) throw InvalidInput("VKB lacks a plane wave of k-point " + std::to_string(k_index + 1) + " of WFN");
    for (std::size_t p = 0; p < n_proj; ++p) beta[p * n + i] = from[p * list.size() + static_cast<std::size_t>(at)];
  }
  const std::vector<int> first = first_projector(projectors);
  const auto edge = static_cast<std::size_t>(projectors.max_projectors);
  for (std::size_t atom = 0; atom < first.size(); ++atom) {
    const int count = projectors.projectors_of_species[static_cast<std::size_t>(projectors.species[atom])];
    const double* d = projectors.d_ry.data() + (static_cast<std::size_t>(spin) * first.size() + atom) * edge * edge;
    for (int p = 0; p < count; ++p)
      for (int q = 0; q < count; ++q) {
        const double value = d[static_cast<std::size_t>(q) * edge + static_cast<std::size_t>(p)];
        if (value == 0.0) continue;
        const Cplx* source = beta.data() + static_cast<std::size_t>(first[atom] + q) * n;
        Cplx* target = scaled.data() + static_cast<std::size_t>(first[atom] + p) * n;
        for (std::size_t i = 0; i < n; ++i) target[i] += value * std::conj(source[i]);
      }
  }
  const Cplx one{1.0, 0.0};
  const auto edge_n = static_cast<int>(n);
  cblas_zgemm(CblasRowMajor, CblasTrans, CblasNoTrans, edge_n, edge_n, static_cast<int>(n_proj), &one, beta.data(), edge_n,
              scaled.data(), edge_n, &one, h.data(), edge_n);
  return h;
}

void replace_by_dense_states(Wavefunctions& waves, int n_bands, const PlaneWaveField& potential, const Projectors& projectors,
                             GwKernels& kernels, Progress& progress) {
  require_same_crystal(waves.header, "WFN", potential.header, "VSC");
  require_same_crystal(waves.header, "WFN", projectors.header, "VKB");
  const int n_spins = waves.header.n_spins;
  std::vector<double> energies, occupations;
  for (int spin = 0; spin < n_spins; ++spin)
    for (int ik = 0; ik < waves.n_k(); ++ik) {
      const auto& g = waves.waves[static_cast<std::size_t>(ik)].g;
      const auto n = static_cast<std::int64_t>(g.size());
      if (n < n_bands)
        throw InvalidInput(std::to_string(n_bands) + " bands are wanted but k-point " + std::to_string(ik + 1) + " has only " +
                           std::to_string(n) + " plane waves");
      const auto h = dense_hamiltonian(waves, ik, spin, potential, projectors);
      std::vector<double> values(static_cast<std::size_t>(n_bands));
      std::vector<Cplx> vectors(static_cast<std::size_t>(n_bands * n));
      kernels.eigen_hermitian(view<const Cplx>(h, n, n), view<double>(values, n_bands), view<Cplx>(vectors, n_bands, n));
      for (int band = 0; band < std::min(waves.n_bands, n_bands); ++band)
        if (std::abs(values[static_cast<std::size_t>(band)] - waves.energy(spin, ik, band)) > 1e-4)
          throw InvalidInput("the Hamiltonian of VSC and VKB has the eigenvalue " + std::to_string(values[static_cast<std::size_t>(band)]) +
                             " Ry for band " + std::to_string(band + 1) + " at k-point " + std::to_string(ik + 1) + ", WFN has " +
                             std::to_string(waves.energy(spin, ik, band)) + "; are meanfield.vsc and meanfield.vxc exchanged?");
      fix_gauge(g, values, kDegenerateStates_ry, vectors);
      energies.insert(energies.end(), values.begin(), values.end());
      for (int band = 0; band < n_bands; ++band)
        occupations.push_back(band < waves.last_occupied[static_cast<std::size_t>(spin * waves.n_k() + ik)] ? 1.0 : 0.0);
      waves.waves[static_cast<std::size_t>(ik)].coefficients[static_cast<std::size_t>(spin)] = std::move(vectors);
      progress.report("diagonalisation", std::int64_t{1} * spin * waves.n_k() + ik + 1, std::int64_t{1} * n_spins * waves.n_k());
    }
  waves.energy_ry = std::move(energies);
  waves.occupation = std::move(occupations);
  waves.n_bands = n_bands;
}

}  // namespace quasi::gw
