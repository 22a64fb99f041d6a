#pragma once

#include <memory>
#include <span>
#include <vector>

#include "workers/gw/kernels/pole_sums/first_order_kernels.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"

namespace quasi::gw {

/// W(ω) of one q-point of the zone at the frequencies of a contour.
class ContourScreening {
 public:
  ContourScreening(const MeanField& field, const DielectricMatrix& epsilon,
                   const SigmaOptions& options, const CoulombInteraction& coulomb,
                   GwKernels& kernels)
      : grid_(options.contour), w_(full_frequency_w(field, epsilon, options, coulomb, kernels)) {
    wings_ = wing_factors(w_.at.epsilon);
  }
  /// Takes the wings of one q of the star, which differ with the wing rule of BerkeleyGW alone.
  void move_to(const Vec3& q, const CoulombInteraction& coulomb, const Mat3& bdot) {
    if (coulomb.options().wing_rule == WingRule::kListedPoint)
      wings_ = wing_factors_of_listed_point(w_.at.epsilon, coulomb, bdot, q);
  }
  FrequencyDependentW at_q() const { return {w_.at, wings_, w_.subspace}; }
  /// Plane waves of W at the irreducible q.
  const GSphere& sphere() const { return w_.at.sphere; }
  const ContourGrid& grid() const { return grid_; }

 private:
  const ContourGrid& grid_;
  FullFrequencyW w_;
  WingFactors wings_;
};

/// Products of both sides of a perturbation with the plane waves of W and, where W has a subspace,
/// with the vectors of it.
struct ContourProducts {
  FirstOrderProducts whole;
  const FirstOrderProducts* projected = nullptr;
};

/// Adds the first order of Σ_c by contour deformation (docs/theory/gw.md 14.8) of all n' and the
/// kets of the part.
/// @param sums  [n_p][2 n_energies][n_l][n_m]: first all pairs but those of one multiplet, then
/// the multiplets
/// @throws InvalidInput where a residue lies beyond the real-axis grid
void add_contour_first_order(const ContourScreening& screening, const ContourProducts& products,
                             const FirstOrderPairs& pairs, std::span<const double> energies_ry,
                             const Device& device, View<Cplx, 4> sums);

}  // namespace quasi::gw
