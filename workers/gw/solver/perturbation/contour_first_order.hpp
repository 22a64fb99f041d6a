#pragma once

#include <memory>
#include <span>
#include <vector>

#include "workers/gw/kernels/pole_sums/first_order_kernels.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"

namespace quasi::gw {

/// Holds W(ω) of one q-point of the zone at the frequencies of a contour.
class ContourScreening {
 public:
  /// Makes W of the irreducible q of `epsilon`. A reference to the contour of `options` is kept.
  ContourScreening(const MeanField& field, const DielectricMatrix& epsilon,
                   const SigmaOptions& options, const CoulombInteraction& coulomb,
                   GwKernels& kernels)
      : grid_(options.contour), w_(full_frequency_w(field, epsilon, options, coulomb, kernels)) {
    wings_ = wing_factors(w_.at.epsilon);
  }
  /// Sets the wings of W to those of one q of the star. They differ within a star with the wing
  /// rule of BerkeleyGW alone.
  /// @param q  reduced
  /// @param bdot  metric of the reciprocal lattice
  void move_to(const Vec3& q, const CoulombInteraction& coulomb, const Mat3& bdot) {
    if (coulomb.options().wing_rule == WingRule::kListedPoint)
      wings_ = wing_factors_of_listed_point(w_.at.epsilon, coulomb, bdot, q);
  }
  /// Returns W at q for the sums at full frequency. The result refers to this object.
  FrequencyDependentW at_q() const { return {w_.at, wings_, w_.subspace}; }
  /// Returns the plane waves of W at the irreducible q.
  const GSphere& sphere() const { return w_.at.sphere; }
  /// Returns the frequencies of the contour.
  const ContourGrid& grid() const { return grid_; }

 private:
  const ContourGrid& grid_;
  FullFrequencyW w_;
  WingFactors wings_;
};

/// Holds the pair products of both sides of a perturbation with the plane waves of W. Where W has a
/// subspace, it also holds their products with the vectors of the subspace.
struct ContourProducts {
  FirstOrderProducts whole;
  const FirstOrderProducts* projected = nullptr;  ///< null without a subspace
};

/// Adds the first order of Σ_c by contour deformation (docs/theory/gw.md 14.8) for all n' and the
/// kets n of the part.
/// @param energies_ry  E, [n_energies]
/// @param device  the device of the products
/// @param sums  Ry/Bohr, [n_p][2 n_energies][n_l][n_m]: first all pairs except those of one
/// multiplet, then the multiplets
/// @throws InvalidInput if a residue lies beyond the real-axis grid
void add_contour_first_order(const ContourScreening& screening, const ContourProducts& products,
                             const FirstOrderPairs& pairs, std::span<const double> energies_ry,
                             const Device& device, View<Cplx, 4> sums);

}  // namespace quasi::gw
