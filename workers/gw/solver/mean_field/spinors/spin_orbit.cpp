#include "workers/gw/solver/mean_field/spinors/spin_orbit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/physics/spinor.hpp"

namespace quasi::gw {
namespace {

using Cplx = std::complex<double>;

constexpr double kRange2_ry = 2.0;  // κ²

/// Returns b(K) = (1 + K²/κ²)⁻².
double form_factor(const Vec3& k) {
  const double x = 1.0 + dot(k, k) / kRange2_ry;
  return 1.0 / (x * x);
}

/// Returns the derivative of b(K + x d) at x = 0.
double form_factor_slope(const Vec3& k, const Vec3& d) {
  const double x = 1.0 + dot(k, k) / kRange2_ry;
  return -4.0 * dot(k, d) / (kRange2_ry * x * x * x);
}

/// Adds factor · v·σ to the four elements of a pair of plane waves.
void add_spin_block(Cplx factor, const Vec3& v, std::size_t at, std::size_t n, Cplx* h) {
  const SpinMatrix sigma = pauli(v);
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t column = 0; column < 2; ++column)
      h[row * 2 * n * n + column * n + at] += factor * sigma[row][column];
}

}  // namespace

double spin_orbit_form_factor(const Vec3& k) { return form_factor(k); }

SpinOrbitTerm::SpinOrbitTerm(const Crystal& crystal, std::vector<double> strength_ry_bohr2,
                             std::vector<Vec3> position)
    : bvec_(crystal.bvec),
      blat_per_bohr_(crystal.blat_per_bohr),
      strength_(std::move(strength_ry_bohr2)),
      position_(std::move(position)) {
  for (double& value : strength_) value /= static_cast<double>(position_.size());
}

bool SpinOrbitTerm::vanishes() const {
  return std::all_of(strength_.begin(), strength_.end(), [](double x) { return x == 0.0; });
}

Vec3 SpinOrbitTerm::cartesian(const Vec3& k) const {
  Vec3 sum{};
  for (int i = 0; i < 3; ++i) sum = sum + (blat_per_bohr_ * k[i]) * bvec_[i];
  return sum;
}

SpinOrbitTerm::Waves SpinOrbitTerm::waves_of(const Vec3& k, const std::vector<IVec3>& g) const {
  Waves waves;
  for (const IVec3& v : g) {
    waves.k.push_back(cartesian(k + to_real(v)));
    waves.b.push_back(form_factor(waves.k.back()));
  }
  return waves;
}

std::vector<std::size_t> SpinOrbitTerm::coupled_atoms() const {
  std::vector<std::size_t> atoms;
  for (std::size_t a = 0; a < strength_.size(); ++a)
    if (strength_[a] != 0.0) atoms.push_back(a);
  return atoms;
}

std::vector<Cplx> SpinOrbitTerm::of_atoms(const std::vector<IVec3>& g,
                                          const std::vector<Vec3>& w) const {
  const std::size_t n = g.size();
  const std::vector<std::size_t> atoms = coupled_atoms();
  std::vector<Cplx> made(3 * atoms.size() * n);
#pragma omp parallel for schedule(static)
  for (std::size_t a = 0; a < atoms.size(); ++a)
    for (std::size_t i = 0; i < n; ++i) {
      const Cplx phase = std::polar(1.0, -2.0 * kPi * dot(to_real(g[i]), position_[atoms[a]]));
      for (int axis = 0; axis < 3; ++axis)
        made[(3 * a + static_cast<std::size_t>(axis)) * n + i] = w[i][axis] * phase;
    }
  return made;
}

SparseMatrix SpinOrbitTerm::coupling() const {
  const std::vector<std::size_t> atoms = coupled_atoms();
  SparseMatrix d;
  d.begin.push_back(0);
  for (std::size_t spin = 0; spin < 2; ++spin)
    for (std::size_t a = 0; a < atoms.size(); ++a)
      for (int i = 0; i < 3; ++i) {
        for (std::size_t other = 0; other < 2; ++other)
          for (int j = 0; j < 3; ++j) {
            Vec3 e_i{}, e_j{};
            e_i[i] = 1.0;
            e_j[j] = 1.0;
            const Cplx of_spins = pauli(cross(e_i, e_j))[spin][other];
            if (of_spins == 0.0) continue;
            d.column.push_back(static_cast<std::int32_t>(3 * (other * atoms.size() + a)) + j);
            d.value.push_back(Cplx(0.0, -strength_[atoms[a]]) * of_spins);
          }
        d.begin.push_back(static_cast<std::int32_t>(d.value.size()));
      }
  return d;
}

