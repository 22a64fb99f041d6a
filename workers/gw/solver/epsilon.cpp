#include "workers/gw/solver/epsilon.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/backend/memory_budget.hpp"

namespace quasi::gw {
namespace {

/// Portions of one q: what one device works at between two sums. Fixed, so that bits do not depend on how many
/// devices there are; each costs one transfer of χ.
constexpr std::int64_t kPortions = 8;

View<const Cplx, 2> bands_view(const RotatedWaves& waves) {
  const auto n_pw = static_cast<std::int64_t>(waves.g.size());
  return {waves.coefficients.data(), {static_cast<std::int64_t>(waves.coefficients.size()) / n_pw, n_pw}};
}

std::vector<std::int32_t> positions(const std::vector<IVec3>& g, const std::array<int, 3>& box) {
  std::vector<std::int32_t> at(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) at[i] = box_position(g[i], box);
  return at;
}

}  // namespace

std::vector<Cplx> summed_over_group(const std::vector<Cplx>& chi, const GSphere& sphere,
                                    const std::vector<SymmetryOperation>& operations,
                                    const std::vector<int>& group, bool at_gamma) {
  if (group.size() == 1 && operations[static_cast<std::size_t>(group[0])].rotation == IMat3{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}} &&
      operations[static_cast<std::size_t>(group[0])].translation == Vec3{})
    return chi;
  const auto n = static_cast<std::size_t>(sphere.size());
  const GIndex index(sphere.g);
  std::vector<Cplx> sum(n * n, Cplx{});
  std::vector<std::size_t> from(n);
  std::vector<Cplx> phase(n);
  for (const int s : group) {
    const SymmetryOperation& operation = operations[static_cast<std::size_t>(s)];
    const IMat3 back = inverse(operation.rotation);
    IVec3 g0{};
    if (!at_gamma) nearest_lattice_point(sphere.q - multiply(operation.rotation, sphere.q), &g0, 1e-4);
    for (std::size_t g = 0; g < n; ++g) {
      const IVec3 shifted = sphere.g[g] + g0;
      const std::int32_t found = index.find(multiply(back, shifted));
      if (found < 0)
        throw InvalidInput("the ε sphere is not closed under the crystal's symmetry: a shell of plane waves lies on the "
                           "cut-off; change epsilon.cutoff_ry a little");
      from[g] = static_cast<std::size_t>(found);
      phase[g] = std::polar(1.0, -dot(to_real(shifted), operation.translation));
    }
#pragma omp parallel for schedule(static)
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h) sum[g * n + h] += phase[g] * std::conj(phase[h]) * chi[from[g] * n + from[h]];
  }
  const double scale = 1.0 / static_cast<double>(group.size());
  for (Cplx& value : sum) value *= scale;
  return sum;
}

std::vector<Vec3> screening_points(const MeanField& field) {
  std::vector<Vec3> points;
  for (const Vec3& k : field.waves.k) {
    IVec3 g;
    points.push_back(nearest_lattice_point(k, &g) ? field.q0 : k);
  }
  return points;
}

Polarizability::Polarizability(const MeanField& field, const DielectricMatrix& at, const EpsilonOptions& options)
    : field_(field), at_(at), options_(options) {
  // At q₀ the matrix elements are O(q₀) and inherit the states' own symmetry error divided by q₀ (4e-6 of
  // the wings in a typical file), so the full zone is summed there.
  group_ = at.at_gamma ? std::vector<int>{0} : little_group(field.zone.operations(), at.q, false);
  wedge_ = orbits(field.zone, group_);
  const std::int64_t n_g = at.size();
  const auto n_other = static_cast<std::int64_t>(options.frequencies_ry.size()) - 1;
  for (int spin = 0; spin < field.n_spins(); ++spin) {
    const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
    const int n_c = options.bands - n_v;
    if (n_v == 0) continue;
    std::int64_t block = std::min<std::int64_t>(
        n_v, items_that_fit(options.memory_budget_bytes, 16 * n_g * n_g * (2 + 2 * n_other), 48 * n_c * n_g, "polarizability"));
    // Few k-points: blocks enough for every portion.
    const auto blocks_wanted = kPortions / static_cast<std::int64_t>(wedge_.size()) + 1;
    if (static_cast<std::int64_t>(wedge_.size()) < kPortions) block = std::max<std::int64_t>(1, std::min(block, (n_v + blocks_wanted - 1) / blocks_wanted));
    for (std::size_t orbit = 0; orbit < wedge_.size(); ++orbit)
      for (std::int64_t v = 0; v < n_v; v += block) units_.push_back({spin, orbit, {v, std::min<std::int64_t>(n_v, v + block)}});
  }
  portions_ = std::min<std::int64_t>(kPortions, static_cast<std::int64_t>(units_.size()));
}

