#include "workers/gw/solver/self_energy/sigma_matrix.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "workers/backend/device/memory_budget.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/part_runner.hpp"
#include "workers/gw/solver/self_energy/sigma_parts.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

using Report = OffDiagonalReport;

void check(const SigmaOptions& options) {
  if (options.method == SigmaMethod::kRealAxis || options.method == SigmaMethod::kImaginaryAxis)
    throw InvalidInput(
        "sigma.method = \"real-axis\" and \"imaginary-axis\" check the diagonal and have no full "
        "matrix Σ_lm; use \"contour\"");
  if (options.invalid == InvalidMode::kImaginary)
    throw InvalidInput(
        "sigma.invalid_modes = \"imaginary\" has no full-matrix form; choose \"static\", "
        "\"two-rydberg\" or \"skip\"");
  if (options.exact_static_ch)
    throw InvalidInput(
        "the static remainder and the completed CH have no full-matrix form; switch them off or "
        "leave out sigma.full_matrix");
}

/// X_lm −= w Σ_nG M_ln v̄ M*_mn over the occupied bands and the bare sphere.
void add_exchange(const MeanField& field, const ScreeningAtQ& at, const SigmaOptions& options,
                  const CoulombInteraction& coulomb, GwKernels& kernels,
                  const std::vector<Vec3>& members, SigmaMatrixAtK& sum) {
  const GSphere sphere = make_g_sphere(
      field.crystal().bdot, at.epsilon.at_gamma ? Vec3{} : at.epsilon.q, options.bare_cutoff_ry);
  const std::vector<double> v = averaged_coulomb(at.epsilon, sphere, coulomb);
  const auto box = sum_box(field, sphere.g);
  const std::int64_t n_g = sphere.size(), n_l = sum.n;
  const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)];
  const Vec3& k = field.waves.k[static_cast<std::size_t>(sum.k_index)];
  const auto left =
      load(kernels, waves_at(field, k, sum.spin, options.band_min - 1, options.band_max, box));
  const auto block = kernels.pair_products().make_block();
  std::vector<Cplx> m(static_cast<std::size_t>(n_l * n_v * n_g));
  for (const Vec3& q : members) {
    const SphereAtPoint rotated = rotated_sphere(field, q, sphere, box);
    const auto loaded = kernels.pair_products().load_sphere(
        box, view<const std::int32_t>(rotated.box_index, n_g), {});
    const auto right = load(kernels, waves_at(field, k - q, sum.spin, 0, n_v, box));
    kernels.pair_products().fill({*left, {0, n_l}}, {*right, {0, n_v}}, *loaded, *block);
    block->read(view<Cplx>(m, n_l, n_v, n_g));
    for (std::int64_t p = 0; p < n_l * n_v; ++p)
      for (std::int64_t g = 0; g < n_g; ++g)
        m[static_cast<std::size_t>(p * n_g + g)] *= std::sqrt(v[static_cast<std::size_t>(g)]);
    const auto rows = static_cast<int>(n_l), columns = static_cast<int>(n_v * n_g);
    cblas_zherk(CblasRowMajor, CblasUpper, CblasNoTrans, rows, columns,
                -1.0 / field.zone_volume_bohr3(), m.data(), columns, 1.0, sum.x_ry.data(), rows);
  }
}

/// Static SX − X and CH of one block: +I for occupied bands, −½ I for all.
void add_static(const UnsetVector<Cplx>& static_w, std::int64_t n_g,
                const std::vector<double>& occupation, double weight, const PairBlock& products,
                SigmaMatrixAtK& sum) {
  std::vector<double> factor;
  for (const double f : occupation) factor.push_back(weight * (f - 0.5));
  products.quadratic_form_matrix(view<const Cplx>(static_w, n_g, n_g),
                                 view<const double>(factor, 1, factor.size()),
                                 view<Cplx>(sum.correlation_ry, 1, sum.n, sum.n));
}

