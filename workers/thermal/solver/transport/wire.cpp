#include "workers/thermal/solver/transport/wire.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/three_phonon/recomputed_sums_3ph.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/thermal/solver/transport/iterative_bte.hpp"
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
  // x = R sin θ: f = (4/πz) ∫ cos θ (e^{−z cos θ} − 1 + z cos θ) dθ. Far out the exponential hides
  // in a corner no fixed rule sees; ∫ cos θ e^{−z cos θ} dθ = 1/z² + 3/z⁴ + 45/z⁶ + …
  if (z > 60.0)
    return 1.0 -
           4.0 / (units::kPi * z) * (1.0 - (1.0 + (3.0 + 45.0 / (z * z)) / (z * z)) / (z * z));
  static const Quadrature rule;
  double sum = 0.0;
  for (int i = 0; i < Quadrature::kPoints; ++i)
    sum += rule.weight[i] * rule.cosine[i] * excess(z * rule.cosine[i]);
  return 4.0 / (units::kPi * z) * sum;
}

WireConductivity wires_of(const Transport& t) {
  const Control& control = t.control;
  WireConductivity wires;
  for (const Index3& orientation : control.orientations) {
    const Vec3 along = t.crystal.lattice_vector_nm(orientation);
    wires.axis.push_back(1.0 / length(along) * along);
  }
  const auto n_radii =
      static_cast<int>(std::floor(
          (control.radius_max_nm - control.radius_min_nm) / control.radius_step_nm + 1e-9)) +
      1;
  for (int i = 0; i < n_radii; ++i)
    wires.radius_nm.push_back(control.radius_min_nm + i * control.radius_step_nm);
  wires.kappa_w_per_mk.assign(wires.axis.size() * wires.radius_nm.size(), 0.0);
  return wires;
}

namespace {

double speed_across(const Vec3& v, const Vec3& axis) {
  const double along = dot(v, axis);
  return std::sqrt(std::max(0.0, dot(v, v) - along * along));
}

}  // namespace

WireConductivity wire_conductivity(const Transport& t, double temperature_k,
                                   const std::vector<double>& rate_per_ps) {
  WireConductivity result = wires_of(t);
  const PhysicalConstants& constants = t.control.constants();
  const int nb = t.modes.n_branches;
  const double scale =
      constants.hbar_1e34_j_s * constants.hbar_1e34_j_s / constants.kb_1e23_j_k /
      (temperature_k * temperature_k * t.crystal.volume_nm3() * static_cast<double>(t.modes.n_q));
  const auto n_axes = static_cast<std::int64_t>(result.axis.size());
  const auto n_radii = static_cast<std::int64_t>(result.radius_nm.size());
#pragma omp parallel for schedule(static) collapse(2)
  for (std::int64_t axis = 0; axis < n_axes; ++axis)
    for (std::int64_t r = 0; r < n_radii; ++r) {
      const Vec3& a = result.axis[static_cast<std::size_t>(axis)];
      double sum = 0.0;
      for (std::int64_t q = 0; q < t.modes.n_q; ++q) {
        const std::int64_t star = t.symmetry.star_of[q];
        const Mat3& turn =
            t.symmetry.operations[static_cast<std::size_t>(t.symmetry.operation_to[q])].cartesian;
        for (int s = 0; s < nb; ++s) {
          const std::int64_t row = star * nb + s;
          if (!t.conducts(row) || !(rate_per_ps[row] > 0.0)) continue;
          const std::int64_t mode = t.mode_of_row(row);
          const double* v0 = &t.modes.velocity_km_s[static_cast<std::size_t>(mode * 3)];
          const Vec3 v = turn * Vec3{v0[0], v0[1], v0[2]};
          const double along = dot(v, a);
          const double omega = t.modes.omega_rad_ps[mode];
          const double n = bose_einstein(omega, temperature_k, constants.hbar_over_kb_k_ps());
          sum += n * (n + 1.0) * omega * omega * along * along / rate_per_ps[row] *
                 diffuse_wire_reduction(speed_across(v, a) / rate_per_ps[row],
                                        result.radius_nm[static_cast<std::size_t>(r)]);
        }
      }
      result.kappa_w_per_mk[static_cast<std::size_t>(axis * n_radii + r)] = scale * sum;
    }
  return result;
}

