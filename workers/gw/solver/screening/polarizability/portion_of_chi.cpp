#include <algorithm>
#include <stdexcept>
#include <utility>

#include "workers/gw/solver/screening/polarizability/packed_chi.hpp"
#include "workers/gw/solver/screening/polarizability/polarizability.hpp"

// Calculates one portion of χ on one device.
namespace quasi::gw {
namespace {

std::vector<std::int32_t> positions(const std::vector<IVec3>& g, const std::array<int, 3>& box) {
  std::vector<std::int32_t> at(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) at[i] = box_position(g[i], box);
  return at;
}

}  // namespace

/// Sums one portion of χ, or some slices of χ(0), on one device. It adds one unit (a k-point and
/// a block of bands) after another.
class Polarizability::PortionSum {
 public:
  /// @param slices  slices to sum; null for the sum of a portion of χ
  PortionSum(const Polarizability& chi, GwKernels& kernels, StepClock& clock,
             const std::vector<ElementRows>* slices = nullptr);
  /// Adds the pairs of one unit.
  void add(const Unit& unit);
  std::unique_ptr<PartialChi> finish() { return sum_->finish(); }
  std::vector<ChiSlice> finish_slices() { return sliced_->finish(); }

 private:
  /// The two k-points of a unit as rotations of irreducible points.
  struct Points {
    Rotation occupied, empty;
  };
  /// Factors of the pairs of a unit: 4/(N_k Ω) times the factor of the energies.
  struct Weights {
    std::vector<double> at_zero;       ///< at ω = 0, [n_v][n_c]
    std::vector<Cplx> at_frequencies;  ///< [n_other][n_v][n_c]
  };

  void load_sphere();
  void load_occupied(const Unit& unit, const Rotation& rotation);
  void load_empty(const Unit& unit, const Rotation& rotation);
  std::vector<Cplx> heads_of(const Unit& unit);
  Weights weights_of(const Unit& unit, const Points& points) const;
  void add_static(const BandSelection& occupied, const BandSelection& empty,
                  View<const double, 2> weight, View<const Cplx, 3> heads);

  int n_occupied(const Unit& unit) const {
    return chi_.field_.n_occupied_of_spin[static_cast<std::size_t>(unit.spin)];
  }
  bool projects() const { return !chi_.basis_.empty(); }
  /// True if the products of a unit are used more than once and are therefore stored.
  bool stores_products() const { return projects() || n_other_ > 0; }

