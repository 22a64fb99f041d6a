#include "examples/thermal/generate/rigid_ion.hpp"

#include <cmath>

namespace quasi::model {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kMassSodium_amu = 22.98977;
constexpr double kMassChlorine_amu = 35.4527;

Nilpotent length(std::span<const Nilpotent> r) {
  return sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
}

/// The second derivatives ∂α∂β of erfc(Λr)/r at d ≠ 0.
Matrix3 screened_hessian(const Vector3& d, double decay) {
  const double r = std::hypot(d[0], d[1], d[2]);
  const double gauss = 2.0 * decay / std::sqrt(kPi) * std::exp(-decay * decay * r * r);
  const double first = -std::erfc(decay * r) / (r * r) - gauss / r;
  const double second = 2.0 * std::erfc(decay * r) / (r * r * r) + 2.0 * gauss / (r * r) +
                        2.0 * decay * decay * gauss;
  Matrix3 h{};
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b)
      h[a][b] = (a == b ? first / r : 0.0) + (second - first / r) * d[a] * d[b] / (r * r);
  return h;
}

/// 2π times the inverse transpose of the rows.
Matrix3 reciprocal(const Matrix3& a) {
  Matrix3 b{};
  for (int i = 0; i < 3; ++i) {
    const Vector3 &u = a[(i + 1) % 3], &v = a[(i + 2) % 3];
    b[i] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
  }
  const double volume = a[0][0] * b[0][0] + a[0][1] * b[0][1] + a[0][2] * b[0][2];
  for (auto& row : b)
    for (double& x : row) x *= 2.0 * kPi / volume;
  return b;
}

/// The second derivatives ∂α∂β of Σ_L 1/|d+L| over a lattice without the K = 0 term; d is not on
/// the lattice.
Matrix3 coulomb_hessian(const Vector3& d, const Matrix3& lattice) {
  const Matrix3 b = reciprocal(lattice);
  const double edge = std::hypot(lattice[0][0], lattice[0][1], lattice[0][2]);
  const double volume = 8.0 * kPi * kPi * kPi /
                        std::abs(b[0][0] * (b[1][1] * b[2][2] - b[1][2] * b[2][1]) -
                                 b[0][1] * (b[1][0] * b[2][2] - b[1][2] * b[2][0]) +
                                 b[0][2] * (b[1][0] * b[2][1] - b[1][1] * b[2][0]));
  const double decay = 2.4 / edge;
  constexpr int kReach = 6;  // beyond, erfc and the Gaussian are both below 1e-17
  Matrix3 h{};
  for (int i = -kReach; i <= kReach; ++i)
    for (int j = -kReach; j <= kReach; ++j)
      for (int k = -kReach; k <= kReach; ++k) {
        Vector3 r = d, g{};
        for (int x = 0; x < 3; ++x) {
          r[x] += i * lattice[0][x] + j * lattice[1][x] + k * lattice[2][x];
          g[x] = i * b[0][x] + j * b[1][x] + k * b[2][x];
        }
        const Matrix3 near = screened_hessian(r, decay);
        const double g2 = g[0] * g[0] + g[1] * g[1] + g[2] * g[2];
        const double far = g2 == 0.0
                               ? 0.0
                               : -4.0 * kPi / volume / g2 * std::exp(-g2 / (4.0 * decay * decay)) *
                                     std::cos(g[0] * d[0] + g[1] * d[1] + g[2] * d[2]);
        for (int x = 0; x < 3; ++x)
          for (int y = 0; y < 3; ++y) h[x][y] += near[x][y] + far * g[x] * g[y];
      }
  return h;
}

/// Adds -ZZ'·hessian for a pair and subtracts it from the diagonal block, so that the sum rule
/// stays exact.
void add_pair(ForceConstants& fc, int atom, const Site& other, double factor, const Matrix3& h) {
  auto& pair =
      fc.block.try_emplace({{atom, {}}, other}, std::vector<std::int64_t>(9, 0)).first->second;
  auto& self =
      fc.block.try_emplace({{atom, {}}, {atom, {}}}, std::vector<std::int64_t>(9, 0)).first->second;
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) {
      const auto quanta = std::llround(factor * h[a][b] / ForceConstants::kQuantum);
      pair[3 * a + b] += quanta;
      self[3 * a + b] -= quanta;
    }
}

double charge(const Structure& s, int atom) { return s.charge_e[s.type[atom]]; }

