#include "workers/thermal/solver/wire.hpp"

#include <array>
#include <cmath>

#include "workers/thermal/physics/occupation.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

/// Gauss–Legendre nodes and weights on [0, π/2].
struct Quadrature {
  static constexpr int kPoints = 48;
  std::array<double, kPoints> cosine{}, weight{};
  Quadrature() {
    for (int i = 0; i < kPoints; ++i) {
      double x = std::cos(units::kPi * (i + 0.75) / (kPoints + 0.5));
      double slope = 1.0;
      for (int step = 0; step < 50; ++step) {
        double p0 = 1.0, p1 = x;
        for (int k = 2; k <= kPoints; ++k) {
          const double p2 = ((2 * k - 1) * x * p1 - (k - 1) * p0) / k;
          p0 = p1;
          p1 = p2;
        }
        slope = kPoints * (x * p1 - p0) / (x * x - 1.0);
        const double change = p1 / slope;
        x -= change;
        if (std::fabs(change) < 1e-16) break;
      }
      cosine[i] = std::cos(0.25 * units::kPi * (x + 1.0));
      weight[i] = 0.25 * units::kPi * 2.0 / ((1.0 - x * x) * slope * slope);
    }
  }
};

/// e^{−y} − 1 + y without cancellation.
double excess(double y) {
  if (y < 1e-2) return y * y * (0.5 - y * (1.0 / 6.0 - y * (1.0 / 24.0 - y / 120.0)));
  return std::expm1(-y) + y;
}

}  // namespace

double diffuse_wire_reduction(double path_nm, double radius_nm) {
  if (path_nm == 0.0) return 1.0;
  const double z = 2.0 * radius_nm / path_nm;
  // x = R sin θ: f = (4/πz) ∫ cos θ (e^{−z cos θ} − 1 + z cos θ) dθ. Far out the exponential hides in a
  // corner no fixed rule sees; ∫ cos θ e^{−z cos θ} dθ = 1/z² + 3/z⁴ + 45/z⁶ + …
  if (z > 60.0) return 1.0 - 4.0 / (units::kPi * z) * (1.0 - (1.0 + (3.0 + 45.0 / (z * z)) / (z * z)) / (z * z));
  static const Quadrature rule;
  double sum = 0.0;
  for (int i = 0; i < Quadrature::kPoints; ++i) sum += rule.weight[i] * rule.cosine[i] * excess(z * rule.cosine[i]);
  return 4.0 / (units::kPi * z) * sum;
}

WireConductivity wire_conductivity(const Transport& t, double temperature_k, const std::vector<double>& rate_per_ps,
                                   const std::vector<double>& field) {
  const Control& control = t.control;
  WireConductivity result;
  for (const Index3& orientation : control.orientations) {
    const Vec3 along = t.crystal.lattice_vector_nm(orientation);
    result.axis.push_back(1.0 / length(along) * along);
  }
  const auto n_radii = static_cast<int>(std::floor((control.radius_max_nm - control.radius_min_nm) / control.radius_step_nm + 1e-9)) + 1;
  for (int i = 0; i < n_radii; ++i) result.radius_nm.push_back(control.radius_min_nm + i * control.radius_step_nm);
  const PhysicalConstants& constants = control.constants();
  const int nb = t.modes.n_branches;
  const double scale = constants.hbar_1e34_j_s * constants.hbar_1e34_j_s / constants.kb_1e23_j_k /
                       (temperature_k * temperature_k * t.crystal.volume_nm3() * static_cast<double>(t.modes.n_q));
  const auto n_axes = static_cast<std::int64_t>(result.axis.size());
  result.kappa_w_per_mk.assign(static_cast<std::size_t>(n_axes * n_radii), 0.0);
#pragma omp parallel for schedule(static) collapse(2)
  for (std::int64_t axis = 0; axis < n_axes; ++axis)
    for (int r = 0; r < n_radii; ++r) {
      const Vec3& a = result.axis[static_cast<std::size_t>(axis)];
      double sum = 0.0;
      for (std::int64_t q = 0; q < t.modes.n_q; ++q) {
        const std::int64_t star = t.symmetry.star_of[q];
        const Mat3& turn = t.symmetry.operations[static_cast<std::size_t>(t.symmetry.operation_to[q])].cartesian;
        for (int s = 0; s < nb; ++s) {
          const std::int64_t row = star * nb + s;
          if (!t.conducts(row) || !(rate_per_ps[row] > 0.0)) continue;
          const std::int64_t mode = t.mode_of_row(row);
          const double* v0 = &t.modes.velocity_km_s[static_cast<std::size_t>(mode * 3)];
          const Vec3 v = turn * Vec3{v0[0], v0[1], v0[2]};
          const Vec3 f = turn * Vec3{field[row * 3], field[row * 3 + 1], field[row * 3 + 2]};
          const double along = dot(v, a);
          const double across = std::sqrt(std::max(0.0, dot(v, v) - along * along));
          const double omega = t.modes.omega_rad_ps[mode];
          const double n = bose_einstein(omega, temperature_k, constants.hbar_over_kb_k_ps());
          sum += n * (n + 1.0) * omega * along * dot(f, a) *
                 diffuse_wire_reduction(across / rate_per_ps[row], result.radius_nm[static_cast<std::size_t>(r)]);
        }
      }
      result.kappa_w_per_mk[static_cast<std::size_t>(axis * n_radii + r)] = scale * sum;
    }
  return result;
}

}  // namespace quasi::thermal
