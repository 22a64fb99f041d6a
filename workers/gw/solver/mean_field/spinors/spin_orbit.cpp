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

template <typename Add>
void SpinOrbitTerm::for_each_pair(const std::vector<IVec3>& g, const Add& add) const {
  const std::size_t n = g.size(), n_atoms = position_.size();
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
      add(i, j, Cplx(sum.imag(), -sum.real()));
    }
}

void SpinOrbitTerm::add_to(const Vec3& k, const std::vector<IVec3>& g, Cplx* h) const {
  if (vanishes()) return;
  const std::size_t n = g.size();
  std::vector<Vec3> wave(n);
  std::vector<double> b(n);
  for (std::size_t i = 0; i < n; ++i) {
    wave[i] = cartesian(k + to_real(g[i]));
    b[i] = form_factor(wave[i]);
  }
  for_each_pair(g, [&](std::size_t i, std::size_t j, Cplx factor) {
    add_spin_block(b[i] * b[j] * factor, cross(wave[i], wave[j]), i * 2 * n + j, n, h);
  });
}

std::vector<Cplx> SpinOrbitTerm::slope(const Vec3& k, const std::vector<IVec3>& g,
                                       const Vec3& direction) const {
  const std::size_t n = g.size();
  std::vector<Cplx> matrix(4 * n * n);
  if (vanishes()) return matrix;
  const Vec3 d = cartesian(direction);
  std::vector<Vec3> wave(n);
  std::vector<double> b(n), change(n);
  for (std::size_t i = 0; i < n; ++i) {
    wave[i] = cartesian(k + to_real(g[i]));
    b[i] = form_factor(wave[i]);
    change[i] = form_factor_slope(wave[i], d);
  }
  for_each_pair(g, [&](std::size_t i, std::size_t j, Cplx factor) {
    const Vec3 v = (change[i] * b[j] + b[i] * change[j]) * cross(wave[i], wave[j]) +
                   (b[i] * b[j]) * (cross(d, wave[j]) + cross(wave[i], d));
    add_spin_block(factor, v, i * 2 * n + j, n, matrix.data());
  });
  return matrix;
}

void SpinOrbitTerm::add_slope(const Pairs& pairs, const Vec3& direction, Cplx* matrix) const {
  if (vanishes()) return;
  const std::vector<Cplx> of_waves = slope(pairs.k, pairs.g, direction);
  const std::int64_t edge = pairs.left.extent[1], n_left = pairs.left.extent[0],
                     n_right = pairs.right.extent[0];
  std::vector<Cplx> applied(static_cast<std::size_t>(n_right * edge)),
      conjugate(pairs.left.data, pairs.left.data + pairs.left.size());
  for (Cplx& c : conjugate) c = std::conj(c);
  zgemm({CblasTrans, n_right, edge, edge}, {pairs.right.data, edge}, {of_waves.data(), edge},
        {applied.data(), edge});
  zgemm({CblasTrans, n_left, n_right, edge, Cplx{1.0, 0.0}, Cplx{1.0, 0.0}},
        {conjugate.data(), edge}, {applied.data(), edge}, {matrix, n_right});
}

}  // namespace quasi::gw