void add(const Report& from, Report* to) {
  if (to == nullptr) return;
  to->pairs += from.pairs;
  to->direct_pairs += from.direct_pairs;
  to->terms = std::max(to->terms, from.terms);
  to->fit_error_relative = std::max(to->fit_error_relative, from.fit_error_relative);
  to->zgemm_flops += from.zgemm_flops;
  to->residual = std::max(to->residual, from.residual);
  to->hermitian = to->hermitian || from.hermitian;
}

}  // namespace

std::vector<double> matrix_energies_ry(const MeanField& field, int k_index, int spin,
                                       const SigmaOptions& options,
                                       const SigmaMatrixOptions& matrix) {
  if (options.method == SigmaMethod::kCohsex) return {0.0};
  if (!matrix.energies_ry.empty()) return matrix.energies_ry;
  if (matrix.at_states) {
    std::vector<double> energies;
    for (int band = options.band_min - 1; band < options.band_max; ++band)
      energies.push_back(field.waves.energy(spin, k_index, band));
    return energies;
  }
  const double low = field.waves.energy(spin, k_index, options.band_min - 1) - matrix.margin_ry;
  const double high = field.waves.energy(spin, k_index, options.band_max - 1) + matrix.margin_ry;
  const int n = std::max(4, static_cast<int>(std::ceil((high - low) / matrix.step_ry)) + 1);
  std::vector<double> energies;
  for (int i = 0; i < n; ++i) energies.push_back(low + i * (high - low) / (n - 1));
  return energies;
}

