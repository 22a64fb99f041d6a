#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// Begin here: the primitive cell with lattice, atoms, masses, isotopes and dielectric response, in
/// nm and amu. symmetry.hpp holds its group, force_constants.hpp its constants, modes.hpp the
/// phonons, and the files *_options.hpp the choices of each step.
struct Crystal {
  Mat3 lattice_nm{};           ///< row i is a_i
  std::vector<Vec3> position;  ///< [atom] fractional; never reduced modulo 1, because the image
                               ///< matters
  std::vector<int> type;       ///< [atom] element number from zero
  std::vector<std::string> element;  ///< [element]
  std::vector<double> mass_amu;      ///< [atom] mean over isotopes
  std::vector<double> g_factor;      ///< [atom] Σ f_i (1 − m_i/m̄)²
  Mat3 epsilon = kIdentity;          ///< high-frequency dielectric tensor
  std::vector<Mat3> born;            ///< [atom][field direction][displacement], in e

  int n_atoms() const { return static_cast<int>(position.size()); }
  int n_branches() const { return 3 * n_atoms(); }
  double volume_nm3() const { return std::fabs(determinant(lattice_nm)); }
  /// Returns rows b_i in 1/nm with a_i·b_j = 2π δ_ij.
  Mat3 reciprocal_per_nm() const;
  Vec3 cartesian_nm(const Vec3& fractional) const { return transpose(lattice_nm) * fractional; }
  Vec3 lattice_vector_nm(const Index3& cell) const {
    return cartesian_nm(
        {static_cast<double>(cell[0]), static_cast<double>(cell[1]), static_cast<double>(cell[2])});
  }
};

/// Mean mass (amu) and g-factor of the natural composition (docs/theory/thermal.md 9.1); nullptr if
/// the element is not tabulated.
struct NaturalElement {
  const char* symbol;
  double mass_amu;
  double g_factor;
};
/// Returns the data of an element, or nullptr.
const NaturalElement* natural_element(const std::string& symbol);

}  // namespace quasi::thermal
