#include "workers/gw/solver/screening/coulomb/truncated_coulomb.hpp"

#include <algorithm>
#include <cmath>
#include <complex>

namespace quasi::gw {
namespace {

/// Returns a Gauss order that resolves a phase over one interval: half a point for each radian and
/// a margin, in steps of 8 so that few rules are made.
int order_for(double phase) { return 8 * static_cast<int>(std::ceil((0.5 * phase + 14.0) / 8.0)); }

double length(const Vec3& v) { return std::sqrt(dot(v, v)); }
Vec3 lattice_vector(const Crystal& crystal, int i) { return crystal.alat_bohr * crystal.avec[i]; }

/// Returns ∫₀¹ s cos(s a) ds.
double radial_moment(double a) {
  if (std::abs(a) < 1e-2) {
    const double a2 = a * a;
    return 0.5 - a2 / 8.0 + a2 * a2 / 144.0 - a2 * a2 * a2 / 5760.0;
  }
  return (std::cos(a) + a * std::sin(a) - 1.0) / (a * a);
}

}  // namespace

BoxCoulomb::BoxCoulomb(const Crystal& crystal)
    : cell_(crystal.avec, crystal.alat_bohr, {1, 1, 1}) {}

double BoxCoulomb::operator()(const Vec3& k) const {
  const int order = order_for(length(k) * cell_.longest_edge());
  return cell_.even_face_integral(
      order, [&](const Vec3& face) { return 2.0 / length(face) * radial_moment(dot(k, face)); });
}

WireCoulomb::WireCoulomb(const Crystal& crystal)
    : axis_((1.0 / length(lattice_vector(crystal, 2))) * lattice_vector(crystal, 2)),
      cell_(lattice_vector(crystal, 0), lattice_vector(crystal, 1)) {}

const std::vector<WireCoulomb::Weighted>& WireCoulomb::kernel(double k_z, int order) const {
  const std::lock_guard lock(mutex_);
  auto& points = kernels_[{std::llround(std::abs(k_z) * 1e12), order}];
  if (!points.empty()) return points;
  cell_.for_each_point(order, [&](const Vec3& at, double weight) {
    const double rho = length(at);
    points.push_back(
        {at, weight * (std::abs(k_z) < 1e-12
                           ? -4.0 * std::log(rho)
                           : 4.0 * std::cyl_bessel_k(0.0, std::min(700.0, std::abs(k_z) * rho)))});
  });
  return points;
}

double WireCoulomb::operator()(const Vec3& k) const {
  const double k_z = dot(k, axis_);
  const auto& points = kernel(k_z,
                              // s = u³ concentrates points near the centre
                              order_for(2.0 * length(k) * cell_.circumscribed_radius()));
  double sum = 0.0;
  for (const Weighted& p : points) sum += p.weight * std::cos(dot(k, p.at));
  return sum;
}

bool perpendicular_axis(const Crystal& crystal, int axis) {
  for (int i = 1; i < 3; ++i) {
    const int other = (axis + i) % 3;
    if (std::abs(crystal.adot[axis][other]) >
        1e-8 * std::sqrt(crystal.adot[axis][axis] * crystal.adot[other][other]))
      return false;
  }
  return true;
}

double charge_outside_half(const std::vector<IVec3>& g,
                           const std::vector<std::complex<double>>& density,
                           const std::vector<int>& axes) {
  double worst = 0.0;
  for (const int axis : axes) {
    // ρ(z) = Σ_n ρ(n) e^{2πi n z} of the planar average. Its centre is the phase of n = 1.
    std::map<int, std::complex<double>> line;
    for (std::size_t i = 0; i < g.size(); ++i) {
      IVec3 rest = g[i];
      rest[axis] = 0;
      if (rest == IVec3{}) line[g[i][axis]] = density[i];
    }
    const double total = line[0].real();
    const double centre = -std::arg(line[1]) / (2.0 * kPi);
    double inside = 0.5 * total;
    for (const auto& [n, rho] : line)
      if (n != 0)
        inside += (rho * std::polar(1.0, 2.0 * kPi * n * centre)).real() * std::sin(0.5 * kPi * n) /
                  (kPi * n);
    worst = std::max(worst, std::abs(1.0 - inside / total));
  }
  return worst;
}

}  // namespace quasi::gw