std::vector<std::vector<Cplx>> Polarizability::portion(std::int64_t index, GwKernels& kernels, Progress& progress) const {
  const bool by_velocity = at_.at_gamma && field_.by_velocity;
  const bool shifted = at_.at_gamma && !by_velocity;
  const Wavefunctions& left_waves = shifted ? *field_.shifted : field_.waves;
  const BrillouinZone& left_zone = shifted ? *field_.shifted_zone : field_.zone;
  const auto& operations = field_.zone.operations();
  const std::int64_t n_g = at_.size();
  const auto n_other = static_cast<std::int64_t>(options_.frequencies_ry.size()) - 1;

  IVec3 extent_left = rotated_extent(left_waves, left_zone);
  for (int& x : extent_left) ++x;  // k+q may differ from its folded image by one reciprocal vector.
  const std::array<int, 3> box = product_box(extent_left, rotated_extent(field_.waves, field_.zone), component_extent(at_.sphere.g));
  kernels.set_box(box);
  const auto sphere_index = positions(at_.sphere.g, box);
  kernels.load_sphere(view<const std::int32_t>(sphere_index, n_g), {});
  kernels.start_chi(n_g);
  if (n_other > 0) kernels.start_chi_frequencies(n_other, n_g);

  const double prefactor = 4.0 / (field_.n_spins() * field_.zone_volume_bohr3());
  const auto n_units = static_cast<std::int64_t>(units_.size());
  const Unit* loaded = nullptr;
  for (std::int64_t u = index * n_units / portions_; u < (index + 1) * n_units / portions_; ++u) {
    const Unit& unit = units_[static_cast<std::size_t>(u)];
    const Orbit& orbit = wedge_[unit.orbit];
    const int spin = unit.spin;
    const int n_v = field_.n_occupied_of_spin[static_cast<std::size_t>(spin)];
    const int n_c = options_.bands - n_v;
    const Vec3& k = field_.zone.points()[static_cast<std::size_t>(orbit.representative)].k;
    const Rotation right_rotation = field_.zone.rotation_to(k);
    const Rotation left_rotation = left_zone.rotation_to(by_velocity ? k : k + at_.q);
    const auto n_block = unit.valence.size();
    const RotatedWaves left = rotated_waves(left_waves, left_zone.operations(), left_rotation, spin, static_cast<int>(unit.valence.begin),
                                            static_cast<int>(unit.valence.end));
    const auto left_index = positions(left.g, box);
    kernels.load_bands(Side::kLeft, bands_view(left), view<const std::int32_t>(left_index, left_index.size()));
    if (loaded == nullptr || loaded->orbit != unit.orbit || loaded->spin != spin) {
      const RotatedWaves right = rotated_waves(field_.waves, operations, right_rotation, spin, n_v, options_.bands);
      const auto right_index = positions(right.g, box);
      kernels.load_bands(Side::kRight, bands_view(right), view<const std::int32_t>(right_index, right_index.size()));
      loaded = &unit;
    }
    kernels.pair_products({0, n_block}, {0, n_c});
    if (by_velocity) {
      // k·p: M_vc(q → 0; 0) = ⟨v| q·∂H/∂k |c⟩/(E_v − E_c), at S k_r with the direction S⁻¹ q.
      const SymmetryOperation& s = operations[static_cast<std::size_t>(right_rotation.operation)];
      auto head = velocity_matrix(field_.waves, right_rotation.irreducible, spin, unit.valence, {n_v, options_.bands},
                                  multiply(inverse(s.rotation), at_.q), field_.nonlocal.get());
      for (std::int64_t i = 0; i < n_block; ++i)
        for (int c = 0; c < n_c; ++c)
          head[static_cast<std::size_t>(i * n_c + c)] /= field_.waves.energy(spin, right_rotation.irreducible, static_cast<int>(unit.valence.begin + i)) -
                                                         field_.waves.energy(spin, right_rotation.irreducible, n_v + c);
      kernels.replace_plane_wave(0, view<const Cplx>(head, n_block, n_c));
    }
    std::vector<double> weight(static_cast<std::size_t>(n_block * n_c));
    std::vector<Cplx> weights(weight.size() * static_cast<std::size_t>(n_other));
    for (std::int64_t i = 0; i < n_block; ++i)
      for (std::int64_t c = 0; c < n_c; ++c) {
        const double delta = left_waves.energy(spin, left_rotation.irreducible, static_cast<int>(unit.valence.begin + i)) -
                             field_.waves.energy(spin, right_rotation.irreducible, n_v + static_cast<int>(c));
        const double scale = prefactor * static_cast<double>(orbit.size);
        const auto pair = static_cast<std::size_t>(i * n_c + c);
        weight[pair] = scale / delta;
        for (std::int64_t f = 0; f < n_other; ++f) {
          const Cplx omega = options_.frequencies_ry[static_cast<std::size_t>(f + 1)];
          weights[static_cast<std::size_t>(f) * weight.size() + pair] = 0.5 * scale * (1.0 / (delta - omega) + 1.0 / (delta + omega));
        }
      }
    kernels.accumulate_chi(view<const double>(weight, n_block, n_c));
    if (n_other > 0) kernels.accumulate_chi_frequencies(view<const Cplx>(weights, n_other, n_block, n_c));
    progress.throw_if_cancelled();
  }
  std::vector<std::vector<Cplx>> chi(options_.frequencies_ry.size(), std::vector<Cplx>(static_cast<std::size_t>(n_g * n_g)));
  kernels.read_chi(view<Cplx>(chi[0], n_g, n_g));
  if (n_other > 0) {
    std::vector<Cplx> others(static_cast<std::size_t>(n_other * n_g * n_g));
    kernels.read_chi_frequencies(view<Cplx>(others, n_other, n_g, n_g));
    for (std::int64_t f = 0; f < n_other; ++f)
      std::copy(others.begin() + f * n_g * n_g, others.begin() + (f + 1) * n_g * n_g, chi[static_cast<std::size_t>(f + 1)].begin());
  }
  return chi;
}

