#include "workers/gw/solver/coulomb_interaction.hpp"

#include "workers/backend/error.hpp"
#include "workers/gw/physics/coulomb.hpp"

namespace quasi::gw {

CoulombInteraction::CoulombInteraction(const Crystal& crystal, const IVec3& q_grid, const CoulombOptions& options)
    : crystal_(crystal), options_(options),
      mini_zone_(crystal.bvec, crystal.blat_per_bohr, {std::max(1, q_grid[0]), std::max(1, q_grid[1]), std::max(1, q_grid[2])}) {
  if (!options.average_file.empty()) table_ = CoulombTable::read(options.average_file);
}

Vec3 CoulombInteraction::cartesian(const Vec3& k) const { return to_cartesian(crystal_.bvec, crystal_.blat_per_bohr, k); }

double CoulombInteraction::plain(const Vec3& q, const IVec3& g) const {
  const Vec3 k = q + to_real(g);
  return coulomb_3d(metric_dot(crystal_.bdot, k, k));
}

double CoulombInteraction::averaged(const Vec3& q, const IVec3& g) const {
  if (table_) return table_->at(q, g);
  return mini_zone_.inverse_square(cartesian(q + to_real(g)));
}

double CoulombInteraction::averaged_inverse(const Vec3& q) const { return mini_zone_.inverse(cartesian(q)); }

}  // namespace quasi::gw