void SpinOrbitTerm::add_to(const Vec3& k, const std::vector<IVec3>& g, Cplx* h) const {
  if (vanishes()) return;
  const std::size_t n = g.size(), n_atoms = position_.size();
  const Waves waves = waves_of(k, g);
  std::vector<Cplx> phase(n * n_atoms);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t a = 0; a < n_atoms; ++a)
      phase[i * n_atoms + a] = std::polar(1.0, -2.0 * kPi * dot(to_real(g[i]), position_[a]));
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      Cplx sum;
      for (std::size_t a = 0; a < n_atoms; ++a)
        sum += strength_[a] * phase[i * n_atoms + a] * std::conj(phase[j * n_atoms + a]);
      add_spin_block(waves.b[i] * waves.b[j] * Cplx(sum.imag(), -sum.real()),
                     cross(waves.k[i], waves.k[j]), i * 2 * n + j, n, h);
    }
}

void SpinOrbitTerm::add_to(const Vec3& k, const std::vector<IVec3>& g,
                           HamiltonianParts& parts) const {
  parts.n_spinor = 2;
  if (vanishes()) return;
  Waves waves = waves_of(k, g);
  for (std::size_t i = 0; i < g.size(); ++i) waves.k[i] = waves.b[i] * waves.k[i];
  parts.beta = of_atoms(g, waves.k);
  parts.right = parts.beta;
  for (Cplx& value : parts.right) value = std::conj(value);
  parts.coupling = coupling();
}

void SpinOrbitTerm::add_slope(const Pairs& pairs, const Vec3& direction, Cplx* matrix) const {
  if (vanishes()) return;
  const Vec3 d = cartesian(direction);
  Waves waves = waves_of(pairs.k, pairs.g);
  std::vector<Vec3> slope(waves.k.size());
  for (std::size_t i = 0; i < slope.size(); ++i) {
    slope[i] = form_factor_slope(waves.k[i], d) * waves.k[i] + waves.b[i] * d;
    waves.k[i] = waves.b[i] * waves.k[i];
  }
  const SparseMatrix coupling_of_atoms = coupling();
  const std::int64_t n_pw = std::ssize(pairs.g), n_left = pairs.left.extent[0],
                     n_right = pairs.right.extent[0], edge = coupling_of_atoms.n_rows();
  // Returns ⟨w_p|x_σ⟩ of both components of states x, [n][σ][p].
  const auto projected = [&](const std::vector<Vec3>& w, View<const Cplx, 2> x) {
    std::vector<Cplx> conjugate = of_atoms(pairs.g, w);
    for (Cplx& value : conjugate) value = std::conj(value);
    std::vector<Cplx> result(static_cast<std::size_t>(x.extent[0] * edge));
    zgemm({CblasTrans, 2 * x.extent[0], edge / 2, n_pw}, {x.data, n_pw}, {conjugate.data(), n_pw},
          {result.data(), edge / 2});
    return result;
  };
  const auto add = [&](const std::vector<Vec3>& of_left, const std::vector<Vec3>& of_right) {
    std::vector<Cplx> left = projected(of_left, pairs.left);
    const std::vector<Cplx> right = projected(of_right, pairs.right);
    for (Cplx& value : left) value = std::conj(value);
    std::vector<Cplx> coupled(right.size());
    coupling_of_atoms.apply(right.data(), n_right, coupled.data());
    zgemm({CblasTrans, n_left, n_right, edge, Cplx{1.0, 0.0}, Cplx{1.0, 0.0}}, {left.data(), edge},
          {coupled.data(), edge}, {matrix, n_right});
  };
  add(slope, waves.k);
  add(waves.k, slope);
}

}  // namespace quasi::gw