std::vector<EnergyTerm> repulsion_terms(const RigidIon& model, const Structure& structure) {
  std::vector<EnergyTerm> result;
  const double strength = model.repulsion_ev(), rho = model.rho_angstrom;
  for (int atom = 0; atom < structure.n_atoms(); ++atom)
    for (const Site& other : neighbours(structure, atom, 0.6 * model.lattice_constant_angstrom))
      if (Site{atom, {}} < other)
        result.push_back({{{atom, {}}, other}, [=](std::span<const Nilpotent> r) {
                            return Nilpotent(strength) * exp(length(r) * Nilpotent(-1.0 / rho));
                          }});
  return result;
}

}  // namespace

double RigidIon::repulsion_ev() const {
  // Energy per ion pair: -M Z²k/r + 6 B exp(-r/ρ), with the Madelung constant M of rock salt.
  constexpr double kMadelung = 1.7475645946331822;
  const double r = 0.5 * lattice_constant_angstrom;
  return kMadelung * charge_e * charge_e * kCoulomb_ev_angstrom * rho_angstrom *
         std::exp(r / rho_angstrom) / (6.0 * r * r);
}

Structure RigidIon::structure() const {
  const double half = 0.5 * lattice_constant_angstrom;
  return {.lattice_angstrom = {{{0, half, half}, {half, 0, half}, {half, half, 0}}},
          .position = {{0, 0, 0}, {0.5, 0.5, 0.5}},
          .type = {0, 1},
          .element = {"Na", "Cl"},
          .mass_amu = {kMassSodium_amu, kMassChlorine_amu},
          .charge_e = {charge_e, -charge_e},
          .supercell = {4, 4, 4}};
}

std::vector<EnergyTerm> RigidIon::anharmonic_terms(const Structure& structure) const {
  std::vector<EnergyTerm> result = repulsion_terms(*this, structure);
  for (int atom = 0; atom < structure.n_atoms(); ++atom)
    for (const Site& other : neighbours(structure, atom, 0.8 * lattice_constant_angstrom))
      if (Site{atom, {}} < other) {
        const double strength =
            kCoulomb_ev_angstrom * charge(structure, atom) * charge(structure, other.atom);
        result.push_back({{{atom, {}}, other}, [=](std::span<const Nilpotent> r) {
                            return Nilpotent(strength) * inverse(length(r));
                          }});
      }
  return result;
}

ForceConstants RigidIon::supercell_force_constants(const Structure& s) const {
  ForceConstants fc = derivatives(s, repulsion_terms(*this, s), 2);
  const Cell n = s.supercell;
  Matrix3 lattice = s.lattice_angstrom;
  for (int i = 0; i < 3; ++i)
    for (double& x : lattice[i]) x *= n[i];
  for (int atom = 0; atom < s.n_atoms(); ++atom)
    for (int other = 0; other < s.n_atoms(); ++other)
      for (int i = 0; i < n[0]; ++i)
        for (int j = 0; j < n[1]; ++j)
          for (int k = 0; k < n[2]; ++k) {
            const Cell cell{i, j, k};
            if (other == atom && cell == Cell{}) continue;
            const Vector3 a = s.site(atom, {}), b = s.site(other, cell);
            add_pair(fc, atom, {other, cell},
                     -kCoulomb_ev_angstrom * charge(s, atom) * charge(s, other),
                     coulomb_hessian({b[0] - a[0], b[1] - a[1], b[2] - a[2]}, lattice));
          }
  return fc;
}

ForceConstants RigidIon::short_range_force_constants(const Structure& s) const {
  ForceConstants fc = derivatives(s, repulsion_terms(*this, s), 2);
  const Vector3& a1 = s.lattice_angstrom[0];
  const double decay = 2.0 * kPi / std::hypot(a1[0], a1[1], a1[2]);
  for (int atom = 0; atom < s.n_atoms(); ++atom)
    for (const Site& other : neighbours(s, atom, 1.01 * lattice_constant_angstrom)) {
      const Vector3 a = s.site(atom, {}), b = s.site(other.atom, other.cell);
      add_pair(fc, atom, other, -kCoulomb_ev_angstrom * charge(s, atom) * charge(s, other.atom),
               screened_hessian({b[0] - a[0], b[1] - a[1], b[2] - a[2]}, decay));
    }
  return fc;
}

}  // namespace quasi::model
