#pragma once

#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {

/// Holds W of one irreducible q as plasmon poles. Static COHSEX is a model with all poles at
/// infinity.
class ScreenedPoles {
 public:
  /// Keeps references to the field, the options and the interaction.
  ScreenedPoles(const MeanField& field, const DielectricMatrix& epsilon,
                const SigmaOptions& options, const CoulombInteraction& coulomb);

  /// Returns the model at one q of the star. All q share it, except with the wing rule of
  /// BerkeleyGW. The reference is valid until the next call.
  /// @param q  reduced
  const PlasmonPoleModel& at_point(const Vec3& q);
  /// Returns the plane waves of W at the irreducible q.
  const GSphere& sphere() const { return at_.sphere; }

 private:
  void make(const WingFactors& wings);

  const MeanField& field_;
  const SigmaOptions& options_;
  const CoulombInteraction& coulomb_;
  bool by_point_;  ///< the wings depend on q itself
  ScreeningAtQ at_;
  PlasmonPoleModel poles_;
};

}  // namespace quasi::gw