namespace {

constexpr std::int64_t kParts = 8;

/// What one device has prepared of one q.
struct PreparedMatrix {
  std::int64_t iq = -1;
  ScreeningAtQ at;
  UnsetVector<Cplx> static_w;
  WingFactors wings;
  SubspaceOfW subspace;
  std::shared_ptr<const LoadedPoleModel> poles;
};

/// Sums of the right shape at one k, one of each spin, all 0.
std::vector<SigmaMatrixAtK> empty_matrices(const MeanField& field, int ik,
                                           const SigmaOptions& options,
                                           const SigmaMatrixOptions& matrix) {
  const std::int64_t n_l = options.band_max - options.band_min + 1;
  const auto size = static_cast<std::size_t>(n_l * n_l);
  std::vector<SigmaMatrixAtK> sums;
  for (int spin = 0; spin < field.n_spins(); ++spin) {
    SigmaMatrixAtK sum{.k_index = ik,
                       .spin = spin,
                       .n = n_l,
                       .energy_ry = matrix_energies_ry(field, ik, spin, options, matrix),
                       .x_ry = std::vector<Cplx>(size),
                       .correlation_ry = {}};
    sum.correlation_ry.resize(size * sum.energy_ry.size());
    sums.push_back(std::move(sum));
  }
  return sums;
}

void add_part(const MeanField& field, const DielectricMatrix& epsilon, const SigmaOptions& options,
              const SigmaMatrixOptions& matrix, const PartAtK& part,
              const CoulombInteraction& coulomb, GwKernels& kernels, PreparedMatrix& prepared,
              SigmaMatrixAtK& sum, Report* report) {
  const bool is_static = options.method == SigmaMethod::kCohsex,
             is_contour = options.method == SigmaMethod::kContour;
  const bool by_point = coulomb.options().wing_rule == WingRule::kListedPoint;
  const std::int64_t n_l = sum.n;
  const bool fresh = prepared.iq != static_cast<std::int64_t>(part.q_begin) || by_point;
  if (fresh) {
    prepared = {.iq = static_cast<std::int64_t>(part.q_begin),
                .at = {},
                .static_w = {},
                .wings = {},
                .subspace = {},
                .poles = {}};
    if (is_contour) {
      FullFrequencyW w = full_frequency_w(field, epsilon, options, coulomb, kernels);
      prepared.at = std::move(w.at);
      prepared.subspace = std::move(w.subspace);
    } else {
      prepared.at = screening_at(field, epsilon, options.screened_cutoff_ry, coulomb);
    }
  }
  const ScreeningAtQ& at = prepared.at;
  const std::int64_t n_g = at.sphere.size();
  std::vector<Vec3> members;
  for (const ZonePoint& point : field.transfers().points())
    if (point.irreducible == static_cast<int>(part.q_begin)) members.push_back(point.k);
  const auto prepare = [&](const WingFactors& wings) {
    prepared.wings = wings;
    if (is_contour) return;
    if (is_static) {
      prepared.static_w = screened_matrix(at, 0, wings);
      return;
    }
    prepared.poles = {};  // its memory, before the next model takes as much
    prepared.poles = kernels.pole_sums().load(
        plasmon_poles(field, at, options, coulomb, wings).view(), options.rules);
  };
  if (fresh) prepare(wing_factors(at.epsilon));
  if (part.band_begin == 0) add_exchange(field, at, options, coulomb, kernels, members, sum);
  const auto box = sum_box(field, at.sphere.g);
  const Vec3& k = field.waves.k[static_cast<std::size_t>(sum.k_index)];
  const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)];
  const auto left =
      load(kernels, waves_at(field, k, sum.spin, options.band_min - 1, options.band_max, box));
  std::unique_ptr<const LoadedBands> right;
  const auto products = kernels.pair_products().make_block();
  const std::int64_t box_bytes = std::int64_t{16} * box[0] * box[1] * box[2];
  const std::int64_t step = std::min<std::int64_t>(
      options.bands, items_that_fit(options.memory_budget_bytes, 48 * n_g * n_g + box_bytes * n_l,
                                    64 * n_l * n_g + box_bytes, "full-matrix self-energy"));
  for (const Vec3& q : members) {
    const SphereAtPoint rotated = rotated_sphere(field, q, at.sphere, box);
    const auto sphere =
        kernels.pair_products().load_sphere(box, view<const std::int32_t>(rotated.box_index, n_g),
                                            view<const Cplx>(rotated.factor, n_g));
    if (by_point)
      prepare(wing_factors_of_listed_point(at.epsilon, coulomb, field.crystal().bdot, q));
    const double weight = 1.0 / field.zone_volume_bohr3();
    for (std::int64_t begin = part.band_begin; begin < part.band_end; begin += step) {
      const std::int64_t end = std::min<std::int64_t>(part.band_end, begin + step);
      const WavesAtPoint inner =
          waves_at(field, k - q, sum.spin, static_cast<int>(begin), static_cast<int>(end), box);
      right = load(kernels, inner);
      std::vector<double> inner_ry, occupation;
      for (std::int64_t n = begin; n < end; ++n) {
        inner_ry.push_back(
            field.waves.energy(sum.spin, inner.rotation.irreducible, static_cast<int>(n)));
        occupation.push_back(n < n_v ? 1.0 : 0.0);
      }
      kernels.pair_products().fill({*left, {0, n_l}}, {*right, {0, end - begin}}, *sphere,
                                   *products);
      if (is_static) {
        add_static(prepared.static_w, n_g, occupation, weight, *products, sum);
        continue;
      }
      if (is_contour) {
        add_contour_matrix(
            at, prepared.wings, prepared.subspace, options.contour,
            {n_l, end - begin, {}, inner_ry, occupation, midgap_ry(field, sum.spin), weight},
            *products, sum);
        continue;
      }
      const auto n_e = static_cast<std::int64_t>(sum.energy_ry.size());
      const OffDiagonalTerms terms{view<const double>(sum.energy_ry, n_e),
                                   view<const double>(inner_ry, end - begin),
                                   view<const double>(occupation, end - begin), weight};
      add(prepared.poles->add_offdiagonal(*products, terms, matrix.kernel,
                                          view<Cplx>(sum.correlation_ry, n_e, n_l, n_l)),
          report);
    }
  }
}

/// Calls visit(data, count) for what a part leaves, as doubles, in one order.
template <typename Sums, typename Visit>
void for_each_array(Sums& sums, const Visit& visit) {
  for (auto& sum : sums) {
    visit(sum.x_ry.data(), 2 * sum.x_ry.size());
    visit(sum.correlation_ry.data(), 2 * sum.correlation_ry.size());
  }
}

