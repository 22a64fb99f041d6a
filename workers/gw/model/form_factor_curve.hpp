#pragma once

#include <array>

#include "workers/gw/model/empirical_crystal.hpp"

namespace quasi::gw {

/// Holds the form factor of an atom of a built-in crystal at any |K| (docs/theory/gw.md 14.13). The
/// table of Cohen and Bergstresser [cohen1966] knows it at four lengths of G. Between them the
/// curve is the monotone piecewise cubic of [fritsch1984] in |K|. It begins at −2E_F/3, the limit
/// of a screened ion, with E_F of free electrons, and it is 0 from |K|² = 12 on.
class FormFactorCurve {
 public:
  /// @param first_atom  true for the atom with the first atomic number of the table
  FormFactorCurve(const FormFactors& factors, bool first_atom);

  /// Returns v_a in Ry. At |K|² = 3, 4, 8 and 11 it is the value of the table, bit by bit.
  /// @param squared  |K|² in units of (2π/a)²
  double at(double squared) const;

 private:
  static constexpr std::size_t kNodes = 6;
  std::array<double, kNodes> length_{}, value_ry_{}, slope_ry_{};
};

}  // namespace quasi::gw
