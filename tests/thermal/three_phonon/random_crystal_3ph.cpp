#include "tests/thermal/three_phonon/random_crystal_3ph.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace quasi::thermal::test {
namespace {

using Vector = std::vector<std::complex<double>>;

/// Returns the rows of a random unitary matrix, made by Gram–Schmidt orthogonalisation.
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

/// A block of random force constants between random atoms of random cells.
oracle::Block3ph random_block(int n_atoms, std::mt19937& random) {
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  std::uniform_int_distribution<int> atom(0, n_atoms - 1), cell(-2, 2);
  oracle::Block3ph block;
  for (int leg = 0; leg < 3; ++leg) {
    block.atom[leg] = atom(random);
    for (int& x : block.cell[leg]) x = cell(random);
  }
  for (double& x : block.tensor) x = 30.0 * unit(random);
  return block;
}

/// Reorders the legs of a block and moves its new first atom to the cell at the origin.
oracle::Block3ph permuted(const oracle::Block3ph& from, const std::array<int, 3>& order) {
  oracle::Block3ph block;
  for (int leg = 0; leg < 3; ++leg) {
    block.atom[leg] = from.atom[order[leg]];
    for (int x = 0; x < 3; ++x)
      block.cell[leg][x] = from.cell[order[leg]][x] - from.cell[order[0]][x];
  }
  for (int element = 0; element < 27; ++element) {
    const int axis[3] = {element / 9, element / 3 % 3, element % 3};
    int place[3];
    for (int leg = 0; leg < 3; ++leg) place[order[leg]] = axis[leg];
    block.tensor[element] = from.tensor[9 * place[0] + 3 * place[1] + place[2]];
  }
  return block;
}

/// Adds four random blocks in all six orders of their legs.
void add_force_constants(RandomCrystal3& c, std::mt19937& random) {
  SparseForceConstants& fc3 = c.problem.fc3;
  for (int cluster = 0; cluster < 4; ++cluster) {
    const oracle::Block3ph seed_block = random_block(c.oracle.n_atoms, random);
    std::array<int, 3> order{0, 1, 2};
    do {
      const oracle::Block3ph block = permuted(seed_block, order);
      c.oracle.block.push_back(block);
      fc3.atom.insert(fc3.atom.end(), block.atom.begin(), block.atom.end());
      for (int leg = 1; leg < 3; ++leg)
        fc3.cell.insert(fc3.cell.end(), block.cell[leg].begin(), block.cell[leg].end());
      fc3.tensor.insert(fc3.tensor.end(), block.tensor.begin(), block.tensor.end());
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

/// Adds random frequencies, eigenvectors, spreads and first-zone images of every mesh point.
void add_modes(RandomCrystal3& c, std::mt19937& random) {
  std::uniform_real_distribution<double> unit(-1.0, 1.0), spread(-8.0, 8.0);
  std::uniform_int_distribution<int> zone(0, 1);
  Modes& modes = c.modes;
  const int nb = 3 * c.oracle.n_atoms;
  const int n_q = c.oracle.mesh[0] * c.oracle.mesh[1] * c.oracle.mesh[2];
  modes.n_q = n_q;
  modes.n_branches = nb;
  for (int q = 0; q < n_q; ++q) {
    std::vector<double> omega(static_cast<std::size_t>(nb));
    for (double& w : omega) w = 30.0 + 28.0 * unit(random);
    std::sort(omega.begin(), omega.end());
    if (q == 0) omega[0] = 0.0;         // inactive: at rest
    if (q == n_q - 1) omega[0] = -3.0;  // inactive: imaginary
    const auto e = random_unitary(nb, random);
    c.oracle.omega.push_back(omega);
    c.oracle.e.push_back(e);
    std::vector<std::array<double, 3>> p(static_cast<std::size_t>(nb));
    for (auto& x : p)
      for (double& y : x) y = spread(random);
    c.oracle.p.push_back(p);
    c.oracle.zone.push_back({zone(random), zone(random), zone(random)});
    modes.omega_rad_ps.insert(modes.omega_rad_ps.end(), omega.begin(), omega.end());
    for (int s = 0; s < nb; ++s) {
      modes.eigenvector.insert(modes.eigenvector.end(), e[s].begin(), e[s].end());
      modes.spread_rad_ps.insert(modes.spread_rad_ps.end(), p[s].begin(), p[s].end());
    }
  }
  modes.velocity_km_s = modes.spread_rad_ps;
}

}  // namespace

std::unique_ptr<RandomCrystal3> random_crystal_3ph(int n_atoms, Index3 mesh, unsigned seed,
                                                   Broadening broadening) {
  auto c = std::make_unique<RandomCrystal3>();
  std::mt19937 random(seed);
  c->oracle.mesh = mesh;
  c->oracle.n_atoms = n_atoms;
  for (int a = 0; a < n_atoms; ++a) c->oracle.mass_amu.push_back(20.0 + 5.0 * a);
  add_force_constants(*c, random);
  add_modes(*c, random);

  ThreePhononProblem& problem = c->problem;
  std::copy(mesh.begin(), mesh.end(), problem.mesh.n);
  problem.n_atoms = n_atoms;
  problem.modes = &c->modes;
  problem.mass_amu = c->oracle.mass_amu;
  for (int q = 0; q < c->modes.n_q; q += 1 + static_cast<int>(random() % 3))
    problem.rows.push_back(q);
  for (const auto& z : c->oracle.zone) problem.first_zone.push_back(z);
  problem.broadening = broadening;
  c->oracle.steps = {{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {-1, -1, -1}}},
                     {{{1, 0, 0}, {0, 1, 0}, {0, 0, -1}, {-1, -1, 1}}}};
  problem.tetrahedra = MeshTetrahedra(c->oracle.steps);
  problem.scale_broad = 0.9;
  problem.cut = 1.7;
  problem.delta_norm = 1.25;
  problem.rate_constant = 4.64343678e8;
  problem.hbar_over_kb_k_ps = 7.638232582257738;
  return c;
}

}  // namespace quasi::thermal::test
