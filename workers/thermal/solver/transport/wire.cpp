#include "workers/thermal/solver/transport/wire.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/three_phonon/recomputed_sums_3ph.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/thermal/solver/transport/iterative_bte.hpp"
#include "workers/thermal/solver/transport/subspace_conductivity.hpp"
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
  const WireOptions& options = t.options.wires;
  WireConductivity wires;
  for (const Index3& orientation : options.orientations) {
    const Vec3 along = t.crystal.lattice_vector_nm(orientation);
    wires.axis.push_back(1.0 / length(along) * along);
  }
  const auto n_radii =
      static_cast<int>(std::floor(
          (options.radius_max_nm - options.radius_min_nm) / options.radius_step_nm + 1e-9)) +
      1;
  for (int i = 0; i < n_radii; ++i)
    wires.radius_nm.push_back(options.radius_min_nm + i * options.radius_step_nm);
  wires.kappa_w_per_mk.assign(wires.axis.size() * wires.radius_nm.size(), 0.0);
  return wires;
}

namespace {

double speed_across(const Vec3& v, const Vec3& axis) {
  const double along = dot(v, axis);
  return std::sqrt(std::max(0.0, dot(v, v) - along * along));
}

}  // namespace

namespace {

/// Rate of a row at a member of its star with the scattering of the walls, 1/ps: w/f, where the
/// path in f is that of the root mean square speed across the axis.
double rate_with_walls(const Transport& t, std::int64_t row, const Vec3& axis_at_member,
                       double rate_per_ps, double radius_nm) {
  if (!(rate_per_ps > 0.0)) return 0.0;
  const double* v = &t.modes.velocity_km_s[static_cast<std::size_t>(t.mode_of_row(row) * 3)];
  const double across = speed_across({v[0], v[1], v[2]}, axis_at_member);
  const Mat3 variance = t.velocity_variance(row);
  const double spread = variance[0][0] + variance[1][1] + variance[2][2] -
                        dot(axis_at_member, variance * axis_at_member);
  const double path = std::sqrt(across * across + std::max(0.0, spread)) / rate_per_ps;
  return rate_per_ps / diffuse_wire_reduction(path, radius_nm);
}

/// κ along the axis that branches carry inside degenerate subspaces, beyond their mean velocity.
double subspace_part(const Transport& t, double temperature_k,
                     const std::vector<double>& rate_per_ps, const Vec3& axis, double radius_nm) {
  std::vector<std::vector<const SubspacePair*>> of_star(
      static_cast<std::size_t>(t.symmetry.n_irreducible()));
  for (const SubspacePair& pair : t.modes.subspace_pairs)
    of_star[static_cast<std::size_t>(pair.row / t.modes.n_branches)].push_back(&pair);
  double sum = 0.0;
  for (std::int64_t q = 0; q < t.modes.n_q; ++q) {
    const auto operation = static_cast<std::size_t>(t.symmetry.operation_to[q]);
    // The axis as the representative of the star sees it.
    const Vec3 a = transpose(t.symmetry.operations[operation].cartesian) * axis;
    for (const SubspacePair* pair : of_star[static_cast<std::size_t>(t.symmetry.star_of[q])]) {
      const double weight = subspace_pair_weight(
          t, *pair, temperature_k,
          rate_with_walls(t, pair->row, a, rate_per_ps[pair->row], radius_nm),
          rate_with_walls(t, pair->other, a, rate_per_ps[pair->other], radius_nm));
      sum += (pair->row == pair->other ? 1.0 : 2.0) * weight * dot(a, pair->product_km2_s2 * a);
    }
  }
  return conductivity_scale(t, temperature_k) * sum;
}

}  // namespace

WireConductivity wire_conductivity(const Transport& t, double temperature_k,
                                   const std::vector<double>& rate_per_ps) {
  WireConductivity result = wires_of(t);
  const PhysicalConstants& constants = t.options.constants();
  const int nb = t.modes.n_branches;
  const double scale = conductivity_scale(t, temperature_k);
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
      result.kappa_w_per_mk[static_cast<std::size_t>(axis * n_radii + r)] =
          scale * sum + subspace_part(t, temperature_k, rate_per_ps, a,
                                      result.radius_nm[static_cast<std::size_t>(r)]);
    }
  return result;
}

namespace {

/// The scattering of one wire axis, on the rows of the wire's symmetry.
class WireAxis {
 public:
  WireAxis(const Transport& bulk, const SparseForceConstants& third_order,
           const ConductivityRun& run, const WireScattering& scattering, const Vec3& axis)
      : bulk_(bulk),
        run_(run),
        scattering_(scattering),
        axis_(axis),
        along_(symmetry_along(bulk.symmetry, axis)),
        t_{bulk.crystal, along_, run.modes, bulk.options},
        problem_(make_three_phonon_problem(bulk.crystal, third_order, along_, run.modes,
                                           scattering.three_phonon)),
        iterated_(scattering.iterated_along ? scattering.iterated_along(along_)
                                            : FurtherScattering{}) {}