  const Polarizability& chi_;
  GwKernels& kernels_;
  StepClock& clock_;
  const Wavefunctions& occupied_waves_;  ///< at k + q
  const BrillouinZone& occupied_zone_;
  std::int64_t n_basis_ = 0;  ///< rows of χ at the frequencies other than 0
  std::int64_t n_other_ = 0;  ///< frequencies other than 0 that this portion sums
  std::array<int, 3> box_;
  Resident& resident_;
  std::unique_ptr<ChiSum> sum_;           ///< null where slices are summed
  std::unique_ptr<SlicedChiSum> sliced_;  ///< null where a portion is summed
  bool counts_pairs_ = true;              ///< pairs count once, with the first slice
  std::unique_ptr<PairBlock> block_;
  std::unique_ptr<const LoadedBands> occupied_bands_;
};

Polarizability::PortionSum::PortionSum(const Polarizability& chi, GwKernels& kernels,
                                       StepClock& clock, const std::vector<ElementRows>* slices)
    : chi_(chi),
      kernels_(kernels),
      clock_(clock),
      occupied_waves_(chi.uses_shifted_states() ? *chi.field_.shifted : chi.field_.waves),
      occupied_zone_(chi.uses_shifted_states() ? *chi.field_.shifted_zone : chi.field_.zone),
      box_(chi.box()),
      resident_(chi.resident(kernels)) {
  const std::int64_t n_g = chi.edge_;
  n_basis_ = projects() ? static_cast<std::int64_t>(chi.basis_.size()) / n_g : n_g;
  // With a subspace the first sweep is static, and the second one sums all other frequencies.
  n_other_ = chi.options_.subspace.wanted() && !projects()
                 ? 0
                 : static_cast<std::int64_t>(chi.options_.frequencies_ry.size()) - 1;
  if (resident_.sphere == nullptr) load_sphere();
  block_ = kernels.pair_products().make_block();
  if (slices != nullptr) {
    if (stores_products()) throw std::logic_error("slices of χ have no other frequencies");
    sliced_ = kernels.polarizability().start_slices(n_g, *slices);
    counts_pairs_ = slices->front().begin == 0;
    return;
  }
  sum_ = kernels.polarizability().start({.n_static = projects() ? 0 : n_g,
                                         .n_frequencies = n_other_,
                                         .n = n_other_ > 0 ? n_basis_ : 0});
}

void Polarizability::PortionSum::load_sphere() {
  auto index = positions(chi_.at_.sphere.g, box_);
  index.insert(index.begin(), static_cast<std::size_t>(chi_.n_heads_ - 1), index[0]);
  resident_.sphere =
      kernels_.pair_products().load_sphere(box_, view<const std::int32_t>(index, chi_.edge_), {});
}

void Polarizability::PortionSum::load_occupied(const Unit& unit, const Rotation& rotation) {
  const RotatedWaves waves =
      rotated_waves(occupied_waves_, occupied_zone_.operations(), rotation, unit.spin,
                    static_cast<int>(unit.valence.begin), static_cast<int>(unit.valence.end));
  const auto index = positions(waves.g, box_);
  occupied_bands_ = {};  // its memory is free before the next bands take as much
  occupied_bands_ = kernels_.pair_products().load_bands(
      box_, waves.coefficients, view<const std::int32_t>(index, index.size()));
}

/// Loads the empty bands of a unit unless the unit before has left them on the device.
void Polarizability::PortionSum::load_empty(const Unit& unit, const Rotation& rotation) {
  const bool same_k = resident_.empty_bands != nullptr && resident_.orbit == unit.orbit &&
                      resident_.spin == unit.spin;
  if (same_k && resident_.conduction.begin == unit.conduction.begin) return;
  const auto first = chi_.first_empty(unit.spin) + unit.conduction.begin;
  const RotatedWaves waves =
      rotated_waves(chi_.field_.waves, chi_.field_.zone.operations(), rotation, unit.spin,
                    static_cast<int>(first), static_cast<int>(first + unit.conduction.size()));
  const auto index = positions(waves.g, box_);
  if (!same_k) resident_.dipole.clear();
  resident_.empty_bands = {};  // its memory is free before the next bands take as much
  resident_.empty_bands = kernels_.pair_products().load_bands(
      box_, waves.coefficients, view<const std::int32_t>(index, index.size()));
  resident_.orbit = unit.orbit;
  resident_.spin = unit.spin;
  resident_.conduction = unit.conduction;
}

/// M_vc of the plane waves that stand for G = 0, by k·p; [n_heads][n_v][n_c].
std::vector<Cplx> Polarizability::PortionSum::heads_of(const Unit& unit) {
  const std::vector<Cplx>* dipole = chi_.dipoles_.shared(unit.orbit, unit.spin);
  if (dipole == nullptr) {
    if (resident_.dipole.empty())
      resident_.dipole = chi_.dipoles_.calculate(chi_.wedge_[unit.orbit], unit.spin, kernels_);
    dipole = &resident_.dipole;
  }
  const std::int64_t n_v = n_occupied(unit),
                     n_c = chi_.options_.bands - chi_.first_empty(unit.spin);
  std::vector<Cplx> heads;
  for (std::int64_t i = 0; i < chi_.n_heads_; ++i)
    for (std::int64_t v = unit.valence.begin; v < unit.valence.end; ++v) {
      const auto row = dipole->begin() + (i * n_v + v) * n_c + unit.conduction.begin;
      heads.insert(heads.end(), row, row + unit.conduction.size());
    }
  return heads;
}

Polarizability::PortionSum::Weights Polarizability::PortionSum::weights_of(
    const Unit& unit, const Points& points) const {
  const MeanField& field = chi_.field_;
  const double prefactor = 4.0 / (field.n_spins() * field.n_spinor() * field.zone_volume_bohr3());
  const std::int64_t n_v = unit.valence.size(), n_c = unit.conduction.size();
  const std::int64_t first_c = chi_.first_empty(unit.spin) + unit.conduction.begin;
  Weights weights;
  weights.at_zero.resize(static_cast<std::size_t>(n_v * n_c));
  weights.at_frequencies.resize(weights.at_zero.size() * static_cast<std::size_t>(n_other_));
  const double scale = prefactor * static_cast<double>(chi_.wedge_[unit.orbit].size);
  for (std::int64_t v = 0; v < n_v; ++v)
    for (std::int64_t c = 0; c < n_c; ++c) {
      const double delta =
          occupied_waves_.energy(unit.spin, points.occupied.irreducible,
                                 static_cast<int>(unit.valence.begin + v)) -
          field.waves.energy(unit.spin, points.empty.irreducible, static_cast<int>(first_c + c));
      const auto pair = static_cast<std::size_t>(v * n_c + c);
      weights.at_zero[pair] = scale / delta;
      for (std::int64_t f = 0; f < n_other_; ++f) {
        const Cplx omega = chi_.options_.frequencies_ry[static_cast<std::size_t>(f + 1)];
        weights.at_frequencies[static_cast<std::size_t>(f) * weights.at_zero.size() + pair] =
            0.5 * scale * (1.0 / (delta - omega) + 1.0 / (delta + omega));
      }
    }
  return weights;
}

/// Adds pairs to χ(0) straight from their bands, without storing the products.
void Polarizability::PortionSum::add_static(const BandSelection& occupied,
                                            const BandSelection& empty,
                                            View<const double, 2> weight,
                                            View<const Cplx, 3> heads) {
  PairSum& sum = sliced_ != nullptr ? static_cast<PairSum&>(*sliced_) : *sum_;
  const auto report = sum.add_pairs({occupied, empty, *resident_.sphere, weight, heads}, {});
  if (chi_.profile_ == nullptr) return;
  chi_.profile_->add("transforms_on_device", report.transform_seconds);
  chi_.profile_->add("products_on_device", report.product_seconds);
  if (counts_pairs_) chi_.profile_->count(weight.size(), report.real);
}

void Polarizability::PortionSum::add(const Unit& unit) {
  const Vec3& k =
      chi_.field_.zone.points()[static_cast<std::size_t>(chi_.wedge_[unit.orbit].representative)].k;
  const Points points{
      .occupied = occupied_zone_.rotation_to(chi_.by_velocity() ? k : k + chi_.at_.q),
      .empty = chi_.field_.zone.rotation_to(k)};
  const std::int64_t n_v = unit.valence.size(), n_c = unit.conduction.size();
  load_occupied(unit, points.occupied);
  load_empty(unit, points.empty);
  clock_.step("wavefunctions");
  const BandSelection occupied{*occupied_bands_, {0, n_v}}, empty{*resident_.empty_bands, {0, n_c}};
  if (stores_products()) kernels_.pair_products().fill(occupied, empty, *resident_.sphere, *block_);
  clock_.step("pair_products");
  std::vector<Cplx> heads;
  if (chi_.by_velocity()) {
    heads = heads_of(unit);
    for (std::int64_t i = 0; i < chi_.n_heads_ && stores_products(); ++i)
      block_->replace_plane_wave(i, {heads.data() + i * n_v * n_c, {n_v, n_c}});
  }
  clock_.step("velocity");
  const Weights weights = weights_of(unit, points);
  const auto at_zero = view<const double>(weights.at_zero, n_v, n_c);
  if (projects())
    block_->project(view<const Cplx>(chi_.basis_, chi_.edge_, n_basis_));
  else if (stores_products())
    sum_->add(*block_, at_zero);
  else
    add_static(occupied, empty, at_zero,
               chi_.by_velocity() ? view<const Cplx>(heads, chi_.n_heads_, n_v, n_c)
                                  : View<const Cplx, 3>{});
  if (n_other_ > 0)
    sum_->add_at_frequencies(*block_, view<const Cplx>(weights.at_frequencies, n_other_, n_v, n_c));
  clock_.step("polarizability");
}

std::unique_ptr<PartialChi> Polarizability::portion(std::int64_t index, GwKernels& kernels,
                                                    Progress& progress) const {
  StepClock clock(profile_);
  PortionSum sum(*this, kernels, clock);
  clock.step("prepare");
  const auto n_units = static_cast<std::int64_t>(units_.size());
  for (std::int64_t u = index * n_units / portions_; u < (index + 1) * n_units / portions_; ++u) {
    sum.add(units_[static_cast<std::size_t>(u)]);
    progress.throw_if_cancelled();
  }
  auto chi = sum.finish();
  if (!fits_device()) {
    if (auto triangle = chi->packed_triangle()) {
      chi = std::make_unique<PackedSum>(chi->shape(), std::move(*triangle));
    } else {
      // One device at a time unpacks, because the unpacked values take most of the host's memory.
      const std::lock_guard lock(residents_->packing);
      chi = std::make_unique<PackedSum>(*chi);
    }
  }
  clock.step("take");
  return chi;
}

std::vector<ChiSlice> Polarizability::slices(const std::vector<ElementRows>& slices,
                                             GwKernels& kernels, Progress& progress) const {
  StepClock clock(profile_);
  PortionSum sum(*this, kernels, clock, &slices);
  clock.step("prepare");
  for (const Unit& unit : units_) {
    sum.add(unit);
    progress.throw_if_cancelled();
  }
  std::vector<ChiSlice> found = sum.finish_slices();
  clock.step("take");
  return found;
}

}  // namespace quasi::gw
