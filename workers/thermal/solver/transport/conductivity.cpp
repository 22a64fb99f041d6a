#include "workers/thermal/solver/transport/conductivity.hpp"

#include <algorithm>
#include <cmath>

#include "workers/thermal/physics/broadening.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/harmonic/isotope.hpp"

namespace quasi::thermal {
namespace {

Vec3 velocity(const Transport& t, std::int64_t mode) {
  const double* v = &t.modes.velocity_km_s[static_cast<std::size_t>(mode * 3)];
  return {v[0], v[1], v[2]};
}

Mat3 outer(double scale, const Vec3& a, const Vec3& b) {
  return {scale * a[0] * b, scale * a[1] * b, scale * a[2] * b};
}

void add(Mat3& sum, const Mat3& term) {
  for (int i = 0; i < 3; ++i) sum[i] = sum[i] + term[i];
}

}  // namespace

double Transport::speed_km_s(std::int64_t row) const {
  const Vec3 v = velocity(*this, mode_of_row(row));
  const Mat3 variance = velocity_variance(row);
  return std::sqrt(dot(v, v) + (variance[0][0] + variance[1][1] + variance[2][2]));
}

double conductivity_scale(const Transport& t, double temperature_k) {
  const PhysicalConstants& constants = t.options.constants();
  // ħ² in 1e-68, k_B in 1e-23, (rad/ps)² (nm/ps)² ps / nm³ = 1e45 in SI: the powers of ten cancel.
  return constants.hbar_1e34_j_s * constants.hbar_1e34_j_s / constants.kb_1e23_j_k /
         (temperature_k * temperature_k * t.crystal.volume_nm3() *
          static_cast<double>(t.modes.n_q));
}

std::vector<double> relaxation_time_field(const Transport& t,
                                          const std::vector<double>& rate_per_ps) {
  std::vector<double> f(static_cast<std::size_t>(t.n_rows() * 3), 0.0);
  for (std::int64_t row = 0; row < t.n_rows(); ++row) {
    if (!t.conducts(row) || !(rate_per_ps[row] > 0.0)) continue;
    const std::int64_t mode = t.mode_of_row(row);
    const Vec3 v = velocity(t, mode);
    for (int d = 0; d < 3; ++d)
      f[row * 3 + d] = t.modes.omega_rad_ps[mode] * v[d] / rate_per_ps[row];
  }
  return f;
}

std::vector<Mat3> mode_conductivity(const Transport& t, double temperature_k,
                                    const std::vector<double>& f) {
  const PhysicalConstants& constants = t.options.constants();
  const double scale = conductivity_scale(t, temperature_k);
  std::vector<Mat3> kappa(static_cast<std::size_t>(t.n_rows()), Mat3{});
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < t.n_rows(); ++row) {
    if (!t.conducts(row)) continue;
    const std::int64_t mode = t.mode_of_row(row);
    const double omega = t.modes.omega_rad_ps[mode];
    const double n = bose_einstein(omega, temperature_k, constants.hbar_over_kb_k_ps());
    const double weight =
        scale * t.symmetry.multiplicity[row / t.modes.n_branches] * n * (n + 1.0) * omega;
    kappa[row] = outer(weight, velocity(t, mode), Vec3{f[row * 3], f[row * 3 + 1], f[row * 3 + 2]});
    if (t.symmetry.folded) kappa[row] = t.symmetry.symmetrised(kappa[row]);
  }
  return kappa;
}

Mat3 total(const std::vector<Mat3>& tensors) {
  Mat3 sum{};
  for (const Mat3& tensor : tensors) add(sum, tensor);
  return sum;
}

double heat_capacity_j_m3_k(const Transport& t, double temperature_k) {
  const PhysicalConstants& constants = t.options.constants();
  double sum = 0.0;
  for (std::int64_t mode = 0; mode < t.modes.n_modes(); ++mode)
    if (t.modes.omega_rad_ps[mode] == 0.0)
      sum += 1.0;  // the limit: the translations stand for the long waves around Γ
    else if (t.modes.active(mode, t.options.omega_max_rad_ps))
      sum += heat_capacity_kb(t.modes.omega_rad_ps[mode], temperature_k,
                              constants.hbar_over_kb_k_ps());
  return constants.kb_1e23_j_k * 1e4 * sum /
         (t.crystal.volume_nm3() * static_cast<double>(t.modes.n_q));
}

Mat3 small_grain_w_per_mk_nm(const Transport& t, double temperature_k) {
  const PhysicalConstants& constants = t.options.constants();
  Mat3 sum{};
  for (std::int64_t row = 0; row < t.n_rows(); ++row) {
    if (!t.conducts(row)) continue;
    const std::int64_t mode = t.mode_of_row(row);
    const Vec3 v = velocity(t, mode);
    const double speed = t.speed_km_s(row);
    if (speed == 0.0) continue;
    const double weight =
        heat_capacity_kb(t.modes.omega_rad_ps[mode], temperature_k, constants.hbar_over_kb_k_ps()) *
        t.symmetry.multiplicity[row / t.modes.n_branches] / speed;
    Mat3 mean = outer(weight, v, v);
    const Mat3 variance = t.velocity_variance(row);
    for (int i = 0; i < 3; ++i) mean[i] = mean[i] + weight * variance[i];
    add(sum, mean);
  }
  // k_B 1e-23 · (nm/ps = 1e3 m/s) / nm³ (1e27) per metre of grain, then per nm.
  const double scale =
      constants.kb_1e23_j_k * 1e-2 / (t.crystal.volume_nm3() * static_cast<double>(t.modes.n_q));
  if (t.symmetry.folded) sum = t.symmetry.symmetrised(sum);
  for (Vec3& row : sum) row = scale * row;
  return sum;
}

