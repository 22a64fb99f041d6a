#pragma once

#include <array>
#include <vector>

#include "workers/gw/model/mean_field.hpp"

namespace quasi::gw {

/// Calculates V_xc of a density in the local-density approximation, and the change of V_xc with the
/// density (docs/theory/gw.md 16). The exchange is that of the uniform electron gas. The
/// correlation is that of Perdew and Wang [perdew1992] without spin polarisation. libxc evaluates
/// both at the points r of a grid.
class LocalDensity {
 public:
  /// @param density  ρ(G) without spin polarisation, electrons per cell, as in the file RHO
  /// @throws InvalidInput if the density has two spins, or is below −1e-6 electrons/Bohr³ at a
  /// point
  /// @throws BackendAbsent if libxc is not installed
  explicit LocalDensity(const PlaneWaveField& density);

  /// Returns V_xc(G) on the plane waves of the density, Ry.
  PlaneWaveField potential() const;

  /// Returns ∂V_xc(G) = (f_xc ∂ρ)(G) with f_xc = ∂V_xc/∂ρ, Ry per unit of the
  /// displacement.
  /// @param g  plane waves G of both. No component exceeds those of the density by more than one.
  /// @param change  ∂ρ(G), electrons per cell and unit of the displacement. ∂ρ(r) may be
  /// complex.
  std::vector<Cplx> potential_change(const std::vector<IVec3>& g,
                                     const std::vector<Cplx>& change) const;

 private:
  MeanFieldHeader header_;
  std::array<int, 3> box_;                   ///< points of the grid along each axis
  std::vector<double> potential_ry_;         ///< V_xc at the points of the grid
  std::vector<double> derivative_ry_bohr3_;  ///< f_xc at the points of the grid
};

}  // namespace quasi::gw