  void load(const Device& device, Progress& progress) {
    kernels_ = make_three_phonon_sums(device);
    kernels_->load(problem_);
    kernels_->rates(bulk_.options.temperatures_k, true, progress);
  }

  /// Prepares the diagonal of the operator and the mean free paths across the axis.
  void set_temperature(std::size_t k) {
    k_ = k;
    diagonal_ = kernels_->row_rates(temperature_k(), OccupationForm::kSymmetric);
    if (bulk_.options.harmonic.average_degenerate)
      average_over_subspaces(run_.modes, along_.irreducible, 1, diagonal_.data());
    if (iterated_.in_scattering) {
      const std::vector<double> more = iterated_.diagonal_per_ps(k);
      for (std::size_t row = 0; row < diagonal_.size(); ++row) diagonal_[row] += more[row];
    }
    const std::vector<double>& bulk_per_ps = run_.by_temperature[k].rate_per_ps;
    path_nm_.assign(diagonal_.size(), 0.0);
    for (std::int64_t row = 0; row < t_.n_rows(); ++row) {
      const std::size_t bulk = bulk_row(row);
      const auto at = static_cast<std::size_t>(row);
      if (!run_.isotope_per_ps.empty()) diagonal_[at] += run_.isotope_per_ps[bulk];
      if (!iterated_.in_scattering && !scattering_.relaxation_per_ps.empty())
        diagonal_[at] += scattering_.relaxation_per_ps[k * bulk_per_ps.size() + bulk];
      const double* v =
          &run_.modes.velocity_km_s[static_cast<std::size_t>(t_.mode_of_row(row) * 3)];
      if (bulk_per_ps[bulk] > 0.0)
        path_nm_[at] = speed_across({v[0], v[1], v[2]}, axis_) / bulk_per_ps[bulk];
    }
  }

  /// κ along the axis of a wire of one radius.
  double kappa_w_per_mk(double radius_nm, Progress& progress) const {
    CollisionOperator collision{
        .diagonal_per_ps = diagonal_, .in_scattering = {}, .symmetric = true};
    for (std::size_t row = 0; row < diagonal_.size(); ++row)
      collision.diagonal_per_ps[row] /= diffuse_wire_reduction(path_nm_[row], radius_nm);
    collision.in_scattering = [this](const std::vector<double>& f) {
      std::vector<double> out =
          kernels_->apply_collision(temperature_k(), OccupationForm::kSymmetric, f);
      if (iterated_.in_scattering) {
        const std::vector<double> more = iterated_.in_scattering(k_, f);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] += more[i];
      }
      return out;
    };
    const IterativeSolution solution = solve_bte(t_, temperature_k(), collision, progress);
    return dot(axis_, total(mode_conductivity(t_, temperature_k(), solution.f)) * axis_) +
           subspace_part(bulk_, temperature_k(), run_.by_temperature[k_].rate_per_ps, axis_,
                         radius_nm);
  }

 private:
  double temperature_k() const { return bulk_.options.temperatures_k[k_]; }
  /// Row of the bulk crystal in the same star.
  std::size_t bulk_row(std::int64_t row) const {
    const std::int64_t nb = run_.modes.n_branches;
    const std::int64_t star = bulk_.symmetry.star_of[static_cast<std::size_t>(
        along_.irreducible[static_cast<std::size_t>(row / nb)])];
    return static_cast<std::size_t>(star * nb + row % nb);
  }

  const Transport& bulk_;
  const ConductivityRun& run_;
  const WireScattering& scattering_;
  Vec3 axis_;
  Symmetry along_;
  Transport t_;
  ThreePhononProblem problem_;
  FurtherScattering iterated_;
  std::unique_ptr<ThreePhononSums> kernels_;
  std::size_t k_ = 0;             ///< number of the temperature
  std::vector<double> diagonal_;  ///< [n_rows] 1/ps, without the walls
  std::vector<double> path_nm_;   ///< [n_rows] across the axis
};

}  // namespace

std::vector<WireConductivity> converged_wires(const Transport& bulk,
                                              const SparseForceConstants& third_order,
                                              const ConductivityRun& run,
                                              const WireScattering& scattering,
                                              const Device& device, Progress& progress) {
  const std::size_t n_t = bulk.options.temperatures_k.size();
  std::vector<WireConductivity> result(n_t, wires_of(bulk));
  const std::size_t n_radii = result[0].radius_nm.size();
  for (std::size_t axis = 0; axis < result[0].axis.size(); ++axis) {
    WireAxis wire(bulk, third_order, run, scattering, result[0].axis[axis]);
    wire.load(device, progress);
    for (std::size_t k = 0; k < n_t; ++k) {
      wire.set_temperature(k);
      for (std::size_t r = 0; r < n_radii; ++r)
        result[k].kappa_w_per_mk[axis * n_radii + r] =
            wire.kappa_w_per_mk(result[k].radius_nm[r], progress);
    }
  }
  return result;
}

}  // namespace quasi::thermal
