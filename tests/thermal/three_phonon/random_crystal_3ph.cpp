#include "tests/thermal/three_phonon/random_crystal_3ph.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace quasi::thermal::test {
namespace {

using Vector = std::vector<std::complex<double>>;

/// Rows of a random unitary matrix, by Gram–Schmidt.
std::vector<Vector> random_unitary(int n, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::vector<Vector> rows;
  for (int s = 0; s < n; ++s) {
    Vector row(static_cast<std::size_t>(n));
    for (auto& x : row) x = {normal(random), normal(random)};
    for (const Vector& other : rows) {
      std::complex<double> overlap = 0.0;
      for (int i = 0; i < n; ++i) overlap += std::conj(other[i]) * row[i];
      for (int i = 0; i < n; ++i) row[i] -= overlap * other[i];
    }
    double norm = 0.0;
    for (const auto& x : row) norm += std::norm(x);
    for (auto& x : row) x /= std::sqrt(norm);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::unique_ptr<RandomCrystal3> random_crystal_3ph(int n_atoms, Index3 mesh, unsigned seed,
                                                   Broadening broadening) {
  auto c = std::make_unique<RandomCrystal3>();
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  std::uniform_int_distribution<int> atom(0, n_atoms - 1), cell(-2, 2), zone(0, 1);
  const int nb = 3 * n_atoms;
  const int n_q = mesh[0] * mesh[1] * mesh[2];
  c->oracle.mesh = mesh;
  c->oracle.n_atoms = n_atoms;
  for (int a = 0; a < n_atoms; ++a) c->oracle.mass_amu.push_back(20.0 + 5.0 * a);

  SparseForceConstants& fc3 = c->problem.fc3;
  for (int cluster = 0; cluster < 4; ++cluster) {
    oracle::Block3ph seed_block;
    for (int leg = 0; leg < 3; ++leg) {
      seed_block.atom[leg] = atom(random);
      for (int& x : seed_block.cell[leg]) x = cell(random);
    }
    for (double& x : seed_block.tensor) x = 30.0 * unit(random);
    std::array<int, 3> order{0, 1, 2};
    do {
      oracle::Block3ph block;
      for (int leg = 0; leg < 3; ++leg) {
        block.atom[leg] = seed_block.atom[order[leg]];
        for (int x = 0; x < 3; ++x)
          block.cell[leg][x] = seed_block.cell[order[leg]][x] - seed_block.cell[order[0]][x];
      }
      for (int element = 0; element < 27; ++element) {
        const int axis[3] = {element / 9, element / 3 % 3, element % 3};
        int from[3];
        for (int leg = 0; leg < 3; ++leg) from[order[leg]] = axis[leg];
        block.tensor[element] = seed_block.tensor[9 * from[0] + 3 * from[1] + from[2]];
      }
      c->oracle.block.push_back(block);
      fc3.atom.insert(fc3.atom.end(), block.atom.begin(), block.atom.end());
      for (int leg = 1; leg < 3; ++leg)
        fc3.cell.insert(fc3.cell.end(), block.cell[leg].begin(), block.cell[leg].end());
      fc3.tensor.insert(fc3.tensor.end(), block.tensor.begin(), block.tensor.end());
    } while (std::next_permutation(order.begin(), order.end()));
  }

  Modes& modes = c->modes;
  modes.n_q = n_q;
  modes.n_branches = nb;
  std::uniform_real_distribution<double> spread(-8.0, 8.0);
  for (int q = 0; q < n_q; ++q) {
    std::vector<double> omega(static_cast<std::size_t>(nb));
    for (double& w : omega) w = 30.0 + 28.0 * unit(random);
    std::sort(omega.begin(), omega.end());
    if (q == 0) omega[0] = 0.0;         // a mode that takes no part
    if (q == n_q - 1) omega[0] = -3.0;  // an imaginary one
    const auto e = random_unitary(nb, random);
    c->oracle.omega.push_back(omega);
    c->oracle.e.push_back(e);
    std::vector<std::array<double, 3>> p(static_cast<std::size_t>(nb));
    for (auto& x : p)
      for (double& y : x) y = spread(random);
    c->oracle.p.push_back(p);
    c->oracle.zone.push_back({zone(random), zone(random), zone(random)});
    modes.omega_rad_ps.insert(modes.omega_rad_ps.end(), omega.begin(), omega.end());
    for (int s = 0; s < nb; ++s) {
      modes.eigenvector.insert(modes.eigenvector.end(), e[s].begin(), e[s].end());
      modes.spread_rad_ps.insert(modes.spread_rad_ps.end(), p[s].begin(), p[s].end());
    }
  }
  modes.velocity_km_s = modes.spread_rad_ps;
  ThreePhononProblem& problem = c->problem;
  std::copy(mesh.begin(), mesh.end(), problem.mesh.n);
  problem.n_atoms = n_atoms;
  problem.modes = &modes;
  problem.mass_amu = c->oracle.mass_amu;
  for (int q = 0; q < n_q; q += 1 + static_cast<int>(random() % 3)) problem.rows.push_back(q);
  for (const auto& z : c->oracle.zone) problem.first_zone.push_back(z);
  problem.broadening = broadening;
  problem.scale_broad = 0.9;
  problem.cut = 1.7;
  problem.delta_norm = 1.25;
  problem.rate_constant = 4.64343678e8;
  problem.hbar_over_kb_k_ps = 7.638232582257738;
  return c;
}

}  // namespace quasi::thermal::test