void Polarizability::complete(std::vector<std::vector<Cplx>>& chi) const {
  if (group_.size() == 1 && group_[0] == 0) return;
  for (auto& matrix : chi) matrix = summed_over_group(matrix, at_.sphere, field_.zone.operations(), group_, at_.at_gamma);
}

namespace {

DielectricMatrix empty_matrix(const MeanField& field, const Vec3& q, const EpsilonOptions& options, const CoulombInteraction& coulomb) {
  DielectricMatrix matrix;
  matrix.q = q;
  matrix.at_gamma = metric_dot(field.crystal().bdot, q, q) < 1e-3;
  if (matrix.at_gamma && !field.shifted && !field.by_velocity)
    throw InvalidInput("the point q → 0 needs wavefunctions on a slightly shifted grid (meanfield.wfnq), or the Hamiltonian "
                       "(meanfield.vsc and meanfield.vkb)");
  matrix.sphere = make_g_sphere(field.crystal().bdot, matrix.at_gamma ? Vec3{} : q, options.cutoff_ry);
  for (const IVec3& g : matrix.sphere.g) matrix.coulomb.push_back(coulomb.plain(q, g));
  matrix.frequencies_ry = options.frequencies_ry;
  matrix.n_real = options.n_real;
  return matrix;
}

/// ε⁻¹ in place of χ.
void invert(DielectricMatrix& matrix, std::vector<std::vector<Cplx>> chi, const EpsilonOptions& options, GwKernels& kernels) {
  const auto n = static_cast<std::size_t>(matrix.size());
  std::vector<double> root(n);
  for (std::size_t g = 0; g < n; ++g) root[g] = std::sqrt(matrix.coulomb[g]);
  for (std::size_t g = 0; g < n; ++g) matrix.epsilon_diagonal.push_back(1.0 - matrix.coulomb[g] * chi[0][g * n + g]);
  for (std::size_t f = 0; f < chi.size(); ++f) {
    auto& m = chi[f];
#pragma omp parallel for schedule(static)
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h) m[g * n + h] = (g == h ? 1.0 : 0.0) - root[g] * m[g * n + h] * root[h];
    const View<Cplx, 2> whole = view<Cplx>(m, n, n);
    if (options.frequencies_ry[f].real() == 0.0)
      kernels.invert_positive_definite(whole);
    else
      kernels.invert_general(whole);
#pragma omp parallel for schedule(static)
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h) m[g * n + h] *= root[g] / root[h];
  }
  matrix.inverse = std::move(chi);
}

std::vector<double> packed(const std::vector<std::vector<Cplx>>& matrices) {
  std::vector<double> values;
  for (const auto& m : matrices) {
    const auto* flat = reinterpret_cast<const double*>(m.data());
    values.insert(values.end(), flat, flat + 2 * m.size());
  }
  return values;
}

std::vector<std::vector<Cplx>> unpacked(const std::vector<double>& values, std::size_t size) {
  std::vector<std::vector<Cplx>> matrices(values.size() / (2 * size), std::vector<Cplx>(size));
  for (std::size_t i = 0; i < matrices.size(); ++i)
    std::copy(values.begin() + static_cast<std::ptrdiff_t>(2 * size * i), values.begin() + static_cast<std::ptrdiff_t>(2 * size * (i + 1)),
              reinterpret_cast<double*>(matrices[i].data()));
  return matrices;
}

}  // namespace