std::vector<double> packed(const std::vector<SigmaMatrixAtK>& sums, const Report& report) {
  std::vector<double> values;
  for_each_array(sums, [&](const Cplx* data, std::size_t count) {
    const auto* flat = reinterpret_cast<const double*>(data);
    values.insert(values.end(), flat, flat + count);
  });
  for (const double value :
       {static_cast<double>(report.pairs), static_cast<double>(report.direct_pairs),
        static_cast<double>(report.terms), report.fit_error_relative, report.zgemm_flops,
        report.residual, report.hermitian ? 1.0 : 0.0})
    values.push_back(value);
  return values;
}

void add_packed(const Piece& values, std::span<SigmaMatrixAtK> sums, Report* report) {
  std::size_t at = 0;
  for_each_array(sums, [&](Cplx* data, std::size_t count) {
    auto* flat = reinterpret_cast<double*>(data);
    for (std::size_t i = 0; i < count; ++i) flat[i] += values.data[at++];
  });
  const double* r = values.data + at;
  add({.pairs = static_cast<std::int64_t>(r[0]),
       .direct_pairs = static_cast<std::int64_t>(r[1]),
       .terms = static_cast<std::int64_t>(r[2]),
       .fit_error_relative = r[3],
       .zgemm_flops = r[4],
       .residual = r[5],
       .hermitian = r[6] != 0.0},
      report);
}

}  // namespace

std::vector<SigmaMatrixAtK> self_energy_matrix(const MeanField& field,
                                               const std::vector<DielectricMatrix>& epsilon,
                                               const SigmaOptions& options,
                                               const SigmaMatrixOptions& matrix,
                                               const StepContext& context, Report* report) {
  check(options);
  const std::vector<PartAtK> parts = parts_of_sigma(epsilon.size(), options, kParts);
  std::map<const GwKernels*, PreparedMatrix> prepared;
  for (GwKernels* member : context.team.members()) prepared[member];
  PartedSum parted{.name = "matrix",
                   .phase = "full-matrix self-energy",
                   .parts = static_cast<std::int64_t>(parts.size()),
                   .make = {},
                   .running = {}};
  parted.make = [&](std::int64_t index, GwKernels& kernels, Progress& inside) {
    const PartAtK& part = parts[static_cast<std::size_t>(index)];
    auto sums = empty_matrices(field, options.kpoints[part.k], options, matrix);
    Report counted;
    for (SigmaMatrixAtK& sum : sums) {
      add_part(field, epsilon[part.q_begin], options, matrix, part, context.coulomb, kernels,
               prepared.at(&kernels), sum, &counted);
      inside.throw_if_cancelled();
    }
    return packed(sums, counted);
  };
  std::vector<SigmaMatrixAtK> sums;
  for (const int ik : options.kpoints)
    for (SigmaMatrixAtK& sum : empty_matrices(field, ik, options, matrix))
      sums.push_back(std::move(sum));
  const std::vector<Piece> results =
      run_parts(parted, context.team, context.checkpoint, context.progress);
  const auto n_spins = static_cast<std::size_t>(field.n_spins());
  for (std::size_t i = 0; i < results.size(); ++i)
    add_packed(results[i], std::span(sums).subspan(parts[i].k * n_spins, n_spins), report);
  for (SigmaMatrixAtK& sum : sums)
    for (std::int64_t l = 0; l < sum.n; ++l)
      for (std::int64_t m = 0; m < l; ++m)
        sum.x_ry[static_cast<std::size_t>(l * sum.n + m)] =
            std::conj(sum.x_ry[static_cast<std::size_t>(m * sum.n + l)]);
  return sums;
}

std::vector<SigmaMatrixAtK> self_energy_matrix(
    const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
    const SigmaOptions& options, const SigmaMatrixOptions& matrix,
    const CoulombInteraction& coulomb, GwKernels& kernels, Progress& progress, Report* report) {
  DeviceTeam alone(kernels);
  Checkpoint none;
  return self_energy_matrix(field, epsilon, options, matrix, {coulomb, alone, none, progress},
                            report);
}

}  // namespace quasi::gw
