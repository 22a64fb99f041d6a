#include "workers/gw/solver/screening/polarizability.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/backend/device/memory_budget.hpp"
#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

/// Portions of one q: what one device works at between two sums. Fixed, so that bits do not depend
/// on how many devices there are; each costs one transfer of χ.
constexpr std::int64_t kPortions = 8;

std::vector<std::int32_t> positions(const std::vector<IVec3>& g, const std::array<int, 3>& box) {
  std::vector<std::int32_t> at(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) at[i] = box_position(g[i], box);
  return at;
}

}  // namespace

bool is_identity_alone(const std::vector<SymmetryOperation>& operations,
                       const std::vector<int>& group) {
  return group.size() == 1 &&
         operations[static_cast<std::size_t>(group[0])].rotation ==
             IMat3{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}} &&
         operations[static_cast<std::size_t>(group[0])].translation == Vec3{};
}

UnsetVector<Cplx> summed_over_group(UnsetVector<Cplx> chi, const GSphere& sphere,
                                    const std::vector<SymmetryOperation>& operations,
                                    const std::vector<int>& group, bool at_gamma) {
  if (is_identity_alone(operations, group)) return chi;
  const auto n = static_cast<std::size_t>(sphere.size());
  const GIndex index(sphere.g);
  UnsetVector<Cplx> sum(n * n, Cplx{});
  std::vector<std::size_t> from(n);
  std::vector<Cplx> phase(n);
  for (const int s : group) {
    const SymmetryOperation& operation = operations[static_cast<std::size_t>(s)];
    const IMat3 back = inverse(operation.rotation);
    IVec3 g0{};
    if (!at_gamma)
      nearest_lattice_point(sphere.q - multiply(operation.rotation, sphere.q), &g0, 1e-4);
    for (std::size_t g = 0; g < n; ++g) {
      const IVec3 shifted = sphere.g[g] + g0;
      const std::int32_t found = index.find(multiply(back, shifted));
      if (found < 0)
        throw InvalidInput(
            "the ε sphere is not closed under the crystal's symmetry: a shell of plane waves lies "
            "on the "
            "cut-off; change epsilon.cutoff_ry a little");
      from[g] = static_cast<std::size_t>(found);
      phase[g] = std::polar(1.0, -dot(to_real(shifted), operation.translation));
    }
#pragma omp parallel for schedule(static)
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h)
        sum[g * n + h] += phase[g] * std::conj(phase[h]) * chi[from[g] * n + from[h]];
  }
  const double scale = 1.0 / static_cast<double>(group.size());
  for (Cplx& value : sum) value *= scale;
  return sum;
}

namespace {

/// Operations by whose wedge of k the sum goes. At q₀ the matrix elements are O(q₀) and inherit the
/// states' own symmetry error divided by q₀ (4e-6 of the wings in a typical file), so the full zone
/// is summed there. So it is with a subspace, whose vectors need not be closed under the group.
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
  return metric_dot(field.crystal().bdot, q, q) < 1e-3;
}

std::int64_t polarizability_pairs(const MeanField& field, const Vec3& q,
                                  const EpsilonOptions& options) {
  const auto wedge = static_cast<std::int64_t>(
      orbits(field.zone, group_of_sum(field, q, is_small(field, q), options)).size());
  std::int64_t pairs = 0;
  for (const int n_v : field.n_occupied_of_spin) pairs += wedge * n_v * (options.bands - n_v);
  return pairs;
}

Polarizability::Polarizability(const MeanField& field, const DielectricMatrix& at,
                               const EpsilonOptions& options, EpsilonProfile* profile)
    : field_(field), at_(at), options_(options), profile_(profile) {
  group_ = group_of_sum(field, at.q, at.at_gamma, options);
  whole_ = is_identity_alone(field.zone.operations(), group_);
  wedge_ = orbits(field.zone, group_);
  n_heads_ = head_count(field, at.at_gamma);
  edge_ = at.size() + n_heads_ - 1;
  const std::int64_t n_g = edge_;
  const auto n_other = static_cast<std::int64_t>(options.frequencies_ry.size()) - 1;
  for (int spin = 0; spin < field.n_spins(); ++spin) {
    const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
    const int n_c = options.bands - n_v;
    if (n_v == 0) continue;
    // Half of the memory for empty bands on the box. A static χ alone takes its pairs in blocks of
    // the kernels' own, so only other frequencies bound the blocks further.
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
    // Few k-points: blocks enough for every portion.
    const auto n_wedge = static_cast<std::int64_t>(wedge_.size());
    const auto blocks_wanted = (kPortions + n_wedge - 1) / n_wedge;
    if (static_cast<std::int64_t>(wedge_.size()) < kPortions)
      block = std::max<std::int64_t>(1, std::min(block, (n_v + blocks_wanted - 1) / blocks_wanted));
    for (std::size_t orbit = 0; orbit < wedge_.size(); ++orbit)
      for (std::int64_t c = 0; c < n_c; c += at_once)
        for (std::int64_t v = 0; v < n_v; v += block)
          units_.push_back({spin,
                            orbit,
                            {v, std::min<std::int64_t>(n_v, v + block)},
                            {c, std::min<std::int64_t>(n_c, c + at_once)}});
  }
  portions_ = std::min<std::int64_t>(kPortions, static_cast<std::int64_t>(units_.size()));
}

