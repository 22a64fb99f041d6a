#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/physics/q_mesh.hpp"
#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// One operation on wave vectors: a rotation of the space group, or its negative (time reversal)
/// (docs/theory/thermal.md 2).
struct Operation {
  IntMat3 rotation;    ///< acts on fractional positions; with time reversal, minus the crystal's
                       ///< rotation
  IntMat3 rotation_q;  ///< acts on fractional q: q' = W_q q
  IntMat3 on_mesh;     ///< rotation_q on integer mesh coordinates
  Mat3 cartesian;      ///< acts on Cartesian vectors (velocities, F, tensors)
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
  std::vector<std::int32_t> star_of;       ///< [n_q] number of its irreducible point
  std::vector<std::int32_t> operation_to;  ///< [n_q] an operation that maps the representative to
                                           ///< this point

  std::int64_t n_irreducible() const { return static_cast<std::int64_t>(irreducible.size()); }
  /// Returns the point to which an operation maps a point.
  std::int32_t image(std::int64_t point, std::int64_t operation) const;
  /// Returns true if the operation maps the point on itself. With `exactly` no reciprocal vector
  /// may be added.
  bool fixes(std::int64_t point, std::int64_t operation, bool exactly) const;
  /// Returns P_q, the mean of the Cartesian operations that leave q fixed (docs/theory/thermal.md
  /// 2.4). With `exactly`, as in FourPhonon, W_q q = q is required. Otherwise the full little
  /// co-group is used.
  Mat3 vector_projector(std::int64_t point, bool exactly) const;
  /// Returns the mean over the group of R t Rᵀ.
  Mat3 symmetrised(const Mat3& tensor) const;
};

/// Returns the part of a group that maps an axis (a unit vector) to itself or its opposite, and the
/// mesh folded by it.
Symmetry symmetry_along(const Symmetry& symmetry, const Vec3& axis);

/// Options for finding the group of a crystal and for folding the mesh by it.
struct SymmetryOptions {
  Index3 mesh{0, 0, 0};
  double tolerance_nm = 1e-5;      ///< largest distance of an atom from the image of another
  bool fold = true;                ///< false: every point of the mesh is its own star
  std::string tolerance_location;  ///< where the user gave the tolerance, for messages
};

/// Finds the group with spglib. Without folding every point is computed separately and κ is not
/// averaged over the group. The group still defines the broadening's average and the little group
/// of each point. @throws InvalidInput naming `symprec` when spglib finds no group.
Symmetry find_symmetry(const Crystal& crystal, const SymmetryOptions& options);

}  // namespace quasi::thermal
