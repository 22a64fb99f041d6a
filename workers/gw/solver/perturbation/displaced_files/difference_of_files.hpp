#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/perturbation/displaced_files/displaced_calculation.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Holds the projectors of the displaced atom of one calculation.
class DisplacedProjectors {
 public:
  DisplacedProjectors(const DisplacedCalculation& from, std::size_t listed);

  /// Returns the position of the k-point S·k up to a reciprocal vector, in the list of VKB.
  /// @param coordinates  S·k
  /// @param shift  receives the reciprocal vector S·k less the listed k-point
  /// @throws InvalidInput if VKB lacks that k-point
  std::size_t point_of(const Vec3& coordinates, IVec3* shift) const;

  /// Adds factor × Σ_pq β_p(K) D_pq β*_q(K') to `matrix`, [n_bra][n_ket].
  /// @param bra, ket  plane waves K and K' less the k-point `ik`, in the coordinates of VKB
  /// @throws InvalidInput if VKB lacks a plane wave
  void add(double factor, std::size_t ik, const std::vector<IVec3>& bra,
           const std::vector<IVec3>& ket, std::vector<Cplx>& matrix) const;

 private:
  /// Returns β_p on plane waves of a k-point, [p][wave].
  std::vector<Cplx> on_waves(std::size_t ik, const std::vector<IVec3>& waves) const;

  std::filesystem::path path_;
  std::vector<Vec3> k_;
  std::vector<GIndex> index_;            ///< of each k-point
  std::vector<std::vector<Cplx>> beta_;  ///< of each k-point, [p][wave]
  std::vector<std::size_t> n_waves_;     ///< of each k-point
  std::size_t n_projectors_ = 0;
  std::vector<double> d_ry_;  ///< D_pq, [p][q]
};

/// Calculates ∂V between plane waves from calculations with one atom displaced by ±h in a
/// supercell (docs/theory/gw.md 14.11).
class DifferenceOfFiles {
 public:
  /// @param up  the atom and +h
  DifferenceOfFiles(const Wavefunctions& waves, const Supercell& supercell,
                    const DisplacedCalculation& forth, const DisplacedCalculation& back,
                    const Shift& up, double step_bohr);

  /// Returns ∂V(p+G) of the local potential where it is not 0, Ry/Bohr. @pre p is a reciprocal
  /// vector of the supercell
  PotentialElements local(const Vec3& p) const { return of_wave(local_, p); }
  /// Returns ∂V_xc(p+G) where it is not 0; empty without VXC.
  PotentialElements vxc(const Vec3& p) const { return of_wave(vxc_, p); }
  /// Adds the part of the projectors to ∂V between plane waves k+p+G and k+G', [n_bra][n_ket].
  void add_projectors(const Vec3& k, const Vec3& p, const std::vector<IVec3>& bra,
                      const std::vector<IVec3>& ket, std::vector<Cplx>& matrix) const;

 private:
  /// Takes the plane waves p+G and the factors of cells and of the displaced cell from a
  /// difference of the supercell.
  PotentialElements of_wave(const PotentialElements& difference, const Vec3& p) const;
  /// Returns the number of cells times e^{ip·R} with the cell R of the displaced atom.
  Cplx factor_of(const Vec3& p) const;

  Supercell supercell_;
  IVec3 cell_;
  double step_bohr_;
  /// Differences over 2h by the plane waves of the supercell, Ry/Bohr.
  PotentialElements local_, vxc_;
  DisplacedProjectors forth_, back_;
};

}  // namespace quasi::gw