std::array<int, 3> Polarizability::box() const {
  const bool shifted = at_.at_gamma && !by_velocity();
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

std::int64_t Polarizability::dipole_blocks(int spin) const {
  constexpr std::int64_t kFewest = 512, kMost = 4;  // every block brings the occupied states anew
  return std::clamp<std::int64_t>(
      (options_.bands - field_.n_occupied_of_spin[static_cast<std::size_t>(spin)]) / kFewest, 1,
      kMost);
}

void Polarizability::add_dipoles(const Orbit& orbit, int spin, std::int64_t block,
                                 GwKernels& kernels, std::vector<Cplx>& to) const {
  const auto n_v = static_cast<std::int64_t>(
                 field_.n_occupied_of_spin[static_cast<std::size_t>(spin)]),
             n_c = options_.bands - n_v;
  const std::int64_t first = block * n_c / dipole_blocks(spin),
                     count = (block + 1) * n_c / dipole_blocks(spin) - first;
  // At S k_r the direction is S⁻¹ q.
  const Rotation rotation = field_.zone.rotation_to(
      field_.zone.points()[static_cast<std::size_t>(orbit.representative)].k);
  const SymmetryOperation& s =
      field_.zone.operations()[static_cast<std::size_t>(rotation.operation)];
  const auto axes = along_cartesian_axes(
      field_.crystal(), std::sqrt(metric_dot(field_.crystal().bdot, at_.q, at_.q)));
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    const std::vector<Cplx> matrix = velocity_matrix(
        field_.waves, {rotation.irreducible, spin, {0, n_v}, {n_v + first, n_v + first + count}},
        multiply(inverse(s.rotation), axes[static_cast<std::size_t>(axis)]), field_.nonlocal.get(),
        kernels);
#pragma omp parallel for schedule(static)
    for (std::int64_t v = 0; v < n_v; ++v)
      for (std::int64_t c = 0; c < count; ++c)
        to[static_cast<std::size_t>((axis * n_v + v) * n_c + first + c)] =
            matrix[static_cast<std::size_t>(v * count + c)] /
            (field_.dipole_energy(spin, rotation.irreducible, static_cast<int>(v)) -
             field_.dipole_energy(spin, rotation.irreducible, static_cast<int>(n_v + first + c)));
  }
}

std::vector<Cplx> Polarizability::dipoles(const Orbit& orbit, int spin, GwKernels& kernels) const {
  const auto n_v = static_cast<std::size_t>(
                 field_.n_occupied_of_spin[static_cast<std::size_t>(spin)]),
             n_c = static_cast<std::size_t>(options_.bands) - n_v;
  std::vector<Cplx> all(3 * n_v * n_c);
  for (std::int64_t block = 0; block < dipole_blocks(spin); ++block)
    add_dipoles(orbit, spin, block, kernels, all);
  return all;
}

