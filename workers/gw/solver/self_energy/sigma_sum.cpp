#include "workers/gw/solver/self_energy/sigma_sum.hpp"

#include <algorithm>
#include <cmath>

#include "workers/gw/physics/coulomb.hpp"
#include "workers/gw/solver/mean_field/displaced/inner_states.hpp"
#include "workers/gw/solver/screening/polarizability/symmetry_of_chi.hpp"

namespace quasi::gw {

std::map<int, std::vector<StarMember>> q_points_by_star(const MeanField& field, const Vec3& k,
                                                        bool reduce) {
  std::vector<int> group;
  const BrillouinZone& zone = field.transfers();
  if (reduce) group = little_group(zone.operations(), k, false);
  // Listed points represent their orbits where they can: their matrices then need no rotation.
  std::vector<char> listed(static_cast<std::size_t>(zone.size()), 0);
  for (const Vec3& point : zone.irreducible())
    listed[static_cast<std::size_t>(zone.index_of(point))] = 1;
  std::map<int, std::vector<StarMember>> stars;
  if (!reduce)
    for (const ZonePoint& point : zone.points()) stars[point.irreducible].push_back({point.k, 1.0});
  else
    for (const Orbit& orbit : orbits(zone, group, listed)) {
      const ZonePoint& point = zone.points()[static_cast<std::size_t>(orbit.representative)];
      stars[point.irreducible].push_back({point.k, static_cast<double>(orbit.size)});
    }
  return stars;
}

SphereAtPoint rotated_sphere(const MeanField& field, const Vec3& q, const GSphere& sphere,
                             const std::array<int, 3>& box) {
  const Rotation rotation = field.transfers().rotation_to(q);
  const SymmetryOperation& s =
      field.transfers().operations()[static_cast<std::size_t>(rotation.operation)];
  SphereAtPoint at;
  for (const IVec3& g1 : sphere.g) {
    const IVec3 rotated = multiply(s.rotation, g1);
    at.box_index.push_back(box_position(rotated - rotation.umklapp, box));
    at.factor.push_back(std::polar(1.0, -dot(to_real(rotated), s.translation)));
  }
  return at;
}

namespace {

WavesAtPoint placed(const Rotation& rotation, RotatedWaves waves, const std::array<int, 3>& box) {
  WavesAtPoint at{.rotation = rotation, .waves = std::move(waves), .box = box, .box_index = {}};
  for (const IVec3& g : at.waves.g) at.box_index.push_back(box_position(g, box));
  return at;
}

/// Finds the box for products of states of `field` with `right` that are kept on `kept`.
std::array<int, 3> box_of_products(const MeanField& field, const Wavefunctions& right,
                                   const std::vector<IVec3>& kept) {
  // Waves are used at k − q, which may lie one reciprocal vector from their folded image, and
  // spheres at rotated q.
  IVec3 sphere = component_extent(kept);
  for (const SymmetryOperation& s : field.transfers().operations())
    for (const IVec3& g : kept) {
      const IVec3 rotated = multiply(s.rotation, g);
      for (int i = 0; i < 3; ++i) sphere[i] = std::max(sphere[i], std::abs(rotated[i]) + 1);
    }
  IVec3 shifted = rotated_extent(right, field.zone);
  if (field.inner != nullptr) {
    const IVec3 inner = rotated_extent(field.inner->waves, field.inner->zone);
    for (int i = 0; i < 3; ++i) shifted[i] = std::max(shifted[i], inner[i]);
  }
  for (int& x : shifted) ++x;
  return product_box(rotated_extent(field.waves, field.zone), shifted, sphere);
}

}  // namespace

WavesAtPoint waves_at(const MeanField& field, const Vec3& k, int spin, int begin, int end,
                      const std::array<int, 3>& box) {
  const Rotation rotation = field.zone.rotation_to(k);
  return placed(rotation,
                rotated_waves(field.waves, field.zone.operations(), rotation, spin, begin, end),
                box);
}

const Wavefunctions& inner_states(const MeanField& field) {
  return field.inner != nullptr ? field.inner->waves : field.waves;
}

WavesAtPoint inner_waves_at(const MeanField& field, const Vec3& k, int spin, int begin, int end,
                            const std::array<int, 3>& box) {
  const BrillouinZone& zone = field.inner != nullptr ? field.inner->zone : field.zone;
  const Rotation rotation = zone.rotation_to(k);
  return placed(rotation,
                rotated_waves(inner_states(field), zone.operations(), rotation, spin, begin, end),
                box);
}

WavesAtPoint complement_at(const MeanField& field, const Vec3& k, int spin,
                           const std::pair<int, int>& vectors, const std::array<int, 3>& box) {
  const Rotation rotation = field.zone.rotation_to(k);
  return placed(rotation,
                rotated_waves(*field.complement, field.zone.operations(), rotation, spin,
                              vectors.first, vectors.second),
                box);
}

std::unique_ptr<const LoadedBands> load(GwKernels& kernels, const WavesAtPoint& at) {
  return kernels.pair_products().load_bands(
      at.box, at.waves.coefficients, view<const std::int32_t>(at.box_index, at.waves.g.size()));
}

std::array<int, 3> sum_box(const MeanField& field, const std::vector<IVec3>& kept) {
  return box_of_products(field, field.waves, kept);
}

std::array<int, 3> complement_box(const MeanField& field, const std::vector<IVec3>& kept) {
  return box_of_products(field, *field.complement, kept);
}

namespace {

/// True for G = 0 of ε⁻¹ at q → 0, where v diverges.
bool is_singular(const DielectricMatrix& epsilon, std::size_t g) {
  return epsilon.at_gamma && epsilon.sphere.g[g] == IVec3{};
}

/// One frequency of ε⁻¹ → δ + s_GG'(ε̃⁻¹ − δ)_GG' with ε̃⁻¹ = v^−½ ε⁻¹ v^½ Hermitian, s_GG' = c_G
/// c_G'/v̄_G' off the diagonal, c = ⟨v^½⟩.
UnsetVector<Cplx> averaged_symmetrically(const MeanField& field, const CoulombInteraction& coulomb,
                                         const DielectricMatrix& epsilon,
                                         const std::vector<double>& average,
                                         std::size_t frequency) {
  UnsetVector<Cplx> room;
  const UnsetVector<Cplx>& inverse = inverse_of(epsilon, frequency, room);
  const auto n = static_cast<std::size_t>(epsilon.size());
  const std::vector<double> root = roots_of_coulomb(epsilon, average, coulomb);
  std::vector<double> root_v(n);
  for (std::size_t g = 0; g < n; ++g) root_v[g] = std::sqrt(epsilon.coulomb[g]);
  const std::vector<SymmetryOperation>& operations = field.transfers().operations();
  const std::vector<int> group =
      epsilon.at_gamma ? little_group(operations, {}, false) : std::vector<int>{};
  const bool by_group = epsilon.at_gamma && !is_identity_alone(operations, group);
  // At q₀ the body depends on the direction of q₀, and so does the head. Where every direction is
  // known both are averaged over the mini-zone.
  const LongWaveLimit* const wave =
      epsilon.long_wave.empty() ? nullptr : &epsilon.long_wave[frequency];
  ChangeOfDirection average_of_wave;
  if (wave != nullptr)
    average_of_wave =
        averaged_directions(*wave, unit_direction(field.crystal(), epsilon.q),
                            with_symmetry_of(field.crystal(), operations, wave->epsilon), coulomb);
  // Row by row, all steps of one before the next: the matrix, gigabytes in large cells, passes
  // through memory once.
  const auto scale = [&](std::size_t g, Cplx* row) {
    for (std::size_t h = 0; h < n; ++h)
      if (g != h) row[h] *= root[g] * root[h] / average[h];
  };
  UnsetVector<Cplx> matrix(n * n);
#pragma omp parallel for schedule(static)
  for (std::size_t g = 0; g < n; ++g) {
    Cplx* const row = matrix.data() + g * n;
    for (std::size_t h = 0; h < n; ++h) row[h] = inverse[g * n + h] * (root_v[h] / root_v[g]);
    if (wave != nullptr) average_of_wave.apply(*wave, g, row);
    if (!by_group) scale(g, row);
  }
  if (!by_group) return matrix;
  matrix = summed_over_group(std::move(matrix), epsilon.sphere, operations, group, true);
#pragma omp parallel for schedule(static)
  for (std::size_t g = 0; g < n; ++g) scale(g, matrix.data() + g * n);
  return matrix;
}

/// Copies everything except the matrices of ε⁻¹, which are large.
DielectricMatrix without_matrices(const DielectricMatrix& m) {
  return {.q = m.q,
          .at_gamma = m.at_gamma,
          .sphere = m.sphere,
          .coulomb = m.coulomb,
          .inverse = {},
          .frequencies_ry = m.frequencies_ry,
          .n_real = m.n_real,
          .subspace_vectors = m.subspace_vectors,
          .subspace_error = m.subspace_error,
          .epsilon_diagonal = m.epsilon_diagonal,
          .long_wave = {}};
}

}  // namespace

std::vector<double> roots_of_coulomb(const DielectricMatrix& epsilon,
                                     const std::vector<double>& average,
                                     const CoulombInteraction& coulomb) {
  const Vec3 q = epsilon.at_gamma ? Vec3{} : epsilon.q;
  std::vector<double> root(static_cast<std::size_t>(epsilon.size()));
#pragma omp parallel for schedule(dynamic, 8)
  for (std::size_t g = 0; g < root.size(); ++g)
    root[g] =
        is_singular(epsilon, g) || !coulomb.averages() || coulomb.sums_points()
            ? std::sqrt(average[g])
            : coulomb.averaged_inverse(q + to_real(epsilon.sphere.g[g])) / std::sqrt(kEightPi);
  return root;
}

ScreeningAtQ screening_at(const MeanField& field, const DielectricMatrix& epsilon,
                          double screened_cutoff_ry, const CoulombInteraction& coulomb,
                          const std::vector<std::size_t>& frequencies) {
  ScreeningAtQ at{.epsilon = without_matrices(epsilon),
                  .sphere = epsilon.sphere,
                  .coulomb = averaged_coulomb(epsilon, epsilon.sphere, coulomb)};
  const bool listed = coulomb.options().wing_rule == WingRule::kListedPoint;
  const std::size_t n_wanted = frequencies.empty() ? epsilon.n_frequencies() : frequencies.size();
  for (std::size_t i = 0; i < n_wanted; ++i) {
    const std::size_t f = frequencies.empty() ? i : frequencies[i];
    if (!listed && coulomb.averages()) {
      at.epsilon.inverse.push_back(averaged_symmetrically(field, coulomb, epsilon, at.coulomb, f));
      continue;
    }
    UnsetVector<Cplx> room;
    const auto& inverse = inverse_of(epsilon, f, room);
    at.epsilon.inverse.push_back(inverse);
    // A truncated interaction is finite or averaged at q = G = 0 alone; it may vanish or change
    // sign elsewhere. BerkeleyGW averages W there too, so that the rule for wings does not matter.
    if (epsilon.at_gamma)
      at.epsilon.inverse.back()[0] =
          coulomb.head_at_zero(inverse[0], epsilon.q, epsilon.samples_of(f));
  }
  std::size_t n_g = 0;
  while (n_g < at.sphere.g.size() && at.sphere.kinetic_ry[n_g] < screened_cutoff_ry) ++n_g;
  at.sphere.g.resize(n_g);
  at.sphere.kinetic_ry.resize(n_g);
  at.coulomb.resize(n_g);
  return at;
}

PlasmonPoleModel plasmon_poles(const MeanField& field, const ScreeningAtQ& at,
                               const SigmaOptions& options, const CoulombInteraction& coulomb,
                               const WingFactors& wings) {
  return options.method == SigmaMethod::kHybertsenLouie
             ? hybertsen_louie(field, at.epsilon, at.sphere.size(), coulomb, wings, options.invalid)
             : godby_needs(at.epsilon, at.sphere.size(), coulomb, wings, options.invalid,
                           options.godby_needs_ry);
}

UnsetVector<Cplx> screened_matrix(const ScreeningAtQ& at, std::size_t frequency,
                                  const WingFactors& wings) {
  const std::int64_t n_g = at.sphere.size();
  UnsetVector<Cplx> w = screening_part(at.epsilon, frequency, n_g, wings);
#pragma omp parallel for schedule(static)
  for (std::int64_t g = 0; g < n_g; ++g)
    for (std::int64_t h = 0; h < n_g; ++h)
      w[static_cast<std::size_t>(g * n_g + h)] *= at.coulomb[static_cast<std::size_t>(h)];
  return w;
}

}  // namespace quasi::gw
