#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/physics/q_mesh.hpp"
#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// One operation acting on wave vectors: a rotation of the space group, or minus one (time
/// reversal).
struct Operation {
  IntMat3 rotation;    ///< acts on fractional positions (for −W: minus the crystal's rotation)
  IntMat3 rotation_q;  ///< acts on fractional q: q' = W_q q
  IntMat3 on_mesh;     ///< the same on integer mesh coordinates
  Mat3 cartesian;      ///< the same on Cartesian vectors (velocities, F, tensors)
};

/// Point group (with time reversal) of crystal and mesh, and the mesh folded by it.
struct Symmetry {
  QMesh mesh;
  std::string space_group;  ///< international symbol, for people
  int space_group_number = 1;
  std::vector<Operation> operations;  ///< the identity first
  std::vector<std::string> dropped;   ///< operations that do not map the mesh onto itself
  bool folded = true;                 ///< false: every point is its own star

  std::vector<std::int32_t> irreducible;   ///< [n_irr] representative: lowest number of its star
  std::vector<std::int32_t> multiplicity;  ///< [n_irr] points in the star
  std::vector<std::int32_t> star_of;       ///< [n_q] which irreducible point
  std::vector<std::int32_t> operation_to;  ///< [n_q] an operation taking the representative here

  std::int64_t n_irreducible() const { return static_cast<std::int64_t>(irreducible.size()); }
  std::int32_t image(std::int64_t point, std::int64_t operation) const;
  /// True if the operation maps the point on itself; `exactly`: without adding a reciprocal vector.
  bool fixes(std::int64_t point, std::int64_t operation, bool exactly) const;
  /// P_q = mean of the Cartesian operations that leave q fixed (docs/theory/thermal.md 2.4).
  /// With `exactly`, as in FourPhonon, W_q q = q; else the full little co-group.
  Mat3 vector_projector(std::int64_t point, bool exactly) const;
  /// Mean over the group of R t Rᵀ.
  Mat3 symmetrised(const Mat3& tensor) const;
};

/// The part of a group that turns an axis (a unit vector) into itself or its opposite, and the mesh
/// folded by it.
Symmetry symmetry_along(const Symmetry& symmetry, const Vec3& axis);

/// How the group of a crystal is found, and whether the mesh is folded by it.
struct SymmetryOptions {
  Index3 mesh{0, 0, 0};
  double tolerance_nm = 1e-5;      ///< how far an atom may be from the image of another
  bool fold = true;                ///< false: every point of the mesh is its own star
  std::string tolerance_location;  ///< where the user gave the tolerance, for messages
};

/// Finds the group with spglib. Without folding every point is computed by itself and κ is not
/// averaged over the group. The group still defines the broadening's average and the little group
/// of each point.
/// @throws InvalidInput when spglib finds no group, naming `symprec`.
Symmetry find_symmetry(const Crystal& crystal, const SymmetryOptions& options);

}  // namespace quasi::thermal
