#include "workers/gw/solver/screening/long_wave_tensor.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "workers/gw/physics/coulomb.hpp"

namespace quasi::gw {
namespace {

constexpr int kFaceOrder = 24;  // of Gauss–Legendre on the faces of the mini-zone

Cplx form(const CMat3& epsilon, const Vec3& q) {
  Cplx sum;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) sum += q[i] * epsilon[i][j] * q[j];
  return sum;
}

CMat3 difference(const CMat3& a, const CMat3& b) {
  CMat3 result{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) result[i][j] = a[i][j] - b[i][j];
  return result;
}

}  // namespace

CMat3 inverse(const CMat3& m) {
  const auto minor = [&](std::size_t i, std::size_t j) {
    const std::size_t a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
    return m[a][c] * m[b][d] - m[a][d] * m[b][c];
  };
  const Cplx det = m[0][0] * minor(0, 0) + m[0][1] * minor(0, 1) + m[0][2] * minor(0, 2);
  CMat3 result{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) result[i][j] = minor(j, i) / det;
  return result;
}

CMat3 along(const CMat3& epsilon, const Vec3& q) {
  const Cplx s = form(epsilon, q);
  CMat3 result{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) result[i][j] = q[i] * q[j] / s;
  return result;
}

Vec3 unit_direction(const Crystal& crystal, const Vec3& q) {
  const Vec3 k = to_cartesian(crystal.bvec, crystal.blat_per_bohr, q);
  return (1.0 / std::sqrt(dot(k, k))) * k;
}

std::array<Vec3, 3> along_cartesian_axes(const Crystal& crystal, double length) {
  std::array<Vec3, 3> q{};
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (std::size_t i = 0; i < 3; ++i)
      q[axis][i] =
          length * crystal.alat_bohr / (2.0 * kPi) * crystal.avec[i][axis];  // k_i = a_i · k / 2π
  return q;
}

void fold_directions(const UnsetVector<Cplx>& wide, const std::vector<double>& coulomb,
                     const Vec3& direction, UnsetVector<Cplx>& inverse_of, LongWaveLimit* wanted) {
  const std::size_t n = coulomb.size(), edge = n + 2;
  CMat3 corner{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) corner[i][j] = wide[i * edge + j];
  LongWaveLimit wave{.epsilon = inverse(corner), .left = {}, .right = {}};
  for (std::size_t i = 0; i < 3; ++i) {
    wave.left[i].resize(n);
    wave.right[i].resize(n);
    for (std::size_t g = 1; g < n; ++g)
      for (std::size_t j = 0; j < 3; ++j) {
        wave.left[i][g] += wide[(g + 2) * edge + j] * wave.epsilon[j][i];
        wave.right[i][g] += wave.epsilon[i][j] * wide[j * edge + g + 2];
      }
  }
  inverse_of.resize(n * n);
  // ε⁻¹ is ε̃⁻¹ seen through v^½ on both sides, and products of a left and a right wing see it in
  // the same way.
  const ChangeOfDirection change{.body = difference(along(wave.epsilon, direction), corner),
                                 .wings = direction,
                                 .head = 1.0 / form(wave.epsilon, direction)};
#pragma omp parallel for schedule(static)
  for (std::size_t g = 0; g < n; ++g) {
    Cplx* const row = inverse_of.data() + g * n;
    for (std::size_t h = 1; h < n && g > 0; ++h) row[h] = wide[(g + 2) * edge + h + 2];
    change.apply(wave, g, row);
  }
  if (wanted == nullptr) return;
  for (std::size_t g = 1; g < n; ++g) {
    const double root = std::sqrt(coulomb[0] / coulomb[g]);
    for (std::size_t i = 0; i < 3; ++i) {
      wave.left[i][g] *= root;
      wave.right[i][g] /= root;
    }
  }
  *wanted = std::move(wave);
}

void ChangeOfDirection::apply(const LongWaveLimit& wave, std::size_t g, Cplx* row) const {
  const std::size_t n = wave.left[0].size();
  const auto along_wings = [&](const std::array<std::vector<Cplx>, 3>& wing, std::size_t at) {
    return head * (wings[0] * wing[0][at] + wings[1] * wing[1][at] + wings[2] * wing[2][at]);
  };
  if (g == 0) {
    row[0] = head;
    for (std::size_t h = 1; h < n; ++h) row[h] = along_wings(wave.right, h);
    return;
  }
  row[0] = along_wings(wave.left, g);
  std::array<Cplx, 3> left{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) left[j] += wave.left[i][g] * body[i][j];
  for (std::size_t h = 1; h < n; ++h)
    row[h] += left[0] * wave.right[0][h] + left[1] * wave.right[1][h] + left[2] * wave.right[2][h];
}

ChangeOfDirection turned(const LongWaveLimit& wave, const Vec3& from, const Vec3& to) {
  return {.body = difference(along(wave.epsilon, to), along(wave.epsilon, from)),
          .wings = to,
          .head = 1.0 / form(wave.epsilon, to)};
}

