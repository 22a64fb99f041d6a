#include "tests/thermal/four_phonon/random_crystal_4ph.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/physics/physical_constants.hpp"
#include "workers/thermal/solver/four_phonon/precedence_4ph.hpp"

namespace quasi::thermal::test {

namespace {

/// A cluster of four atoms with a random tensor.
oracle::Block4ph random_cluster(int n_atoms, std::mt19937& random) {
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  std::uniform_int_distribution<int> atom(0, n_atoms - 1), cell(-2, 2);
  oracle::Block4ph cluster;
  for (int leg = 0; leg < 4; ++leg) {
    cluster.atom[leg] = atom(random);
    for (int& x : cluster.cell[leg]) x = cell(random);
  }
  for (double& x : cluster.tensor) x = 50.0 * unit(random);
  return cluster;
}

/// The cluster with its legs in another order, the first of them in the cell at the origin.
oracle::Block4ph permuted(const oracle::Block4ph& cluster, const std::array<int, 4>& order) {
  oracle::Block4ph block;
  for (int leg = 0; leg < 4; ++leg) {
    block.atom[leg] = cluster.atom[order[leg]];
    for (int x = 0; x < 3; ++x)
      block.cell[leg][x] = cluster.cell[order[leg]][x] - cluster.cell[order[0]][x];
  }
  for (int element = 0; element < 81; ++element) {
    const int axis[4] = {element / 27, element / 9 % 3, element / 3 % 3, element % 3};
    int from[4];
    for (int leg = 0; leg < 4; ++leg) from[order[leg]] = axis[leg];
    block.tensor[element] = cluster.tensor[27 * from[0] + 9 * from[1] + 3 * from[2] + from[3]];
  }
  return block;
}

void append(const oracle::Block4ph& block, SparseForceConstants& constants) {
  for (int leg = 0; leg < 4; ++leg) {
    constants.atom.push_back(block.atom[leg]);
    if (leg > 0)
      constants.cell.insert(constants.cell.end(), block.cell[leg].begin(), block.cell[leg].end());
  }
  constants.tensor.insert(constants.tensor.end(), block.tensor.begin(), block.tensor.end());
}

/// Two random clusters, each in all 24 orders with its tensor permuted. Derivatives commute, and
/// the sums over unordered pairs rely on it.
SparseForceConstants random_constants(int n_atoms, std::mt19937& random, oracle::Crystal4ph& o) {
  SparseForceConstants constants{.order = 4};
  for (int b = 0; b < 2; ++b) {
    const oracle::Block4ph cluster = random_cluster(n_atoms, random);
    std::array<int, 4> order{0, 1, 2, 3};
    do {
      o.block.push_back(permuted(cluster, order));
      append(o.block.back(), constants);
    } while (std::next_permutation(order.begin(), order.end()));
  }
  return constants;
}

/// Random frequencies, spreads and eigenvectors. Pairs of branches pass for degenerate.
void add_random_modes(std::mt19937& random, RandomCrystal4& c) {
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  Problem4ph& p = c.problem;
  const int nb = p.n_branches;
  for (int q = 0; q < p.mesh.size(); ++q) {
    c.oracle.omega.emplace_back();
    c.oracle.e.emplace_back();
    c.oracle.p.emplace_back();
    c.oracle.set.emplace_back();
    for (int s = 0; s < nb; ++s) {
      const double omega = q == 0 && s < 3 ? 0.0 : 30.0 + 25.0 * unit(random);
      c.oracle.omega.back().push_back(omega);
      p.omega_rad_ps.push_back(omega);
      const int set = s / 2 * 2;
      c.oracle.set.back().push_back(set);
      p.set.push_back(q * nb + set);
      std::array<double, 3> spread;
      for (double& x : spread) x = 3.0 * unit(random);
      c.oracle.p.back().push_back(spread);
      p.spread_rad_ps.insert(p.spread_rad_ps.end(), spread.begin(), spread.end());
      c.oracle.e.back().emplace_back();
      for (int x = 0; x < nb; ++x) {
        const std::complex<double> e(unit(random), unit(random));
        c.oracle.e.back().back().push_back(e);
        p.eigenvector.push_back(e);
      }
    }
  }
  for (const double temperature : p.temperatures_k)
    for (const double omega : p.omega_rad_ps)
      p.occupation.push_back(
          omega > 0.0 ? bose_einstein(omega, temperature, kCodata2018.hbar_over_kb_k_ps()) : 0.0);
}

/// Gives every point some image of it as its place in the first zone.
void choose_zone_images(RandomCrystal4& c) {
  Problem4ph& p = c.problem;
  for (int q = 0; q < p.mesh.size(); ++q) {
    int coordinates[3];
    p.mesh.coordinates(q, coordinates);
    c.oracle.zone.emplace_back();
    for (int x = 0; x < 3; ++x) {
      int& image = c.oracle.zone.back()[static_cast<std::size_t>(x)];
      image = coordinates[x] - (q + x) % 2 * p.mesh.n[x];
      p.zone.push_back(static_cast<std::int16_t>(image));
    }
  }
}

}  // namespace

RandomCrystal4 random_crystal_4ph(int n_atoms, std::array<int, 3> mesh, unsigned seed,
                                  const Rules4ph& rules) {
  std::mt19937 random(seed);
  RandomCrystal4 c;
  c.oracle.mesh = mesh;
  c.oracle.n_atoms = n_atoms;
  Crystal crystal;
  crystal.position.resize(static_cast<std::size_t>(n_atoms));
  for (int a = 0; a < n_atoms; ++a) crystal.mass_amu.push_back(20.0 + 5.0 * a);
  c.oracle.mass_amu = crystal.mass_amu;
  const SparseForceConstants constants = random_constants(n_atoms, random, c.oracle);
  Problem4ph& p = c.problem;
  p.mesh.n[0] = mesh[0], p.mesh.n[1] = mesh[1], p.mesh.n[2] = mesh[2];
  p.n_branches = 3 * n_atoms;
  p.rules = rules;
  p.temperatures_k.assign(std::begin(kRandomTemperatures_k), std::end(kRandomTemperatures_k));
  add_random_modes(random, c);
  choose_zone_images(c);
  const auto nq = static_cast<std::size_t>(p.mesh.size());
  p.point = {0, static_cast<std::int32_t>(nq - 1)};
  p.partner_weight.assign(p.point.size() * nq, 1);
  p.plan = plan_contraction_4ph(crystal, constants);
  p.phase = phase_table_4ph(p.mesh, p.plan);
  return c;
}

void take_all_points(RandomCrystal4& crystal, bool exchange) {
  Problem4ph& p = crystal.problem;
  const auto nq = static_cast<std::size_t>(p.mesh.size());
  p.point.resize(nq);
  std::iota(p.point.begin(), p.point.end(), 0);
  p.partner_weight.assign(nq * nq, 1);
  p.star = exchange ? p.point : std::vector<std::int32_t>{};
  p.star_size.assign(exchange ? nq : 0, 1);
  if (exchange) order_precedence_4ph(p);
}

void impose_time_reversal(RandomCrystal4& crystal) {
  Problem4ph& p = crystal.problem;
  oracle::Crystal4ph& o = crystal.oracle;
  const auto nb = static_cast<std::size_t>(p.n_branches);
  const std::size_t n_modes = p.omega_rad_ps.size();
  for (std::int32_t point = 0; point < p.mesh.size(); ++point) {
    const auto q = static_cast<std::size_t>(point),
               minus = static_cast<std::size_t>(p.mesh.minus(point));
    if (minus < q) continue;
    o.omega[minus] = o.omega[q];
    for (std::size_t s = 0; s < nb; ++s) {
      for (std::size_t x = 0; x < nb; ++x) {
        const std::complex<double> e = minus == q ? o.e[q][s][x].real() : o.e[q][s][x];
        o.e[q][s][x] = p.eigenvector[(q * nb + s) * nb + x] = e;
        o.e[minus][s][x] = p.eigenvector[(minus * nb + s) * nb + x] = std::conj(e);
      }
      for (std::size_t d = 0; d < 3; ++d) {
        const double spread = minus == q ? 0.0 : o.p[q][s][d];
        o.p[q][s][d] = p.spread_rad_ps[3 * (q * nb + s) + d] = spread;
        o.p[minus][s][d] = p.spread_rad_ps[3 * (minus * nb + s) + d] = -spread;
      }
      p.omega_rad_ps[minus * nb + s] = p.omega_rad_ps[q * nb + s];
      for (std::size_t t = 0; t < p.temperatures_k.size(); ++t)
        p.occupation[t * n_modes + minus * nb + s] = p.occupation[t * n_modes + q * nb + s];
    }
    for (std::size_t d = 0; d < 3; ++d)
      if (q == 0 || minus != q) {
        p.zone[3 * minus + d] = static_cast<std::int16_t>(q == 0 ? 0 : -p.zone[3 * q + d]);
        o.zone[minus][d] = p.zone[3 * minus + d];
      }
  }
}

}  // namespace quasi::thermal::test
