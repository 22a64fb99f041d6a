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
#include "workers/gw/physics/coulomb.hpp"
#include "workers/gw/physics/crystal.hpp"
#include "workers/gw/solver/screening/coulomb/mini_zone.hpp"
#include "workers/gw/solver/screening/coulomb/planar_cell.hpp"
#include "workers/gw/solver/screening/coulomb/punctured_grid.hpp"
#include "workers/gw/solver/screening/coulomb/sheet_screening.hpp"
#include "workers/gw/solver/screening/coulomb/truncated_coulomb.hpp"

// Begin here for the Coulomb interaction. punctured_grid.hpp has the weights of q → 0 in sums over
// the q-grid, mini_zone.hpp averages over the mini-zone, truncated_coulomb.hpp cuts the interaction
// to a wire or a box, and planar_cell.hpp integrates over a plane.
namespace quasi::gw {

/// The Coulomb interaction (docs/theory/gw.md 5): v(q+G) for ε, and its mini-zone average v̄(q+G)
/// for Σ. Ry Bohr³.
class CoulombInteraction {
 public:
  CoulombInteraction(const Crystal& crystal, const IVec3& q_grid, const CoulombOptions& options);

  /// Returns v(q+G) itself. Without truncation q + G must not be 0.
  double plain(const Vec3& q, const IVec3& g) const;
  /// Returns v̄(q+G), also for q = G = 0: v itself and the weight of q → 0 with sums_points(), else
  /// ⟨v(q+G+p)⟩ over the mini-zone.
  double averaged(const Vec3& q, const IVec3& g) const;
  /// Returns ⟨8π/|q+p|⟩ over the mini-zone, for the wings of W at q ≠ 0.
  double averaged_inverse(const Vec3& q) const;
  /// Returns W_00 / v̄_00 at q → 0 from ε⁻¹_00(q₀; ω). This is ε⁻¹_00 itself except for a slab and a
  /// wire. There 1/ε⁻¹ − 1 = γ q² v_c(q) vanishes at q → 0 within the mini-zone, and W is averaged
  /// as a whole (docs/theory/gw.md 5). The γ of a slab depends on the length of q with `samples`
  /// of ε⁻¹_00(q; ω), else it is that of q₀.
  std::complex<double> head_at_zero(std::complex<double> inverse_head, const Vec3& q0,
                                    const std::vector<HeadSample>& samples = {}) const;
  /// Returns the weight of q → 0 for p² W_00(p) with sums_points() in a slab, Ry Bohr: by how
  /// much the integral over p exceeds the sum over the grid, where that product vanishes at p = 0.
  double curvature_weight(std::complex<double> inverse_head, const Vec3& q0,
                          const std::vector<HeadSample>& samples) const;
  /// Returns the q of the samples of a slab, reduced: CoulombOptions::subsampling of them along
  /// q₀.
  std::vector<Vec3> sample_points(const Vec3& q0) const;
  /// @throws InvalidInput if q₀ leaves the plane of a slab or the axis of a wire, where
  /// head_at_zero() knows no limit
  void require_direction(const Vec3& q0) const;
  /// @throws InvalidInput if the charge reaches beyond half of the cell along a truncated axis.
  void require_charge_inside(const std::vector<IVec3>& g,
                             const std::vector<std::complex<double>>& density) const;
  /// Returns true if W's head at q → 0 is ε⁻¹_00 v̄₀ with vanishing wings (semiconductor in three
  /// dimensions).
  bool averages() const { return options_.truncation == Truncation::kNone; }
  /// Returns true if sums take W at the points of the q-grid (ZoneSum::kPoints). A grid so
  /// elongated that the weight of q → 0 is less than a fifth of the average over its mini-zone is
  /// summed by mini-zones.
  bool sums_points() const { return sums_points_; }
  const CoulombOptions& options() const { return options_; }
  const MiniZone& mini_zone() const { return mini_zone_; }
  const PuncturedGrid& punctured_grid() const { return punctured_; }

 private:
  Vec3 cartesian(const Vec3& k) const;
  double slab(const Vec3& k_cartesian) const;
  /// γ(p) from ε⁻¹_00 at q₀, the limit p → 0, and at samples.
  SheetScreening screening_of(std::complex<double> inverse_head, const Vec3& q0,
                              const std::vector<HeadSample>& samples) const;
  /// γ of a slab or a wire from ε⁻¹_00(q), Bohr² for a wire and Bohr for a slab.
  std::complex<double> gamma_of(std::complex<double> inverse_head, const Vec3& q) const;
  /// Average of f(v(p), p) at q → 0 of a slab, over its mini-zone or as sums_points() has it.
  template <typename F>
  auto average_in_plane(const F& f) const {
    const auto of_length = [&](double p) { return f(coulomb_slab(p, 0.0, half_length_bohr_), p); };
    if (sums_points_) return punctured_plane_->weight(of_length);
    return planar_zone_->integral(kMiniZoneOrder, [&](const Vec3& p) {
      return of_length(std::sqrt(dot(p, p)));
    }) / planar_zone_->area();
  }
  static constexpr int kMiniZoneOrder = 24;
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
  PuncturedGrid punctured_;
  bool sums_points_ = false;
  std::optional<CoulombTable> table_;
  // Tables of the truncations are shared, because they are large and constant.
  std::shared_ptr<const PlanarCell> planar_zone_;
  std::shared_ptr<const PuncturedPlane> punctured_plane_;
  std::shared_ptr<const WireCoulomb> wire_;
  std::shared_ptr<const BoxCoulomb> box_;
  Vec3 normal_{};
  double half_length_bohr_ = 0.0;
};

}  // namespace quasi::gw
