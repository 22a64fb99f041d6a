#include "workers/gw/solver/epsilon.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/backend/memory_budget.hpp"

namespace quasi::gw {
namespace {

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

std::vector<std::vector<Cplx>> polarizability(const MeanField& field, const DielectricMatrix& at,
                                              const EpsilonOptions& options, GwKernels& kernels, Progress& progress) {
  const bool at_gamma = at.at_gamma;
  const bool by_velocity = at_gamma && field.by_velocity;
  const bool shifted = at_gamma && !by_velocity;
  const Wavefunctions& left_waves = shifted ? *field.shifted : field.waves;
  const BrillouinZone& left_zone = shifted ? *field.shifted_zone : field.zone;
  const auto& operations = field.zone.operations();
  // At q₀ the matrix elements are O(q₀) and inherit the states' own symmetry error divided by q₀ (4e-6 of
  // the wings in a typical file), so the full zone is summed there.
  const std::vector<int> group = at_gamma ? std::vector<int>{0} : little_group(operations, at.q, at_gamma);
  const std::vector<Orbit> wedge = orbits(field.zone, group);
  const std::int64_t n_g = at.size();
  const auto n_other = static_cast<std::int64_t>(options.frequencies_ry.size()) - 1;

  IVec3 extent_left = rotated_extent(left_waves, left_zone);
  for (int& x : extent_left) ++x;  // k+q may differ from its folded image by one reciprocal vector.
  kernels.set_box(product_box(extent_left, rotated_extent(field.waves, field.zone), component_extent(at.sphere.g)));
  const std::array<int, 3> box = product_box(extent_left, rotated_extent(field.waves, field.zone), component_extent(at.sphere.g));
  const auto sphere_index = positions(at.sphere.g, box);
  kernels.load_sphere(view<const std::int32_t>(sphere_index, n_g), {});
  kernels.start_chi(n_g);
  if (n_other > 0) kernels.start_chi_frequencies(n_other, n_g);

  const double prefactor = 4.0 / (field.n_spins() * field.zone_volume_bohr3());
  std::int64_t done = 0;
  for (int spin = 0; spin < field.n_spins(); ++spin) {
    const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
    const int n_c = options.bands - n_v;
    const std::int64_t block = std::min<std::int64_t>(
        n_v, items_that_fit(options.memory_budget_bytes, 16 * n_g * n_g * (2 + 2 * n_other), 48 * n_c * n_g, "polarizability"));
    for (const Orbit& orbit : wedge) {
      const Vec3& k = field.zone.points()[static_cast<std::size_t>(orbit.representative)].k;
      const Rotation right_rotation = field.zone.rotation_to(k);
      const Rotation left_rotation = left_zone.rotation_to(by_velocity ? k : k + at.q);
      const RotatedWaves left = rotated_waves(left_waves, left_zone.operations(), left_rotation, spin, 0, n_v);
      const RotatedWaves right = rotated_waves(field.waves, operations, right_rotation, spin, n_v, options.bands);
      const auto left_index = positions(left.g, box);
      const auto right_index = positions(right.g, box);
      kernels.load_bands(Side::kLeft, bands_view(left), view<const std::int32_t>(left_index, left_index.size()));
      kernels.load_bands(Side::kRight, bands_view(right), view<const std::int32_t>(right_index, right_index.size()));
      // k·p: M_vc(q → 0; 0) = ⟨v| q·∂H/∂k |c⟩/(E_v − E_c), at S k_r with the direction S⁻¹ q.
      std::vector<Cplx> head;
      if (by_velocity) {
        const SymmetryOperation& s = operations[static_cast<std::size_t>(right_rotation.operation)];
        head = velocity_matrix(field.waves, right_rotation.irreducible, spin, n_v, options.bands, multiply(inverse(s.rotation), at.q), field.nonlocal.get());
        for (int i = 0; i < n_v; ++i)
          for (int c = 0; c < n_c; ++c)
            head[static_cast<std::size_t>(i) * static_cast<std::size_t>(n_c) + static_cast<std::size_t>(c)] /=
                field.waves.energy(spin, right_rotation.irreducible, i) - field.waves.energy(spin, right_rotation.irreducible, n_v + c);
      }
      for (std::int64_t v = 0; v < n_v; v += block) {
        const BandRange range{v, std::min<std::int64_t>(n_v, v + block)};
        kernels.pair_products(range, {0, n_c});
        if (by_velocity) kernels.replace_plane_wave(0, {head.data() + v * n_c, {range.size(), n_c}});
        std::vector<double> weight(static_cast<std::size_t>(range.size() * n_c));
        std::vector<Cplx> weights(weight.size() * static_cast<std::size_t>(n_other));
        for (std::int64_t i = 0; i < range.size(); ++i)
          for (std::int64_t c = 0; c < n_c; ++c) {
            const double delta = left_waves.energy(spin, left_rotation.irreducible, static_cast<int>(range.begin + i)) -
                                 field.waves.energy(spin, right_rotation.irreducible, n_v + static_cast<int>(c));
            const double scale = prefactor * static_cast<double>(orbit.size);
            const auto pair = static_cast<std::size_t>(i * n_c + c);
            weight[pair] = scale / delta;
            for (std::int64_t f = 0; f < n_other; ++f) {
              const Cplx omega = options.frequencies_ry[static_cast<std::size_t>(f + 1)];
              weights[static_cast<std::size_t>(f) * weight.size() + pair] = 0.5 * scale * (1.0 / (delta - omega) + 1.0 / (delta + omega));
            }
          }
        kernels.accumulate_chi(view<const double>(weight, range.size(), n_c));
        if (n_other > 0) kernels.accumulate_chi_frequencies(view<const Cplx>(weights, n_other, range.size(), n_c));
      }
      progress.report("polarizability", ++done, static_cast<std::int64_t>(wedge.size()) * field.n_spins());
    }
  }
  std::vector<std::vector<Cplx>> chi(options.frequencies_ry.size(), std::vector<Cplx>(static_cast<std::size_t>(n_g * n_g)));
  kernels.read_chi(view<Cplx>(chi[0], n_g, n_g));
  if (n_other > 0) {
    std::vector<Cplx> others(static_cast<std::size_t>(n_other * n_g * n_g));
    kernels.read_chi_frequencies(view<Cplx>(others, n_other, n_g, n_g));
    for (std::int64_t f = 0; f < n_other; ++f)
      std::copy(others.begin() + f * n_g * n_g, others.begin() + (f + 1) * n_g * n_g, chi[static_cast<std::size_t>(f + 1)].begin());
  }
  for (auto& matrix : chi) matrix = summed_over_group(matrix, at.sphere, operations, group, at_gamma);
  return chi;
}

DielectricMatrix dielectric_matrix(const MeanField& field, const Vec3& q, const EpsilonOptions& options,
                                   const CoulombInteraction& coulomb, GwKernels& kernels, Progress& progress) {
  DielectricMatrix matrix;
  matrix.q = q;
  matrix.at_gamma = metric_dot(field.crystal().bdot, q, q) < 1e-3;
  if (matrix.at_gamma && !field.shifted && !field.by_velocity)
    throw InvalidInput("the point q → 0 needs wavefunctions on a slightly shifted grid (meanfield.wfnq), or the Hamiltonian for k·p "
                       "(meanfield.vsc and meanfield.vkb)");
  matrix.sphere = make_g_sphere(field.crystal().bdot, matrix.at_gamma ? Vec3{} : q, options.cutoff_ry);
  const auto n = static_cast<std::size_t>(matrix.size());
  for (const IVec3& g : matrix.sphere.g) matrix.coulomb.push_back(coulomb.plain(q, g));
  auto chi = polarizability(field, matrix, options, kernels, progress);
  std::vector<double> root(n);
  for (std::size_t g = 0; g < n; ++g) root[g] = std::sqrt(matrix.coulomb[g]);
  for (std::size_t g = 0; g < n; ++g) matrix.epsilon_diagonal.push_back(1.0 - matrix.coulomb[g] * chi[0][g * n + g]);
  for (std::size_t f = 0; f < chi.size(); ++f) {
    auto& m = chi[f];
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h) m[g * n + h] = (g == h ? 1.0 : 0.0) - root[g] * m[g * n + h] * root[h];
    const View<Cplx, 2> whole = view<Cplx>(m, n, n);
    if (options.frequencies_ry[f].real() == 0.0)
      kernels.invert_positive_definite(whole);
    else
      kernels.invert_general(whole);
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h) m[g * n + h] *= root[g] / root[h];
  }
  matrix.inverse = std::move(chi);
  matrix.frequencies_ry = options.frequencies_ry;
  matrix.n_real = options.n_real;
  return matrix;
}

}  // namespace quasi::gw
