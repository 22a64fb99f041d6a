#include "workers/gw/solver/screening/coulomb/coulomb_interaction.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/coulomb.hpp"

namespace quasi::gw {
namespace {

constexpr double kZero = 1e-9;        // smaller |k| count as 0, 1/Bohr
constexpr double kLeastWeight = 0.2;  // of q → 0 over the average over its mini-zone
constexpr Mat3 kUnit{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};

double length(const Vec3& v) { return std::sqrt(dot(v, v)); }

/// Returns the keyword of BerkeleyGW for a truncation.
std::string berkeleygw_keyword(const std::string& truncation) {
  return truncation == "sphere" ? "spherical_truncation" : "cell_" + truncation + "_truncation";
}

void require_single_point(const IVec3& grid, const std::vector<int>& axes, const char* name) {
  for (const int axis : axes)
    if (grid[axis] > 1)
      throw InvalidInput(
          std::string("coulomb.truncation = \"") + name + "\" (" + berkeleygw_keyword(name) +
          " in epsilon.inp and sigma.inp) cuts the interaction along axis " +
          std::to_string(axis + 1) + ", where the k-grid must have 1 point; it has " +
          std::to_string(grid[axis]) +
          ". Compute the mean field with 1 point there, or remove the truncation");
}

}  // namespace

CoulombInteraction::CoulombInteraction(const Crystal& crystal, const IVec3& q_grid,
                                       const CoulombOptions& options)
    : crystal_(crystal),
      options_(options),
      q_grid_{std::max(1, q_grid[0]), std::max(1, q_grid[1]), std::max(1, q_grid[2])},
      mini_zone_(crystal.bvec, crystal.blat_per_bohr, q_grid_),
      punctured_(crystal.bvec, crystal.blat_per_bohr, q_grid_) {
  if (!options.average_file.empty()) table_ = CoulombTable::read(options.average_file);
  const bool wanted =
      options.zone_sum == ZoneSum::kPoints && !table_ && options.wing_rule == WingRule::kShortest;
  switch (options.truncation) {
    case Truncation::kNone:
      sums_points_ =
          wanted && punctured_.inverse_square(kUnit) > kLeastWeight * mini_zone_.inverse_square({});
      break;
    case Truncation::kSlab: {
      require_single_point(q_grid_, {2}, "slab");
      if (!perpendicular_axis(crystal, 2))
        throw InvalidInput(
            "coulomb.truncation = \"slab\" needs the third lattice vector perpendicular to the "
            "others");
      planar_zone_ = std::make_shared<const PlanarCell>((1.0 / q_grid_[0]) * cartesian({1, 0, 0}),
                                                        (1.0 / q_grid_[1]) * cartesian({0, 1, 0}));
      punctured_plane_ = std::make_shared<const PuncturedPlane>(
          (1.0 / q_grid_[0]) * cartesian({1, 0, 0}), (1.0 / q_grid_[1]) * cartesian({0, 1, 0}));
      normal_ = (1.0 / length(cartesian({0, 0, 1}))) * cartesian({0, 0, 1});
      half_length_bohr_ = 0.5 * std::sqrt(crystal.adot[2][2]);
      {
        const double by_zone = average_in_plane([](double v, double) { return v; });
        sums_points_ = wanted;
        sums_points_ =
            wanted && average_in_plane([](double v, double) { return v; }) > kLeastWeight * by_zone;
      }
      break;
    }
    case Truncation::kWire:
      require_single_point(q_grid_, {0, 1}, "wire");
      if (!perpendicular_axis(crystal, 2))
        throw InvalidInput(
            "coulomb.truncation = \"wire\" needs the third lattice vector perpendicular to the "
            "others");
      wire_ = std::make_shared<const WireCoulomb>(crystal);
      break;
    case Truncation::kBox:
      require_single_point(q_grid_, {0, 1, 2}, "box");
      box_ = std::make_shared<const BoxCoulomb>(crystal);
      break;
    case Truncation::kSphere: {
      require_single_point(q_grid_, {0, 1, 2}, "sphere");
      const double limit = BoxCoulomb(crystal).inscribed_radius();
      if (options.sphere_radius_bohr <= 0.0 || options.sphere_radius_bohr > limit * (1.0 + 1e-9))
        throw InvalidInput("coulomb.radius_bohr = " + std::to_string(options.sphere_radius_bohr) +
                           " must lie in (0, " + std::to_string(limit) +
                           "], the radius of the sphere inside the cell");
      break;
    }
  }
}

Vec3 CoulombInteraction::cartesian(const Vec3& k) const {
  return to_cartesian(crystal_.bvec, crystal_.blat_per_bohr, k);
}

double CoulombInteraction::half_edge_per_bohr() const {
  return 0.5 * length(cartesian({0, 0, 1})) / q_grid_[2];
}

double CoulombInteraction::slab(const Vec3& k) const {
  const double k_z = dot(k, normal_);
  const Vec3 in_plane = k - k_z * normal_;
  return coulomb_slab(length(in_plane), k_z, half_length_bohr_);
}

double CoulombInteraction::plain(const Vec3& q, const IVec3& g) const {
  const Vec3 k = q + to_real(g);
  switch (options_.truncation) {
    case Truncation::kNone:
      return coulomb_3d(metric_dot(crystal_.bdot, k, k));
    case Truncation::kSlab:
      return slab(cartesian(k));
    case Truncation::kWire:
      return (*wire_)(cartesian(k));
    case Truncation::kBox:
      return (*box_)(cartesian(k));
    case Truncation::kSphere:
      return coulomb_sphere(metric_dot(crystal_.bdot, k, k), options_.sphere_radius_bohr);
  }
  return 0.0;
}

namespace {

/// Returns value(k), or a stored value. k is compared to 1e-9, because points of a grid differ by
/// far more.
template <typename Value>
double remembered(std::mutex& mutex, std::map<std::array<std::int64_t, 3>, double>& known,
                  const Vec3& k, Value value) {
  const std::array<std::int64_t, 3> key{std::llround(k[0] * 1e9), std::llround(k[1] * 1e9),
                                        std::llround(k[2] * 1e9)};
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

double CoulombInteraction::average(const Vec3& k_reduced) const {
  const Vec3 k = cartesian(k_reduced);
  const bool zero = length(k) < kZero;
  switch (options_.truncation) {
    case Truncation::kNone:
      if (!sums_points_) return mini_zone_.inverse_square(k);
      return zero ? punctured_.inverse_square(kUnit) : coulomb_3d(dot(k, k));
    case Truncation::kSlab: {
      if (zero) return average_in_plane([](double v, double) { return v; });
      const double k_z = dot(k, normal_);
      if (!sums_points_ || length(k - k_z * normal_) > kZero) return slab(k);
      return punctured_plane_->weight(
          [&](double p) { return coulomb_slab(p, k_z, half_length_bohr_); });
    }
    case Truncation::kWire:
      return zero ? wire_->mean_along_axis(half_edge_per_bohr(), [](double v, double) { return v; })
                  : (*wire_)(k);
    case Truncation::kBox:
      return (*box_)(k);
    case Truncation::kSphere:
      return coulomb_sphere(dot(k, k), options_.sphere_radius_bohr);
  }
  return 0.0;
}

double CoulombInteraction::averaged(const Vec3& q, const IVec3& g) const {
  if (table_) return table_->at(q, g);
  const Vec3 k = q + to_real(g);
  return remembered(known_->mutex, known_->square, k, [&] { return average(k); });
}

double CoulombInteraction::averaged_inverse(const Vec3& q) const {
  return remembered(known_->mutex, known_->inverse, q,
                    [&] { return mini_zone_.inverse(cartesian(q)); });
}

std::complex<double> CoulombInteraction::gamma_of(std::complex<double> inverse_head,
                                                  const Vec3& q) const {
  // 1/ε⁻¹ − 1 = γ q² v_c(q), v = 8π v_c.
  const double k2 = dot(cartesian(q), cartesian(q));
  return (1.0 / inverse_head - 1.0) / (k2 * plain(q, {}) / kEightPi);
}

SheetScreening CoulombInteraction::screening_of(std::complex<double> inverse_head, const Vec3& q0,
                                                const std::vector<HeadSample>& samples) const {
  std::vector<double> lengths{0.0};
  std::vector<std::complex<double>> values{gamma_of(inverse_head, q0)};
  for (const HeadSample& sample : samples) {
    lengths.push_back(length(cartesian(sample.q)));
    values.push_back(gamma_of(sample.inverse_head, sample.q));
  }
  return {std::move(lengths), std::move(values)};
}

std::complex<double> CoulombInteraction::head_at_zero(
    std::complex<double> inverse_head, const Vec3& q0,
    const std::vector<HeadSample>& samples) const {
  const bool in_plane = options_.truncation == Truncation::kSlab;
  if (!in_plane && options_.truncation != Truncation::kWire) return inverse_head;
  const SheetScreening gamma = screening_of(inverse_head, q0, samples);
  const auto screened = [&](double v, double p) {
    return v / (1.0 + gamma(p) * (p * p * v / kEightPi));
  };
  if (in_plane) return average_in_plane(screened) / averaged({}, {});
  return wire_->mean_along_axis(half_edge_per_bohr(), screened) / averaged({}, {});
}

double CoulombInteraction::curvature_weight(std::complex<double> inverse_head, const Vec3& q0,
                                            const std::vector<HeadSample>& samples) const {
  const SheetScreening gamma = screening_of(inverse_head, q0, samples);
  return average_in_plane([&](double v, double p) {
           return p * p * v / (1.0 + gamma(p) * (p * p * v / kEightPi));
         })
      .real();
}

std::vector<Vec3> CoulombInteraction::sample_points(const Vec3& q0) const {
  // The weight of q → 0 needs W_00 at some steps of the grid. At the edge of the zone q is as
  // near to another G as to 0.
  constexpr double kReach = 4.0;
  const double longest =
      std::min({kReach * planar_zone_->circumscribed_radius(), 0.5 * length(cartesian({1, 0, 0})),
                0.5 * length(cartesian({0, 1, 0}))});
  const double unit = 1.0 / length(cartesian(q0));
  std::vector<Vec3> points;
  for (const double p : sample_lengths(options_.subsampling, longest))
    points.push_back((p * unit) * q0);
  return points;
}

void CoulombInteraction::require_direction(const Vec3& q0) const {
  const bool wire = options_.truncation == Truncation::kWire;
  if (!wire && options_.truncation != Truncation::kSlab) return;
  const double along = std::abs(q0[2]), across = std::max(std::abs(q0[0]), std::abs(q0[1]));
  if ((wire ? across : along) <= 1e-6 * (wire ? along : across)) return;
  char text[80];
  std::snprintf(text, sizeof text, "(%.6g, %.6g, %.6g)", q0[0], q0[1], q0[2]);
  throw InvalidInput(
      std::string("q₀ = ") + text + " of coulomb.truncation = \"" + (wire ? "wire" : "slab") +
      "\" must lie " +
      (wire ? "along the third axis; set meanfield.q0 = [0, 0, 0.001]"
            : "in the plane of the first two axes; set meanfield.q0 = [0.001, 0, 0]") +
      " or shift WFNq so");
}

void CoulombInteraction::require_charge_inside(
    const std::vector<IVec3>& g, const std::vector<std::complex<double>>& density) const {
  std::vector<int> axes;
  switch (options_.truncation) {
    case Truncation::kNone:
      return;
    case Truncation::kSlab:
      axes = {2};
      break;
    case Truncation::kWire:
      axes = {0, 1};
      break;
    case Truncation::kBox:
    case Truncation::kSphere:
      axes = {0, 1, 2};
      break;
  }
  const double outside = charge_outside_half(g, density, axes);
  if (outside > options_.max_charge_outside)
    throw InvalidInput(std::to_string(100.0 * outside) +
                       " % of the charge lies outside half of the cell, where the truncated "
                       "interaction misses it; " +
                       "add vacuum, or choose another coulomb.truncation (limit " +
                       std::to_string(100.0 * options_.max_charge_outside) + " %)");
}

}  // namespace quasi::gw
