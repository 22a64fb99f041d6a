#pragma once

#include <complex>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "workers/gw/physics/crystal.hpp"
#include "workers/gw/solver/screening/coulomb/mini_zone.hpp"
#include "workers/gw/solver/screening/coulomb/planar_cell.hpp"

namespace quasi::gw {

/// The interaction 2/r cut to the Wigner–Seitz cell of the lattice (a molecule; docs/theory/gw.md
/// 5): v(k) = ∫_WS 2/r cos(k·r) d³r, Ry Bohr³.
///
/// The cell is cut into pyramids. Along a ray to the face point f the radius is integrated
/// analytically, ∫₀¹ s cos(s k·f) ds / |f|. The faces are integrated by Gauss–Legendre of an order
/// that follows |k|.
class BoxCoulomb {
 public:
  explicit BoxCoulomb(const Crystal& crystal);
  double operator()(const Vec3& k_cartesian) const;
  double inscribed_radius() const { return cell_.inscribed_radius(); }

 private:
  MiniZone cell_;
};

/// The interaction 2/r cut to the Wigner–Seitz cell of the cross-section and periodic along the
/// third axis (a wire; docs/theory/gw.md 5) [ismailbeigi2006]:
///   v(k) = 4 ∫_WS K₀(|k_z| ρ) cos(k_⊥·ρ) d²ρ,   −4 ∫_WS ln ρ cos(k_⊥·ρ) d²ρ at k_z = 0.
/// At k = 0 the logarithm's zero of energy is arbitrary, and no value is given. Values of K₀ are
/// stored for each |k_z|.
class WireCoulomb {
 public:
  explicit WireCoulomb(const Crystal& crystal);
  /// Returns v(k) for k ≠ 0.
  double operator()(const Vec3& k_cartesian) const;
  /// Returns the mean of f(v(k_z), k_z) over −half < k_z < half at k_⊥ = 0.
  template <typename F>
  auto mean_along_axis(double half_per_bohr, const F& f) const {
    // With k_z = half·u³ the logarithm at 0 is harmless.
    const GaussLegendre gauss(16);
    decltype(f(0.0, 0.0)) sum{};
    for (std::size_t i = 0; i < gauss.node.size(); ++i) {
      const double u = gauss.node[i], k_z = half_per_bohr * u * u * u;
      sum += gauss.weight[i] * 3.0 * u * u * f((*this)(k_z * axis_), k_z);
    }
    return sum;
  }
  double inscribed_radius() const { return cell_.inscribed_radius(); }

 private:
  struct Weighted {
    Vec3 at;
    double weight;  ///< includes 4 K₀ or −4 ln ρ
  };
  const std::vector<Weighted>& kernel(double k_z, int order) const;
  Vec3 axis_{};
  PlanarCell cell_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<long long, int>, std::vector<Weighted>> kernels_;
};

/// Returns true if lattice vector `axis` is perpendicular to the other two.
bool perpendicular_axis(const Crystal& crystal, int axis);

/// Returns the share of the charge that is farther than a quarter of the cell from its centre along
/// any of `axes`. A truncated interaction would miss it. The caller sums ρ(G) over spins.
double charge_outside_half(const std::vector<IVec3>& g,
                           const std::vector<std::complex<double>>& density,
                           const std::vector<int>& axes);

}  // namespace quasi::gw
