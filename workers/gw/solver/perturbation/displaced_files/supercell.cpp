#include "workers/gw/solver/perturbation/displaced_files/supercell.hpp"

#include <cmath>
#include <cstdlib>

namespace quasi::gw {
namespace {

/// Largest deviation of an element of S from a whole number. Lattice vectors of files have at least
/// six digits.
constexpr double kWhole = 1e-5;

/// Returns the adjugate of m, which is det(m) times the inverse of m and has whole elements.
IMat3 adjugate(const IMat3& m) {
  IMat3 adjugate{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const int a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
      adjugate[i][j] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
    }
  return adjugate;
}

IMat3 transposed(const IMat3& m) {
  IMat3 t{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) t[i][j] = m[j][i];
  return t;
}

/// Returns x modulo n in [0, |n|).
int modulo(int x, int n) { return (x % n + std::abs(n)) % std::abs(n); }

}  // namespace

std::optional<Supercell> Supercell::of(const Crystal& cell, const Crystal& large) {
  IMat3 repeats{};
  for (int i = 0; i < 3; ++i)
    if (!nearest_lattice_point(reduced_position(cell, large.alat_bohr * large.avec[i]), &repeats[i],
                               kWhole))
      return {};
  if (determinant(repeats) == 0) return {};
  return Supercell(repeats);
}

Vec3 Supercell::coordinates_of(const Vec3& k) const {
  Vec3 coordinates{};
  for (int i = 0; i < 3; ++i) coordinates[i] = dot(to_real(repeats_[i]), k);
  return coordinates;
}

std::optional<IVec3> Supercell::vector_of(const Vec3& q) const {
  IVec3 vector{};
  if (!nearest_lattice_point(coordinates_of(q), &vector, 1e-6)) return {};
  return vector;
}

std::optional<IVec3> Supercell::cell_vector_of(const IVec3& g) const {
  const int det = determinant(repeats_);
  IVec3 vector = multiply(adjugate(repeats_), g);
  for (int& component : vector) {
    if (component % det != 0) return {};
    component /= det;
  }
  return vector;
}

IVec3 Supercell::folded_cell(const IVec3& n) const {
  // In units of the lattice vectors of the supercell the cell n is at m with n = Sᵀ·m. The
  // result is the fractional part of m. Multiplication by det(S) keeps all numbers whole.
  const int det = determinant(repeats_);
  IVec3 fraction = multiply(transposed(adjugate(repeats_)), n);
  for (int& component : fraction) component = modulo(component, det);
  IVec3 cell = multiply(transposed(repeats_), fraction);
  for (int& component : cell) component /= det;
  return cell;
}

Vec3 reduced_position(const Crystal& crystal, const Vec3& position_bohr) {
  Vec3 reduced{};
  for (int j = 0; j < 3; ++j)
    reduced[j] = crystal.blat_per_bohr / (2.0 * kPi) * dot(position_bohr, crystal.bvec[j]);
  return reduced;
}

Vec3 cartesian_position(const Crystal& crystal, const Vec3& reduced) {
  Vec3 position_bohr{};
  for (int j = 0; j < 3; ++j)
    position_bohr = position_bohr + crystal.alat_bohr * reduced[j] * crystal.avec[j];
  return position_bohr;
}

}  // namespace quasi::gw
