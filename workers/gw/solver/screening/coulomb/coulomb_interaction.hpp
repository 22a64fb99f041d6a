#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "workers/gw/input/text_files.hpp"
#include "workers/gw/model/coulomb_options.hpp"
#include "workers/gw/physics/crystal.hpp"
#include "workers/gw/solver/screening/coulomb/mini_zone.hpp"
#include "workers/gw/solver/screening/coulomb/truncated_coulomb.hpp"

// Begin here for the Coulomb interaction. mini_zone.hpp averages it over the mini-zone,
// truncated_coulomb.hpp cuts it to a wire or a box, and planar_cell.hpp integrates over a plane.
namespace quasi::gw {

/// The Coulomb interaction (docs/theory/gw.md 5): v(q+G) for ε, and its mini-zone average v̄(q+G)
/// for Σ. Ry Bohr³.
class CoulombInteraction {
 public:
  CoulombInteraction(const Crystal& crystal, const IVec3& q_grid, const CoulombOptions& options);

  /// Returns v(q+G) itself. Without truncation q + G must not be 0.
  double plain(const Vec3& q, const IVec3& g) const;
  /// Returns ⟨v(q+G+p)⟩ over the mini-zone, also for q = G = 0.
  double averaged(const Vec3& q, const IVec3& g) const;
  /// Returns ⟨8π/|q+p|⟩ over the mini-zone, for the wings of W at q ≠ 0.
  double averaged_inverse(const Vec3& q) const;
  /// Returns W_00 / v̄_00 at q → 0 from ε⁻¹_00(q₀; ω). This is ε⁻¹_00 itself except for a slab and a
  /// wire. There 1/ε⁻¹ − 1 = γ q² v_c(q) vanishes at q → 0 within the mini-zone, and W is averaged
  /// as a whole (docs/theory/gw.md 5).
  std::complex<double> head_at_zero(std::complex<double> inverse_head, const Vec3& q0) const;
  /// @throws InvalidInput if q₀ leaves the plane of a slab or the axis of a wire, where
  /// head_at_zero() knows no limit
  void require_direction(const Vec3& q0) const;
  /// @throws InvalidInput if the charge reaches beyond half of the cell along a truncated axis.
  void require_charge_inside(const std::vector<IVec3>& g,
                             const std::vector<std::complex<double>>& density) const;
  /// Returns true if W's head at q → 0 is ε⁻¹_00 v̄₀ with vanishing wings (semiconductor in three
  /// dimensions).
  bool averages() const { return options_.truncation == Truncation::kNone; }
  const CoulombOptions& options() const { return options_; }
  const MiniZone& mini_zone() const { return mini_zone_; }

 private:
  Vec3 cartesian(const Vec3& k) const;
  double slab(const Vec3& k_cartesian) const;
  /// Half the mini-zone of a wire along its axis.
  double half_edge_per_bohr() const;
  double average(const Vec3& k) const;
  /// Averages by k that were computed earlier. Every sum over the zone and every iteration of an
  /// outer loop needs them again.
  struct Known {
    std::mutex mutex;
    std::map<std::array<std::int64_t, 3>, double> square, inverse;
  };
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
  Crystal crystal_;
  CoulombOptions options_;
  IVec3 q_grid_;
  MiniZone mini_zone_;
  std::optional<CoulombTable> table_;
  // Tables of the truncations are shared, because they are large and constant.
  std::shared_ptr<const PlanarCell> planar_zone_;
  std::shared_ptr<const WireCoulomb> wire_;
  std::shared_ptr<const BoxCoulomb> box_;
  Vec3 normal_{};
  double half_length_bohr_ = 0.0;
};

}  // namespace quasi::gw