void Polarizability::share_dipoles(DeviceTeam& team) {
  // With more k-points than portions a device has its own ones.
  if (!by_velocity() || team.members().size() == 1 ||
      static_cast<std::int64_t>(wedge_.size()) >= kPortions)
    return;
  StepClock clock(profile_);
  struct Block {
    std::size_t orbit;
    int spin;
    std::int64_t block;
  };
  std::vector<Block> blocks;
  for (std::size_t orbit = 0; orbit < wedge_.size(); ++orbit)
    for (int spin = 0; spin < field_.n_spins(); ++spin) {
      const auto n_v =
          static_cast<std::size_t>(field_.n_occupied_of_spin[static_cast<std::size_t>(spin)]);
      if (n_v == 0) continue;
      dipoles_[{orbit, spin}].resize(3 * n_v * (static_cast<std::size_t>(options_.bands) - n_v));
      for (std::int64_t block = 0; block < dipole_blocks(spin); ++block)
        blocks.push_back({orbit, spin, block});
    }
  team.run_here(
      static_cast<std::int64_t>(blocks.size()), [&](std::int64_t task, GwKernels& kernels) {
        const Block& of = blocks[static_cast<std::size_t>(task)];
        add_dipoles(wedge_[of.orbit], of.spin, of.block, kernels, dipoles_.at({of.orbit, of.spin}));
      });
  clock.step("wall_of_velocity");
}

