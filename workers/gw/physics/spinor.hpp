#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>

#include "workers/gw/physics/crystal.hpp"

/// Rotations and reversal of two-component states (docs/theory/gw.md 15.3).
namespace quasi::gw {

/// Holds a matrix of SU(2) on the components (↑, ↓), row-major.
using SpinMatrix = std::array<std::array<std::complex<double>, 2>, 2>;

/// Returns v·σ for a Cartesian vector v.
inline SpinMatrix pauli(const Vec3& v) {
  using Number = std::complex<double>;
  return {{{Number(v[2], 0.0), Number(v[0], -v[1])}, {Number(v[0], v[1]), Number(-v[2], 0.0)}}};
}

/// Returns the Cartesian matrix R_ij of an operation, with K' = R K for k' = S k.
inline Mat3 cartesian_rotation(const Crystal& crystal, const IMat3& s) {
  Mat3 r{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) r[i][j] += crystal.bvec[a][i] * s[a][b] * crystal.avec[b][j];
  return r;
}

/// Returns U = cos(θ/2) − i sin(θ/2) n·σ of the proper part R of a Cartesian rotation by θ
/// about n, with U (v·σ) U† = (R v)·σ. An inversion acts on no spin. The sign of U is free.
inline SpinMatrix spin_rotation(Mat3 r) {
  if (dot(r[0], cross(r[1], r[2])) < 0.0)
    for (Vec3& row : r) row = -1.0 * row;
  // The largest of four squares avoids a division by a small number.
  const double trace = r[0][0] + r[1][1] + r[2][2];
  const std::array<double, 4> square{1.0 + trace, 1.0 + 2.0 * r[0][0] - trace,
                                     1.0 + 2.0 * r[1][1] - trace, 1.0 + 2.0 * r[2][2] - trace};
  const auto largest =
      static_cast<std::size_t>(std::max_element(square.begin(), square.end()) - square.begin());
  const double twice = std::sqrt(square[largest]);  // 2 |q|, of the largest component q
  std::array<double, 4> q{};                        // cos(θ/2) and sin(θ/2) n
  q[largest] = 0.5 * twice;
  const auto part = [&](double sum) { return 0.5 * sum / twice; };
  const Vec3 odd{r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]};
  if (largest == 0) {
    for (std::size_t i = 0; i < 3; ++i) q[i + 1] = part(odd[i]);
  } else {
    const std::size_t i = largest - 1;
    q[0] = part(odd[i]);
    for (std::size_t j = 0; j < 3; ++j)
      if (j != i) q[j + 1] = part(r[i][j] + r[j][i]);
  }
  const std::complex<double> minus_i{0.0, -1.0};
  SpinMatrix u = pauli({q[1], q[2], q[3]});
  for (auto& row : u)
    for (auto& value : row) value *= minus_i;
  u[0][0] += q[0];
  u[1][1] += q[0];
  return u;
}

}  // namespace quasi::gw
