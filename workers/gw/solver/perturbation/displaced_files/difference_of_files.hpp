#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/perturbation/displaced_files/displaced_calculation.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Holds the projectors β of the displaced atom of one calculation. Plane waves and k-points have
/// the reduced coordinates of the supercell of that calculation (supercell.hpp).
class DisplacedProjectors {
 public:
  /// @param listed  position of the displaced atom in the list of the calculation, from 0
  DisplacedProjectors(const DisplacedCalculation& from, std::size_t listed);

  /// Finds a k-point in the list of the file VKB, up to a reciprocal vector.
  /// @param coordinates  the k-point
  /// @param shift  receives the reciprocal vector, which is the k-point less the listed one
  /// @return position in the list
  /// @throws InvalidInput if VKB lacks that k-point
  std::size_t point_of(const Vec3& coordinates, IVec3* shift) const;

  /// Adds factor × Σ_pq β_p(K) D_pq β*_q(K') to `matrix`, Ry times the factor, [n_bra][n_ket].
  /// @param ik   position of the k-point in the list of VKB
  /// @param bra, ket  plane waves K and K' less that k-point
  /// @throws InvalidInput if VKB lacks a plane wave
  void add(double factor, std::size_t ik, const std::vector<IVec3>& bra,
           const std::vector<IVec3>& ket, std::vector<Cplx>& matrix) const;

 private:
  /// Returns β_p on plane waves of a k-point, [p][wave].
  std::vector<Cplx> on_waves(std::size_t ik, const std::vector<IVec3>& waves) const;

  std::filesystem::path path_;
  std::vector<Vec3> k_;                  ///< k-points of VKB
  std::vector<GIndex> index_;            ///< positions of the plane waves of each k-point
  std::vector<std::vector<Cplx>> beta_;  ///< β of each k-point, [p][wave]
  std::vector<std::size_t> n_waves_;     ///< number of plane waves of each k-point
  std::size_t n_projectors_ = 0;
  std::vector<double> d_ry_;  ///< D_pq, [p][q]
};

/// Calculates ∂V = [V(h) − V(−h)]/2h between plane waves from two calculations in which one
/// atom of a supercell is displaced by +h and by −h (docs/theory/gw.md 14.11). Wave vectors and
/// plane waves in its arguments have the reduced coordinates of the cell of WFN.
class DifferenceOfFiles {
 public:
  /// @param waves      states of the crystal at rest
  /// @param forth      calculation with +h
  /// @param back       calculation with −h
  /// @param up         displaced atom and its displacement by +h
  /// @param step_bohr  h
  /// @throws InvalidInput if VKB lacks a k-point or a plane wave of `waves`
  DifferenceOfFiles(const Wavefunctions& waves, const Supercell& supercell,
                    const DisplacedCalculation& forth, const DisplacedCalculation& back,
                    const Shift& up, double step_bohr);

  /// Returns the elements ∂V(p+G) ≠ 0 of the local potential, Ry/Bohr.
  /// @pre p is a reciprocal vector of the supercell
  PotentialElements local(const Vec3& p) const { return of_wave(local_, p); }
  /// Returns the elements ∂V_xc(p+G) ≠ 0, Ry/Bohr. Without VXC the list is empty. @pre p as
  /// above
  PotentialElements vxc(const Vec3& p) const { return of_wave(vxc_, p); }
  /// Adds the part of the projectors in ∂V between plane waves, Ry/Bohr.
  /// @param bra, ket  G of the plane waves k + p + G, and G' of the plane waves k + G'
  /// @param matrix    sum, [n_bra][n_ket]
  void add_projectors(const Vec3& k, const Vec3& p, const std::vector<IVec3>& bra,
                      const std::vector<IVec3>& ket, std::vector<Cplx>& matrix) const;

 private:
  /// Selects the plane waves p+G from a difference of the supercell and multiplies their elements
  /// by factor_of(p).
  PotentialElements of_wave(const PotentialElements& difference, const Vec3& p) const;
  /// Returns N_c e^{ip·R} with the number N_c of cells and the cell R of the displaced atom.
  Cplx factor_of(const Vec3& p) const;

  Supercell supercell_;
  IVec3 cell_;  ///< cell R of the displaced atom
  double step_bohr_;
  /// ∂V and ∂V_xc on the plane waves of the supercell, Ry/Bohr.
  PotentialElements local_, vxc_;
  DisplacedProjectors forth_, back_;
};

}  // namespace quasi::gw