std::unique_ptr<PartialChi> Polarizability::portion(std::int64_t index, GwKernels& kernels,
                                                    Progress& progress) const {
  StepClock clock(profile_);
  const bool by_velocity = this->by_velocity();
  const bool shifted = at_.at_gamma && !by_velocity;
  const Wavefunctions& left_waves = shifted ? *field_.shifted : field_.waves;
  const BrillouinZone& left_zone = shifted ? *field_.shifted_zone : field_.zone;
  const auto& operations = field_.zone.operations();
  const std::int64_t n_g = edge_;
  const bool projected = !basis_.empty();
  const std::int64_t n_basis = projected ? static_cast<std::int64_t>(basis_.size()) / n_g : n_g;
  // With a subspace the first sweep is static, the second all else.
  const auto n_other = options_.subspace.wanted() && !projected
                           ? 0
                           : static_cast<std::int64_t>(options_.frequencies_ry.size()) - 1;

  const std::array<int, 3> box = this->box();
  Resident& left_behind = resident(kernels);
  PairProductKernels& pairs = kernels.pair_products();
  if (left_behind.sphere == nullptr) {
    auto sphere_index = positions(at_.sphere.g, box);
    sphere_index.insert(sphere_index.begin(), static_cast<std::size_t>(n_heads_ - 1),
                        sphere_index[0]);
    left_behind.sphere = pairs.load_sphere(box, view<const std::int32_t>(sphere_index, n_g), {});
  }
  const auto sum = kernels.polarizability().start(
      {.n_static = projected ? 0 : n_g, .n_frequencies = n_other, .n = n_other > 0 ? n_basis : 0});
  std::unique_ptr<const LoadedBands> left_bands;
  const auto block = pairs.make_block();

  const double prefactor = 4.0 / (field_.n_spins() * field_.zone_volume_bohr3());
  const auto n_units = static_cast<std::int64_t>(units_.size());
  clock.step("prepare");
  for (std::int64_t u = index * n_units / portions_; u < (index + 1) * n_units / portions_; ++u) {
    const Unit& unit = units_[static_cast<std::size_t>(u)];
    const Orbit& orbit = wedge_[unit.orbit];
    const int spin = unit.spin;
    const int n_v = field_.n_occupied_of_spin[static_cast<std::size_t>(spin)];
    const auto n_c = unit.conduction.size(), first_c = n_v + unit.conduction.begin;
    const Vec3& k = field_.zone.points()[static_cast<std::size_t>(orbit.representative)].k;
    const Rotation right_rotation = field_.zone.rotation_to(k);
    const Rotation left_rotation = left_zone.rotation_to(by_velocity ? k : k + at_.q);
    const auto n_block = unit.valence.size();
    const RotatedWaves left =
        rotated_waves(left_waves, left_zone.operations(), left_rotation, spin,
                      static_cast<int>(unit.valence.begin), static_cast<int>(unit.valence.end));
    const auto left_index = positions(left.g, box);
    left_bands = pairs.load_bands(box, left.coefficients,
                                  view<const std::int32_t>(left_index, left_index.size()));
    const bool same_k = left_behind.orbit == unit.orbit && left_behind.spin == spin;
    if (left_behind.right == nullptr || !same_k ||
        left_behind.conduction.begin != unit.conduction.begin) {
      const RotatedWaves right =
          rotated_waves(field_.waves, operations, right_rotation, spin, static_cast<int>(first_c),
                        static_cast<int>(first_c + n_c));
      const auto right_index = positions(right.g, box);
      if (left_behind.right == nullptr || !same_k) left_behind.dipole.clear();
      left_behind.right = pairs.load_bands(
          box, right.coefficients, view<const std::int32_t>(right_index, right_index.size()));
      left_behind.orbit = unit.orbit;
      left_behind.spin = spin;
      left_behind.conduction = unit.conduction;
    }
    clock.step("wavefunctions");
    const bool kept = projected || n_other > 0;  // M is used more than once
    const BandSelection valence{*left_bands, {0, n_block}},
        conduction{*left_behind.right, {0, n_c}};
    if (kept) pairs.fill(valence, conduction, *left_behind.sphere, *block);
    clock.step("pair_products");
    std::vector<Cplx> head;
    if (by_velocity) {
      const auto shared = dipoles_.find({unit.orbit, spin});
      if (shared == dipoles_.end() && left_behind.dipole.empty())
        left_behind.dipole = dipoles(orbit, spin, kernels);
      const std::vector<Cplx>& dipole =
          shared != dipoles_.end() ? shared->second : left_behind.dipole;
      for (std::int64_t i = 0; i < n_heads_; ++i) {
        for (std::int64_t v = unit.valence.begin; v < unit.valence.end; ++v) {
          const auto row =
              dipole.begin() + (i * n_v + v) * (options_.bands - n_v) + unit.conduction.begin;
          head.insert(head.end(), row, row + n_c);
        }
        if (kept) block->replace_plane_wave(i, {head.data() + i * n_block * n_c, {n_block, n_c}});
      }
    }
    clock.step("velocity");
    std::vector<double> weight(static_cast<std::size_t>(n_block * n_c));
    std::vector<Cplx> weights(weight.size() * static_cast<std::size_t>(n_other));
    for (std::int64_t i = 0; i < n_block; ++i)
      for (std::int64_t c = 0; c < n_c; ++c) {
        const double delta =
            left_waves.energy(spin, left_rotation.irreducible,
                              static_cast<int>(unit.valence.begin + i)) -
            field_.waves.energy(spin, right_rotation.irreducible, static_cast<int>(first_c + c));
        const double scale = prefactor * static_cast<double>(orbit.size);
        const auto pair = static_cast<std::size_t>(i * n_c + c);
        weight[pair] = scale / delta;
        for (std::int64_t f = 0; f < n_other; ++f) {
          const Cplx omega = options_.frequencies_ry[static_cast<std::size_t>(f + 1)];
          weights[static_cast<std::size_t>(f) * weight.size() + pair] =
              0.5 * scale * (1.0 / (delta - omega) + 1.0 / (delta + omega));
        }
      }
    const View<const double, 2> static_weight = view<const double>(weight, n_block, n_c);
    if (!kept) {
      const auto report = sum->add_pairs(
          {valence, conduction, *left_behind.sphere, static_weight,
           by_velocity ? view<const Cplx>(head, n_heads_, n_block, n_c) : View<const Cplx, 3>{}},
          {});
      if (profile_ != nullptr) {
        profile_->add("transforms_on_device", report.transform_seconds);
        profile_->add("products_on_device", report.product_seconds);
        profile_->count(n_block * n_c, report.real);
      }
    } else if (projected) {
      block->project(view<const Cplx>(basis_, n_g, n_basis));
    } else {
      sum->add(*block, static_weight);
    }
    if (n_other > 0)
      sum->add_at_frequencies(*block, view<const Cplx>(weights, n_other, n_block, n_c));
    clock.step("polarizability");
    progress.throw_if_cancelled();
  }
  auto chi = sum->finish();
  if (!fits_device()) {
    std::vector<Cplx> values(static_cast<std::size_t>(chi->shape().size()));
    chi->read(values.data());
    chi = std::make_unique<HostChi>(chi->shape(), std::move(values));
  }
  clock.step("take");
  return chi;
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

// Eight portions leave at most four sums that wait for their neighbours, beside the one that grows.
bool Polarizability::fits_device() const {
  return 5 * 16 * shape().size() <= options_.memory_budget_bytes / 4;
}

std::unique_ptr<PartialChi> Polarizability::restored(const Cplx* values, GwKernels& kernels) const {
  const ChiShape of = shape();
  if (fits_device()) return kernels.polarizability().load(of, values);
  return std::make_unique<HostChi>(of, std::vector<Cplx>(values, values + of.size()));
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

void fill_lower_triangle(View<Cplx, 2> matrix) {
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t g = 0; g < matrix.extent[0]; ++g)
    for (std::int64_t h = 0; h < g; ++h) matrix(g, h) = std::conj(matrix(h, g));
}

}  // namespace quasi::gw