std::vector<DielectricMatrix> dielectric_matrices(const MeanField& field, const std::vector<Vec3>& points, const EpsilonOptions& options,
                                                  const CoulombInteraction& coulomb, DeviceTeam& team, Checkpoint& checkpoint, Progress& progress) {
  std::vector<DielectricMatrix> matrices;
  std::vector<Polarizability> sums;
  matrices.reserve(points.size());  // `sums` refer to them
  std::int64_t total = 0;
  for (const Vec3& q : points) {
    matrices.push_back(empty_matrix(field, q, options, coulomb));
    sums.emplace_back(field, matrices.back(), options);
    total += sums.back().portions();
  }
  std::atomic<std::int64_t> done{0};
  const auto portion_of = [&](std::size_t iq, std::int64_t index, GwKernels& kernels) {
    const std::string key = "chi/" + std::to_string(iq) + "/" + std::to_string(index);
    const auto size = static_cast<std::size_t>(matrices[iq].size() * matrices[iq].size());
    auto kept = checkpoint.find(key);
    auto chi = kept ? unpacked(*kept, size) : sums[iq].portion(index, kernels, progress);
    if (!kept && checkpoint.keeps()) checkpoint.put(key, packed(chi));
    progress.report("polarizability", ++done, total);
    return chi;
  };
  const auto add = [](std::vector<std::vector<Cplx>>& sum, std::vector<std::vector<Cplx>> part) {
    if (sum.empty()) sum = std::move(part);
    else
      for (std::size_t f = 0; f < sum.size(); ++f)
        for (std::size_t i = 0; i < sum[f].size(); ++i) sum[f][i] += part[f][i];
  };
  const auto finish = [&](std::size_t iq, std::vector<std::vector<Cplx>> chi, GwKernels& kernels) {
    sums[iq].complete(chi);
    invert(matrices[iq], std::move(chi), options, kernels);
    if (!checkpoint.keeps()) return;
    auto kept = packed(matrices[iq].inverse);
    const auto diagonal = packed({matrices[iq].epsilon_diagonal});
    kept.insert(kept.end(), diagonal.begin(), diagonal.end());
    checkpoint.replace("chi/" + std::to_string(iq) + "/", "epsilon/" + std::to_string(iq), std::move(kept));
  };
  const auto take_finished = [&](std::size_t iq) {
    auto kept = checkpoint.find("epsilon/" + std::to_string(iq));
    if (!kept) return false;
    const auto n = static_cast<std::size_t>(matrices[iq].size());
    matrices[iq].epsilon_diagonal = unpacked({kept->end() - static_cast<std::ptrdiff_t>(2 * n), kept->end()}, n)[0];
    kept->resize(kept->size() - 2 * n);
    matrices[iq].inverse = unpacked(*kept, n * n);
    progress.report("polarizability", done += sums[iq].portions(), total);
    return true;
  };
  if (static_cast<int>(points.size()) >= team.size()) {
    team.run(static_cast<std::int64_t>(points.size()), [&](std::int64_t task, GwKernels& kernels) {
      const auto iq = static_cast<std::size_t>(task);
      if (take_finished(iq)) return;
      std::vector<std::vector<Cplx>> chi;
      for (std::int64_t index = 0; index < sums[iq].portions(); ++index) add(chi, portion_of(iq, index, kernels));
      finish(iq, std::move(chi), kernels);
    });
    return matrices;
  }
  for (std::size_t iq = 0; iq < points.size(); ++iq) {
    if (take_finished(iq)) continue;
    std::vector<std::vector<std::vector<Cplx>>> parts(static_cast<std::size_t>(sums[iq].portions()));
    team.run(sums[iq].portions(), [&](std::int64_t index, GwKernels& kernels) { parts[static_cast<std::size_t>(index)] = portion_of(iq, index, kernels); });
    std::vector<std::vector<Cplx>> chi;
    for (auto& part : parts) add(chi, std::move(part));
    finish(iq, std::move(chi), team.first());
  }
  return matrices;
}

DielectricMatrix dielectric_matrix(const MeanField& field, const Vec3& q, const EpsilonOptions& options,
                                   const CoulombInteraction& coulomb, GwKernels& kernels, Progress& progress) {
  DeviceTeam alone(kernels);
  Checkpoint none;
  return std::move(dielectric_matrices(field, {q}, options, coulomb, alone, none, progress)[0]);
}

}  // namespace quasi::gw
