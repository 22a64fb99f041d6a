#include "workers/gw/solver/screening/polarizability/polarizability.hpp"

#include <algorithm>
#include <utility>

#include "workers/backend/device/memory_budget.hpp"
#include "workers/gw/model/memory_limits.hpp"
#include "workers/gw/solver/screening/polarizability/packed_chi.hpp"
#include "workers/gw/solver/screening/polarizability/symmetry_of_chi.hpp"

namespace quasi::gw {
namespace {

/// Returns the operations that reduce the sum over k to a wedge. At q₀ the matrix elements are
/// O(q₀) and inherit the symmetry error of the states divided by q₀ (4e-6 of the wings in a typical
/// file), so the full zone is summed there. With a subspace the full zone is summed too, because
/// the vectors of the subspace need not be closed under the group.
std::vector<int> group_of_sum(const MeanField& field, const Vec3& q, bool at_gamma,
                              const EpsilonOptions& options) {
  if (at_gamma || (options.subspace.wanted() && options.frequencies_ry.size() > 1)) return {0};
  return little_group(field.zone.operations(), q, false);
}

}  // namespace

std::int64_t head_count(const MeanField& field, bool at_gamma) {
  return at_gamma && field.by_velocity ? 3 : 1;
}

bool is_small(const MeanField& field, const Vec3& q) {
  return q == field.q0 || metric_dot(field.crystal().bdot, q, q) < 1e-3;
}

std::int64_t polarizability_k_points(const MeanField& field, const Vec3& q,
                                     const EpsilonOptions& options) {
  return static_cast<std::int64_t>(
      orbits(field.zone, group_of_sum(field, q, is_small(field, q), options)).size());
}

std::int64_t polarizability_pairs(const MeanField& field, const Vec3& q,
                                  const EpsilonOptions& options) {
  const std::int64_t wedge = polarizability_k_points(field, q, options);
  std::int64_t pairs = 0;
  for (const int n_v : field.n_occupied_of_spin)
    pairs += wedge * n_v * (options.bands - std::max(n_v, options.first_empty_band));
  return pairs;
}

Polarizability::Polarizability(const MeanField& field, const DielectricMatrix& at,
                               const EpsilonOptions& options, EpsilonProfile* profile)
    : field_(field),
      at_(at),
      options_(options),
      profile_(profile),
      dipoles_(field, at.q, {options.first_empty_band, options.bands}) {
  group_ = group_of_sum(field, at.q, at.at_gamma, options);
  whole_ = is_identity_alone(field.zone.operations(), group_);
  wedge_ = orbits(field.zone, group_);
  n_heads_ = head_count(field, at.at_gamma);
  edge_ = at.size() + n_heads_ - 1;
  const std::int64_t n_g = edge_;
  const auto n_other = static_cast<std::int64_t>(options.frequencies_ry.size()) - 1;
  for (int spin = 0; spin < field.n_spins(); ++spin) {
    const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
    const int n_c = options.bands - std::max(n_v, options.first_empty_band);
    if (n_v == 0 || n_c <= 0) continue;
    // Half of the memory is for empty bands on the box. The kernels cut the pairs of a static χ
    // into blocks of their own, so only other frequencies bound the blocks further.
    const auto edges = box();
    std::int64_t at_once = std::clamp<std::int64_t>(
                     options.memory_budget_bytes / 2 /
                         (std::int64_t{16} * edges[0] * edges[1] * edges[2]),
                     1, n_c),
                 block = n_v;
    if (n_other > 0) {
      const std::int64_t fixed = 16 * n_g * n_g * (2 + 2 * n_other);
      at_once = std::min(
          at_once, items_that_fit(options.memory_budget_bytes, fixed, 48 * n_g, "polarizability"));
      block = std::min<std::int64_t>(n_v, items_that_fit(options.memory_budget_bytes, fixed,
                                                         48 * at_once * n_g, "polarizability"));
    }
    // With few k-points the occupied bands are cut into enough blocks for every portion.
    const auto n_wedge = static_cast<std::int64_t>(wedge_.size());
    const auto blocks_wanted = (kChiPortions + n_wedge - 1) / n_wedge;
    if (static_cast<std::int64_t>(wedge_.size()) < kChiPortions)
      block = std::max<std::int64_t>(1, std::min(block, (n_v + blocks_wanted - 1) / blocks_wanted));
    for (std::size_t orbit = 0; orbit < wedge_.size(); ++orbit)
      for (std::int64_t c = 0; c < n_c; c += at_once)
        for (std::int64_t v = 0; v < n_v; v += block)
          units_.push_back({spin,
                            orbit,
                            {v, std::min<std::int64_t>(n_v, v + block)},
                            {c, std::min<std::int64_t>(n_c, c + at_once)}});
  }
  portions_ = std::min<std::int64_t>(options.portions, static_cast<std::int64_t>(units_.size()));
}

std::array<int, 3> Polarizability::box() const {
  const bool shifted = uses_shifted_states();
  IVec3 extent_left = rotated_extent(shifted ? *field_.shifted : field_.waves,
                                     shifted ? *field_.shifted_zone : field_.zone);
  for (int& x : extent_left) ++x;  // k+q may differ from its folded image by one reciprocal vector.
  return product_box(extent_left, rotated_extent(field_.waves, field_.zone),
                     component_extent(at_.sphere.g));
}

Polarizability::Resident& Polarizability::resident(GwKernels& kernels) const {
  const std::lock_guard lock(residents_->mutex);
  return residents_->of[&kernels];
}

void Polarizability::release() {
  const std::lock_guard lock(residents_->mutex);
  residents_->of.clear();
}

void Polarizability::share_dipoles(DeviceTeam& team) {
  // With more k-points than portions every device has k-points of its own.
  if (!by_velocity() || team.members().size() == 1 ||
      static_cast<std::int64_t>(wedge_.size()) >= kChiPortions)
    return;
  StepClock clock(profile_);
  dipoles_.share(wedge_, team);
  clock.step("wall_of_velocity");
}

ChiShape Polarizability::shape() const {
  const auto n_other = static_cast<std::int64_t>(options_.frequencies_ry.size()) - 1;
  if (!basis_.empty())
    return {.n_static = 0,
            .n_frequencies = n_other,
            .n = static_cast<std::int64_t>(basis_.size()) / edge_};
  if (n_other == 0 || options_.subspace.wanted()) return {.n_static = edge_};
  return {.n_static = edge_, .n_frequencies = n_other, .n = edge_};
}

bool Polarizability::fits_device() const {
  const auto edges = box();
  const std::int64_t band_bytes =
      std::int64_t{16} * edges[0] * edges[1] * edges[2] * field_.n_spinor();
  return chi_sums_fit(shape().size(), band_bytes * options_.bands, options_.memory_budget_bytes);
}

std::unique_ptr<PartialChi> Polarizability::restored(const Piece& packed,
                                                     GwKernels& kernels) const {
  auto sum = std::make_unique<PackedSum>(shape(), packed);
  if (fits_device()) return unpacked(std::move(sum), kernels.polarizability());
  return sum;
}

std::vector<Cplx> Polarizability::complete(std::vector<Cplx> sum) const {
  const std::int64_t n = at_.size(), size = n * n;
  std::vector<Cplx> whole;
  for (std::int64_t first = 0; first < static_cast<std::int64_t>(sum.size()); first += size) {
    UnsetVector<Cplx> matrix(sum.begin() + first, sum.begin() + first + size);
    if (first == 0) fill_lower_triangle(view<Cplx>(matrix, n, n));
    matrix = summed_over_group(std::move(matrix), at_.sphere, field_.zone.operations(), group_,
                               at_.at_gamma);
    whole.insert(whole.end(), matrix.begin(), matrix.end());
  }
  return whole;
}

}  // namespace quasi::gw
