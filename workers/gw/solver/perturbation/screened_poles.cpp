#include "workers/gw/solver/perturbation/screened_poles.hpp"

namespace quasi::gw {

ScreenedPoles::ScreenedPoles(const MeanField& field, const DielectricMatrix& epsilon,
                             const SigmaOptions& options, const CoulombInteraction& coulomb)
    : field_(field),
      options_(options),
      coulomb_(coulomb),
      by_point_(coulomb.options().wing_rule == WingRule::kListedPoint),
      at_(screening_at(field, epsilon, options.screened_cutoff_ry, coulomb)) {
  if (!by_point_) make(wing_factors(at_.epsilon));
}

const PlasmonPoleModel& ScreenedPoles::at_point(const Vec3& q) {
  if (by_point_)
    make(wing_factors_of_listed_point(at_.epsilon, coulomb_, field_.crystal().bdot, q));
  return poles_;
}

void ScreenedPoles::make(const WingFactors& wings) {
  if (uses_plasmon_poles(options_.method)) {
    poles_ = plasmon_poles(field_, at_, options_, coulomb_, wings);
    return;
  }
  poles_ = {};
  poles_.n = at_.sphere.size();
  poles_.strength = screened_matrix(at_, 0, wings);
  for (Cplx& value : poles_.strength) value *= 0.5 * kStaticPole_ry;
  poles_.pole_ry.assign(poles_.strength.size(), kStaticPole_ry);
}

}  // namespace quasi::gw
