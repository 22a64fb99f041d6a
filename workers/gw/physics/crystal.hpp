#pragma once

#include <array>
#include <cmath>
#include <vector>

/// Begin here: lattice, symmetry and plane waves in reduced coordinates (docs/theory/gw.md 0, 2).
/// k, q and G are in units of the reciprocal basis vectors, lengths in Bohr, energies in Rydberg
/// (|k+G|² is a kinetic energy).
namespace quasi::gw {

using Vec3 = std::array<double, 3>;
using IVec3 = std::array<int, 3>;
using Mat3 = std::array<Vec3, 3>;    ///< row-major
using IMat3 = std::array<IVec3, 3>;  ///< row-major

/// Conversion factors of BerkeleyGW, which differ from CODATA's in units/constants.hpp. Only with
/// these do energies agree with BerkeleyGW to 1e-9.
inline constexpr double kRydberg_ev = 13.60569253;
inline constexpr double kBohr_angstrom = 0.52917721092;
inline constexpr double kPi = 3.14159265358979323846;

inline Vec3 operator+(const Vec3& a, const Vec3& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
inline Vec3 operator-(const Vec3& a, const Vec3& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
inline Vec3 operator*(double s, const Vec3& a) { return {s * a[0], s * a[1], s * a[2]}; }
inline IVec3 operator+(const IVec3& a, const IVec3& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
inline IVec3 operator-(const IVec3& a, const IVec3& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
inline IVec3 operator-(const IVec3& a) { return {-a[0], -a[1], -a[2]}; }
inline Vec3 to_real(const IVec3& g) { return {1.0 * g[0], 1.0 * g[1], 1.0 * g[2]}; }
inline Vec3 cross(const Vec3& a, const Vec3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline double dot(const Vec3& a, const Vec3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

template <typename M, typename V>
V multiply(const M& m, const V& v) {
  V result{};
  for (int i = 0; i < 3; ++i) result[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
  return result;
}

/// Returns aᵀ·B·b with the reciprocal metric B, the scalar product in Bohr⁻².
inline double metric_dot(const Mat3& bdot, const Vec3& a, const Vec3& b) {
  return dot(a, multiply(bdot, b));
}

inline int determinant(const IMat3& m) {
  return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
         m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
         m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

/// Returns the inverse of an integer matrix of determinant ±1.
inline IMat3 inverse(const IMat3& m) {
  const int det = determinant(m);
  IMat3 inv{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const int a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
      inv[i][j] = det * (m[a][c] * m[b][d] - m[a][d] * m[b][c]);
    }
  return inv;
}

/// Operation {S|τ}, which acts on reciprocal coordinates: k' = S k. A plane-wave coefficient
/// becomes c_{Sk}(SG) = e^{−i(SG)·τ} c_k(G).
struct SymmetryOperation {
  IMat3 rotation{};
  Vec3 translation{};  ///< τ: fractional translation times 2π
};

struct Atom {
  Vec3 position_alat{};  ///< Cartesian, in units of the lattice parameter
  int atomic_number = 0;
};

struct Crystal {
  double volume_bohr3 = 0.0;
  double alat_bohr = 0.0;
  double blat_per_bohr = 0.0;  ///< 2π / alat
  double recvol_per_bohr3 = 0.0;
  Mat3 avec{};            ///< row i: lattice vector i in units of alat
  Mat3 bvec{};            ///< row i: reciprocal vector i in units of blat
  Mat3 adot{};            ///< Bohr²
  Mat3 bdot{};            ///< Bohr⁻²
  int cell_symmetry = 0;  ///< 0 cubic, 1 hexagonal; kept for files that contain it
  std::vector<SymmetryOperation> symmetries;
  std::vector<Atom> atoms;
};

/// Finds the nearest integers and returns true if `v` is within `tolerance` of them.
inline bool nearest_lattice_point(const Vec3& v, IVec3* point, double tolerance = 1e-6) {
  for (int i = 0; i < 3; ++i) {
    (*point)[i] = static_cast<int>(std::lround(v[i]));
    if (std::abs(v[i] - (*point)[i]) > tolerance) return false;
  }
  return true;
}

/// Returns v folded into [0, 1)³. Values within `tolerance` of 1 become 0.
inline Vec3 folded(const Vec3& v, double tolerance = 1e-6) {
  Vec3 result{};
  for (int i = 0; i < 3; ++i) {
    result[i] = v[i] - std::floor(v[i] + tolerance);
    if (std::abs(result[i]) < tolerance) result[i] = std::abs(result[i]) < 1e-12 ? 0.0 : result[i];
  }
  return result;
}

}  // namespace quasi::gw
