#include "workers/gw/solver/coulomb_interaction.hpp"

#include <cmath>

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

namespace {

/// value(k), or what it was before. k to 1e-9: points of a grid differ by far more.
template <typename Value>
double remembered(std::mutex& mutex, std::map<std::array<std::int64_t, 3>, double>& known, const Vec3& k, Value value) {
  const std::array<std::int64_t, 3> key{std::llround(k[0] * 1e9), std::llround(k[1] * 1e9), std::llround(k[2] * 1e9)};
  {
    const std::lock_guard lock(mutex);
    const auto found = known.find(key);
    if (found != known.end()) return found->second;
  }
  const double made = value();
  const std::lock_guard lock(mutex);
  return known.emplace(key, made).first->second;
}

}  // namespace

double CoulombInteraction::averaged(const Vec3& q, const IVec3& g) const {
  if (table_) return table_->at(q, g);
  const Vec3 k = q + to_real(g);
  return remembered(known_->mutex, known_->square, k, [&] { return mini_zone_.inverse_square(cartesian(k)); });
}

double CoulombInteraction::averaged_inverse(const Vec3& q) const {
  return remembered(known_->mutex, known_->inverse, q, [&] { return mini_zone_.inverse(cartesian(q)); });
}

}  // namespace quasi::gw