std::vector<WireConductivity> converged_wires(
    const Deck& deck, const SparseForceConstants& third_order, const ConductivityRun& run,
    const std::vector<double>& further_per_ps,
    const std::function<FurtherScattering(const Symmetry&)>& iterated_along, const Device& device,
    Progress& progress) {
  const Control& control = deck.control;
  const std::int64_t nb = run.modes.n_branches;
  const std::size_t n_t = control.temperatures_k.size();
  const Transport bulk{deck.crystal, deck.symmetry, run.modes, control};
  std::vector<WireConductivity> result(n_t, wires_of(bulk));
  for (std::size_t axis = 0; axis < result[0].axis.size(); ++axis) {
    const Vec3& a = result[0].axis[axis];
    const Symmetry along = symmetry_along(deck.symmetry, a);
    const Transport t{deck.crystal, along, run.modes, control};
    ThreePhononProblem problem =
        make_three_phonon_problem(deck.crystal, third_order, along, run.modes, control);
    const auto kernels = make_three_phonon_sums(device);
    kernels->load(problem);
    kernels->rates(control.temperatures_k, true, progress);
    const FurtherScattering iterated = iterated_along ? iterated_along(along) : FurtherScattering{};
    for (std::size_t k = 0; k < n_t; ++k) {
      std::vector<double> diagonal =
          kernels->row_rates(control.temperatures_k[k], OccupationForm::kSymmetric);
      if (control.average_degenerate)
        average_over_subspaces(run.modes, along.irreducible, 1, diagonal.data());
      if (iterated.in_scattering) {
        const std::vector<double> more = iterated.diagonal_per_ps(k);
        for (std::size_t row = 0; row < diagonal.size(); ++row) diagonal[row] += more[row];
      }
      std::vector<double> path(diagonal.size(), 0.0);
      for (std::int64_t row = 0; row < t.n_rows(); ++row) {
        // The bulk's row of the same star.
        const std::int64_t star = deck.symmetry.star_of[static_cast<std::size_t>(
            along.irreducible[static_cast<std::size_t>(row / nb)])];
        const auto whole = static_cast<std::size_t>(star * nb + row % nb);
        const auto at = static_cast<std::size_t>(row);
        if (!run.isotope_per_ps.empty()) diagonal[at] += run.isotope_per_ps[whole];
        if (!iterated.in_scattering && !further_per_ps.empty())
          diagonal[at] += further_per_ps[k * run.by_temperature[k].rate_per_ps.size() + whole];
        const double rate = run.by_temperature[k].rate_per_ps[whole];
        const double* v =
            &run.modes.velocity_km_s[static_cast<std::size_t>(t.mode_of_row(row) * 3)];
        if (rate > 0.0) path[at] = speed_across({v[0], v[1], v[2]}, a) / rate;
      }
      for (std::size_t r = 0; r < result[k].radius_nm.size(); ++r) {
        CollisionOperator collision{
            .diagonal_per_ps = diagonal, .in_scattering = {}, .symmetric = true};
        for (std::size_t row = 0; row < diagonal.size(); ++row)
          collision.diagonal_per_ps[row] /=
              diffuse_wire_reduction(path[row], result[k].radius_nm[r]);
        collision.in_scattering = [&](const std::vector<double>& f) {
          std::vector<double> out =
              kernels->apply_collision(control.temperatures_k[k], OccupationForm::kSymmetric, f);
          if (iterated.in_scattering) {
            const std::vector<double> more = iterated.in_scattering(k, f);
            for (std::size_t i = 0; i < out.size(); ++i) out[i] += more[i];
          }
          return out;
        };
        const IterativeSolution solution =
            solve_bte(t, control.temperatures_k[k], collision, progress);
        const Mat3 kappa = total(mode_conductivity(t, control.temperatures_k[k], solution.f));
        result[k].kappa_w_per_mk[axis * result[k].radius_nm.size() + r] = dot(a, kappa * a);
      }
    }
  }
  return result;
}

}  // namespace quasi::thermal
