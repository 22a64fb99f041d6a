#include "workers/thermal/model/symmetry.hpp"

#include <spglib.h>

#include <algorithm>
#include <memory>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

IntMat3 inverse_transpose(const IntMat3& w) {
  // The inverse of an integer matrix of determinant ±1 is the adjugate times the determinant.
  const auto cofactor = [&](int i, int j) {
    const int a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
    return w[a][c] * w[b][d] - w[a][d] * w[b][c];
  };
  const int det = w[0][0] * cofactor(0, 0) + w[0][1] * cofactor(0, 1) + w[0][2] * cofactor(0, 2);
  IntMat3 result;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) result[i][j] = det * cofactor(i, j);
  return result;
}

std::string describe(const IntMat3& w) {
  std::string text = "[";
  for (int i = 0; i < 3; ++i) {
    text += i == 0 ? "" : "; ";
    for (int j = 0; j < 3; ++j) {
      if (j > 0) text += ' ';
      text += std::to_string(w[i][j]);
    }
  }
  return text + "]";
}

/// Returns the operation on integer mesh coordinates if it maps the mesh onto itself.
bool mesh_matrix(const IntMat3& rotation_q, const QMesh& mesh, IntMat3& on_mesh) {
  for (int i = 0; i < 3; ++i)
    for (int d = 0; d < 3; ++d) {
      if (rotation_q[i][d] * mesh.n[i] % mesh.n[d] != 0) return false;
      on_mesh[i][d] = rotation_q[i][d] * mesh.n[i] / mesh.n[d];
    }
  return true;
}

}  // namespace

std::int32_t Symmetry::image(std::int64_t point, std::int64_t operation) const {
  int c[3];
  mesh.coordinates(point, c);
  const IntMat3& m = operations[static_cast<std::size_t>(operation)].on_mesh;
  return mesh.index(m[0][0] * c[0] + m[0][1] * c[1] + m[0][2] * c[2],
                    m[1][0] * c[0] + m[1][1] * c[1] + m[1][2] * c[2],
                    m[2][0] * c[0] + m[2][1] * c[1] + m[2][2] * c[2]);
}

bool Symmetry::fixes(std::int64_t point, std::int64_t operation, bool exactly) const {
  if (!exactly) return image(point, operation) == point;
  int c[3];
  mesh.coordinates(point, c);
  const IntMat3& m = operations[static_cast<std::size_t>(operation)].on_mesh;
  for (int i = 0; i < 3; ++i)
    if (m[i][0] * c[0] + m[i][1] * c[1] + m[i][2] * c[2] != c[i]) return false;
  return true;
}

Mat3 Symmetry::vector_projector(std::int64_t point, bool exactly) const {
  Mat3 sum{};
  int count = 0;
  for (std::size_t op = 0; op < operations.size(); ++op) {
    if (!fixes(point, static_cast<std::int64_t>(op), exactly)) continue;
    ++count;
    for (int i = 0; i < 3; ++i) sum[i] = sum[i] + operations[op].cartesian[i];
  }
  for (Vec3& row : sum) row = (1.0 / count) * row;
  return sum;
}

Mat3 Symmetry::symmetrised(const Mat3& tensor) const {
  Mat3 sum{};
  for (const Operation& op : operations) {
    const Mat3 rotated = op.cartesian * tensor * transpose(op.cartesian);
    for (int i = 0; i < 3; ++i) sum[i] = sum[i] + rotated[i];
  }
  for (Vec3& row : sum) row = (1.0 / static_cast<double>(operations.size())) * row;
  return sum;
}

namespace {

/// Finds the stars of the mesh under the operations, in the order of their lowest members.
void fold(Symmetry& symmetry) {
  const std::int64_t n_q = symmetry.mesh.size();
  symmetry.star_of.assign(static_cast<std::size_t>(n_q), -1);
  symmetry.operation_to.assign(static_cast<std::size_t>(n_q), 0);
  for (std::int64_t point = 0; point < n_q; ++point) {
    if (symmetry.star_of[point] >= 0) continue;
    const auto star = static_cast<std::int32_t>(symmetry.irreducible.size());
    symmetry.irreducible.push_back(static_cast<std::int32_t>(point));
    std::int32_t members = 0;
    const std::size_t n_operations = symmetry.folded ? symmetry.operations.size() : 1;
    for (std::size_t op = 0; op < n_operations; ++op) {
      const std::int32_t image = symmetry.image(point, static_cast<std::int64_t>(op));
      if (symmetry.star_of[image] >= 0) continue;
      symmetry.star_of[image] = star;
      symmetry.operation_to[image] = static_cast<std::int32_t>(op);
      ++members;
    }
    symmetry.multiplicity.push_back(members);
  }
}

}  // namespace

Symmetry symmetry_along(const Symmetry& symmetry, const Vec3& axis) {
  Symmetry along = symmetry;
  std::erase_if(along.operations, [&](const Operation& op) {
    const Vec3 image = op.cartesian * axis;
    return length(image - axis) > 1e-6 && length(image + axis) > 1e-6;
  });
  along.irreducible.clear();
  along.multiplicity.clear();
  fold(along);
  return along;
}

Symmetry find_symmetry(const Crystal& crystal, const SymmetryOptions& options) {
  Symmetry symmetry;
  std::copy(options.mesh.begin(), options.mesh.end(), symmetry.mesh.n);
  std::vector<IntMat3> rotations{{Index3{1, 0, 0}, Index3{0, 1, 0}, Index3{0, 0, 1}}};
  {
    double lattice[3][3];
    for (int i = 0; i < 3; ++i)
      for (int d = 0; d < 3; ++d) lattice[d][i] = crystal.lattice_nm[i][d];
    std::vector<double> flat;
    for (const Vec3& position : crystal.position)
      flat.insert(flat.end(), position.begin(), position.end());
    const std::unique_ptr<SpglibDataset, void (*)(SpglibDataset*)> dataset(
        spg_get_dataset(lattice, reinterpret_cast<double(*)[3]>(flat.data()), crystal.type.data(),
                        crystal.n_atoms(), options.tolerance_nm),
        spg_free_dataset);
    if (!dataset || dataset->n_operations < 1)
      throw InvalidInput(options.tolerance_location + ": no space group was found with symprec = " +
                         std::to_string(options.tolerance_nm) + " nm; change 'symprec'");
    symmetry.space_group = dataset->international_symbol;
    symmetry.space_group_number = dataset->spacegroup_number;
    for (const int sign : {1, -1})
      for (int op = 0; op < dataset->n_operations; ++op) {
        IntMat3 w;
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 3; ++j) w[i][j] = sign * dataset->rotations[op][i][j];
        if (std::find(rotations.begin(), rotations.end(), w) == rotations.end())
          rotations.push_back(w);
      }
  }
  const Mat3 a = transpose(crystal.lattice_nm);  // columns a_i
  const Mat3 a_inverse = inverse(a);
  for (const IntMat3& w : rotations) {
    Operation op{.rotation = w, .rotation_q = inverse_transpose(w), .on_mesh = {}, .cartesian = {}};
    if (!mesh_matrix(op.rotation_q, symmetry.mesh, op.on_mesh)) {
      symmetry.dropped.push_back(describe(w));
      continue;
    }
    Mat3 real;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) real[i][j] = w[i][j];
    op.cartesian = a * real * a_inverse;
    symmetry.operations.push_back(op);
  }

  symmetry.folded = options.fold;
  fold(symmetry);
  return symmetry;
}

}  // namespace quasi::thermal