std::vector<double> mean_free_path_nm(const Transport& t, const std::vector<double>& f,
                                      const std::vector<double>& rate_per_ps) {
  std::vector<double> path(static_cast<std::size_t>(t.n_rows()), 0.0);
  for (std::int64_t row = 0; row < t.n_rows(); ++row) {
    if (!t.conducts(row)) continue;
    const std::int64_t mode = t.mode_of_row(row);
    const Vec3 v = velocity(t, mode);
    const double speed = t.speed_km_s(row);
    if (!(speed > 0.0)) continue;
    const double omega = t.modes.omega_rad_ps[mode];
    double along = dot(v, {f[row * 3], f[row * 3 + 1], f[row * 3 + 2]});
    const Mat3 variance = t.velocity_variance(row);
    if (rate_per_ps[row] > 0.0)
      along += omega * (variance[0][0] + variance[1][1] + variance[2][2]) / rate_per_ps[row];
    path[row] = along / (omega * speed);
  }
  return path;
}

namespace {

/// Sums the rows whose key is below each tick.
std::vector<Mat3> accumulate_below(const std::vector<double>& ticks, const std::vector<double>& key,
                                   const std::vector<Mat3>& by_row) {
  std::vector<Mat3> sums(ticks.size(), Mat3{});
  for (std::size_t row = 0; row < by_row.size(); ++row) {
    const auto at = std::upper_bound(ticks.begin(), ticks.end(), key[row]) - ticks.begin();
    if (at < static_cast<std::ptrdiff_t>(ticks.size()))
      add(sums[static_cast<std::size_t>(at)], by_row[row]);
  }
  for (std::size_t tick = 1; tick < ticks.size(); ++tick) add(sums[tick], sums[tick - 1]);
  return sums;
}

}  // namespace

Cumulative cumulative_by_path(const Transport& t, const std::vector<Mat3>& by_row,
                              const std::vector<double>& f,
                              const std::vector<double>& rate_per_ps) {
  Cumulative result;
  for (int i = 0; i < t.options.n_ticks; ++i)
    result.abscissa.push_back(std::pow(10.0, 8.0 * i / (t.options.n_ticks - 1) - 2.0));
  result.kappa_w_per_mk =
      accumulate_below(result.abscissa, mean_free_path_nm(t, f, rate_per_ps), by_row);
  return result;
}

namespace {

std::vector<double> omega_ticks(const Transport& t) {
  double low = 1e300;
  double high = 0.0;
  for (std::int64_t row = 0; row < t.n_rows(); ++row) {
    const double omega = t.modes.omega_rad_ps[t.mode_of_row(row)];
    low = std::min(low, omega);
    high = std::max(high, omega);
  }
  high *= 1.1;
  std::vector<double> ticks;
  for (int i = 1; i <= t.options.n_ticks; ++i)
    ticks.push_back(low + (high - low) * i / t.options.n_ticks);
  return ticks;
}

}  // namespace

Cumulative cumulative_by_omega(const Transport& t, const std::vector<Mat3>& by_row) {
  Cumulative result{.abscissa = omega_ticks(t), .kappa_w_per_mk = {}};
  std::vector<double> omega(by_row.size());
  for (std::size_t row = 0; row < by_row.size(); ++row)
    omega[row] = t.modes.omega_rad_ps[t.mode_of_row(static_cast<std::int64_t>(row))];
  result.kappa_w_per_mk = accumulate_below(result.abscissa, omega, by_row);
  return result;
}

std::vector<double> boundary_rates_per_ps(const Transport& t, double length_nm) {
  std::vector<double> rates(static_cast<std::size_t>(t.n_rows()), 0.0);
  if (!(length_nm > 0.0)) return rates;
  for (std::int64_t row = 0; row < t.n_rows(); ++row)
    if (t.conducts(row)) rates[row] = t.speed_km_s(row) / length_nm;
  return rates;
}

DensityOfStates density_of_states(const Transport& t) {
  const int nb = t.modes.n_branches;
  const int n_atoms = t.crystal.n_atoms();
  const ElasticDelta delta(t.crystal, t.symmetry.mesh, t.modes, t.options.harmonic);
  DensityOfStates dos;
  dos.omega_rad_ps = omega_ticks(t);
  const auto n_ticks = static_cast<std::int64_t>(dos.omega_rad_ps.size());
  dos.total_ps.assign(static_cast<std::size_t>(n_ticks), 0.0);
  dos.by_atom_ps.assign(static_cast<std::size_t>(n_ticks * n_atoms), 0.0);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t tick = 0; tick < n_ticks; ++tick)
    for (std::int64_t mode = 0; mode < t.modes.n_modes(); ++mode) {
      const double weight = delta(dos.omega_rad_ps[tick], mode) / static_cast<double>(t.modes.n_q);
      if (weight == 0.0) continue;
      dos.total_ps[tick] += weight;
      for (int c = 0; c < nb; ++c)
        dos.by_atom_ps[tick * n_atoms + c / 3] +=
            weight * std::norm(t.modes.eigenvector[mode * nb + c]);
    }
  return dos;
}

}  // namespace quasi::thermal