namespace {

/// Returns the real part of a tensor without imaginary part; empty if it has one.
std::optional<Mat3> real_tensor(const CMat3& epsilon) {
  Mat3 real{};
  double largest = 0.0, imaginary = 0.0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      real[i][j] = epsilon[i][j].real();
      largest = std::max(largest, std::abs(epsilon[i][j]));
      imaginary = std::max(imaginary, std::abs(epsilon[i][j].imag()));
    }
  if (imaginary > 1e-9 * largest) return std::nullopt;
  return real;
}

/// Returns ε of ε_ij = ε δ_ij; empty if the tensor is no number.
std::optional<Cplx> number_of(const CMat3& epsilon) {
  const Cplx third = (epsilon[0][0] + epsilon[1][1] + epsilon[2][2]) / 3.0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      if (std::abs(epsilon[i][j] - (i == j ? third : 0.0)) > 1e-9 * std::abs(third))
        return std::nullopt;
  return third;
}

/// Returns true if the leading minors of a symmetric tensor are positive.
bool is_positive(const Mat3& m) {
  return m[0][0] > 0.0 && m[0][0] * m[1][1] > m[0][1] * m[1][0] && dot(m[0], cross(m[1], m[2])) > 0;
}

}  // namespace

AverageAtZero average_at_zero(const CoulombInteraction& coulomb, const CMat3& epsilon) {
  const MiniZone& zone = coulomb.mini_zone();
  AverageAtZero average{.head = average_of_screened(zone, epsilon) / zone.inverse_square({}),
                        .directions = average_of_directions(zone, epsilon)};
  if (!coulomb.sums_points()) return average;
  const PuncturedGrid& grid = coulomb.punctured_grid();
  const auto take = [&](const Mat3& directions, Cplx factor) {
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) average.directions[i][j] = factor * directions[i][j];
  };
  if (const auto number = number_of(epsilon)) {
    average.head = 1.0 / *number;
    take(grid.directions({{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}), 1.0 / *number);
  } else if (const auto real = real_tensor(epsilon); real && is_positive(*real)) {
    average.head = grid.inverse_square(*real) / coulomb.averaged({}, {});
    take(grid.directions(*real), 1.0);
  }
  return average;
}

ChangeOfDirection averaged_directions(const LongWaveLimit& wave, const Vec3& from,
                                      const CMat3& epsilon, const CoulombInteraction& coulomb) {
  const AverageAtZero average = average_at_zero(coulomb, epsilon);
  return {.body = difference(average.directions, along(wave.epsilon, from)),
          .wings = {},
          .head = average.head};
}

// A function of degree −2 in p has the radial integral that it has at the face; one of degree 0 a
// third of its value there.
Cplx average_of_screened(const MiniZone& zone, const CMat3& epsilon) {
  return kEightPi * zone.even_face_integral(kFaceOrder, [&](const Vec3& p) {
    return 1.0 / form(epsilon, p);
  }) / zone.volume_per_bohr3();
}

CMat3 average_of_directions(const MiniZone& zone, const CMat3& epsilon) {
  CMat3 average{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = i; j < 3; ++j)
      average[i][j] = average[j][i] = zone.even_face_integral(kFaceOrder, [&](const Vec3& p) {
        return p[i] * p[j] / form(epsilon, p);
      }) / (3.0 * zone.volume_per_bohr3());
  return average;
}

CMat3 with_symmetry_of(const Crystal& crystal, const std::vector<SymmetryOperation>& operations,
                       const CMat3& epsilon) {
  // kᵀ T k in reduced coordinates, T_ij = b_i ε b_j.
  CMat3 reduced{}, mean{}, result{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t a = 0; a < 3; ++a)
        for (std::size_t b = 0; b < 3; ++b)
          reduced[i][j] +=
              crystal.bvec[i][a] * 0.5 * (epsilon[a][b] + epsilon[b][a]) * crystal.bvec[j][b];
  for (const SymmetryOperation& s : operations)
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        for (std::size_t a = 0; a < 3; ++a)
          for (std::size_t b = 0; b < 3; ++b)
            mean[i][j] += static_cast<double>(s.rotation[a][i] * s.rotation[b][j]) * reduced[a][b] /
                          static_cast<double>(operations.size());
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b < 3; ++b)
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j)
          result[a][b] += crystal.avec[i][a] * mean[i][j] *
                          crystal.avec[j][b];  // a_i · b_j = δ_ij in units of alat, blat
  return result;
}

bool is_isotropic(const Crystal& crystal, const std::vector<SymmetryOperation>& operations) {
  // The average of a form without symmetry over the group has all components that the group allows.
  const CMat3 left = with_symmetry_of(
      crystal, operations, {{{1.0, 0.31, -0.17}, {0.31, 0.63, 0.43}, {-0.17, 0.43, 1.71}}});
  const Cplx third = (left[0][0] + left[1][1] + left[2][2]) / 3.0;
  double departure = 0.0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      departure = std::max(departure, std::abs(left[i][j] - (i == j ? third : 0.0)));
  return departure < 1e-6 * std::abs(third);
}

}  // namespace quasi::gw
