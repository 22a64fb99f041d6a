#include "workers/gw/solver/self_energy/sigma_matrix.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "workers/backend/device/memory_budget.hpp"
#include "workers/backend/error.hpp"
#include "workers/backend/team/blas_threads.hpp"
#include "workers/gw/solver/part_runner.hpp"
#include "workers/gw/solver/self_energy/sigma_parts.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"
#include "workers/gw/solver/self_energy/zone_sum/outer_products.hpp"

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

/// The matrices that are wanted.
struct MatrixProblem {
  const MeanField& field;
  const std::vector<DielectricMatrix>& epsilon;
  const SigmaOptions& options;
  const SigmaMatrixOptions& matrix;
};

/// Screening of one q that one device keeps for its next parts of the same q.
struct PreparedMatrix {
  std::int64_t iq = -1;
  ScreeningAtQ at;
  UnsetVector<Cplx> static_w;
  WingFactors wings;
  SubspaceOfW subspace;
  std::shared_ptr<const LoadedPoleModel> poles;
};

/// Makes the sums of the right shape at one k, one for each spin, all 0.
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

/// One part (k, q, block of inner bands) of the matrix on one device.
class MatrixPart {
 public:
  MatrixPart(const MatrixProblem& problem, const PartAtK& part, const DeviceContext& context,
             PreparedMatrix& prepared)
      : field_(problem.field),
        epsilon_(problem.epsilon[part.q_begin]),
        options_(problem.options),
        matrix_(problem.matrix),
        part_(part),
        coulomb_(context.coulomb),
        kernels_(context.kernels),
        prepared_(prepared) {
    for (const ZonePoint& point : field_.transfers().points())
      if (point.irreducible == static_cast<int>(part.q_begin)) members_.push_back(point.k);
  }

  /// Adds the part to the matrix of one spin, and the kernel's counts to `report`.
  void add_to(SigmaMatrixAtK& sum, Report& report) {
    prepare_screening();
    if (part_.band_begin == 0) add_exchange(sum);
    OuterProducts outer(field_, outer_bands(sum), sum_box(field_, prepared_.at.sphere.g), kernels_);
    const std::int64_t step = bands_that_fit(outer);
    for (const Vec3& q : members_) {
      const auto sphere =
          outer.load_sphere(q, prepared_.at.sphere, OuterProducts::Phases::kApplied);
      if (wings_by_point())
        apply_wings(
            wing_factors_of_listed_point(prepared_.at.epsilon, coulomb_, field_.crystal().bdot, q));
      for (std::int64_t begin = part_.band_begin; begin < part_.band_end; begin += step) {
        BandBlock block = outer.load_inner(q, begin, std::min(part_.band_end, begin + step));
        block.weight = 1.0 / field_.zone_volume_bohr3();
        add_correlation(block, outer.fill(*sphere), sum, report);
      }
    }
  }

 private:
  /// True where every q of the zone has wing factors of its own (the wing rule of BerkeleyGW).
  bool wings_by_point() const { return coulomb_.options().wing_rule == WingRule::kListedPoint; }
  BandsAtK outer_bands(const SigmaMatrixAtK& sum) const {
    return {sum.k_index, sum.spin, options_.band_min - 1, options_.band_max};
  }

  void prepare_screening() {
    const auto iq = static_cast<std::int64_t>(part_.q_begin);
    if (prepared_.iq == iq && !wings_by_point()) return;
    prepared_ = {};
    prepared_.iq = iq;
    if (options_.method == SigmaMethod::kContour) {
      FullFrequencyW w = full_frequency_w(field_, epsilon_, options_, coulomb_, kernels_);
      prepared_.at = std::move(w.at);
      prepared_.subspace = std::move(w.subspace);
    } else {
      prepared_.at = screening_at(field_, epsilon_, options_.screened_cutoff_ry, coulomb_);
    }
    apply_wings(wing_factors(prepared_.at.epsilon));
  }
  /// Makes static W or the poles with given wing factors.
  void apply_wings(const WingFactors& wings) {
    prepared_.wings = wings;
    if (options_.method == SigmaMethod::kCohsex)
      prepared_.static_w = screened_matrix(prepared_.at, 0, wings);
    if (!uses_plasmon_poles(options_.method)) return;
    prepared_.poles = {};  // its memory is free before the next model takes as much
    prepared_.poles = kernels_.pole_sums().load(
        plasmon_poles(field_, prepared_.at, options_, coulomb_, wings).view(), options_.rules);
  }

  /// X_lm −= w Σ_nG M_ln v̄ M*_mn over the occupied bands and the bare sphere.
  void add_exchange(SigmaMatrixAtK& sum) {
    const DielectricMatrix& epsilon = prepared_.at.epsilon;
    const GSphere sphere = make_g_sphere(
        field_.crystal().bdot, epsilon.at_gamma ? Vec3{} : epsilon.q, options_.bare_cutoff_ry);
    const std::vector<double> v = averaged_coulomb(epsilon, sphere, coulomb_);
    const std::int64_t n_g = sphere.size(), n_l = sum.n;
    const int n_v = field_.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)];
    OuterProducts outer(field_, outer_bands(sum), sum_box(field_, sphere.g), kernels_);
    std::vector<Cplx> m(static_cast<std::size_t>(n_l * n_v * n_g));
    for (const Vec3& q : members_) {
      const auto rotated = outer.load_sphere(q, sphere, OuterProducts::Phases::kLeftOut);
      outer.load_inner(q, 0, n_v);
      outer.fill(*rotated).read(view<Cplx>(m, n_l, n_v, n_g));
      for (std::int64_t p = 0; p < n_l * n_v; ++p)
        for (std::int64_t g = 0; g < n_g; ++g)
          m[static_cast<std::size_t>(p * n_g + g)] *= std::sqrt(v[static_cast<std::size_t>(g)]);
      const auto rows = static_cast<int>(n_l), columns = static_cast<int>(n_v * n_g);
      const ThreadedBlas threads(4.0 * static_cast<double>(n_l * n_l) *
                                 static_cast<double>(n_v * n_g));
      cblas_zherk(CblasRowMajor, CblasUpper, CblasNoTrans, rows, columns,
                  -1.0 / field_.zone_volume_bohr3(), m.data(), columns, 1.0, sum.x_ry.data(), rows);
    }
  }

  /// Inner bands at a time: beside the poles or W, their product and the outer bands, each takes
  /// its values in the box and its products.
  std::int64_t bands_that_fit(const OuterProducts& outer) const {
    const std::int64_t n_g = prepared_.at.sphere.size(), n_l = outer.outer().size();
    const std::int64_t fixed = 48 * n_g * n_g + outer.band_bytes() * n_l,
                       band = 64 * n_l * n_g + outer.band_bytes();
    const std::int64_t budget =
        budget_beside(options_.memory_budget_bytes, options_.memory_limit_bytes, fixed, band);
    return std::min<std::int64_t>(options_.bands,
                                  items_that_fit(budget, fixed, band, "full-matrix self-energy"));
  }

  void add_correlation(BandBlock& block, PairBlock& products, SigmaMatrixAtK& sum, Report& report) {
    if (options_.method == SigmaMethod::kCohsex) {
      add_static(block, products, sum);
      return;
    }
    if (options_.method == SigmaMethod::kContour) {
      block.midgap_ry = midgap_ry(field_, sum.spin);
      add_contour_matrix({prepared_.at, prepared_.wings, prepared_.subspace}, options_.contour,
                         block, products, sum);
      return;
    }
    const auto n_e = static_cast<std::int64_t>(sum.energy_ry.size());
    const OffDiagonalTerms terms{view<const double>(sum.energy_ry, n_e),
                                 view<const double>(block.inner_ry, block.n_b),
                                 view<const double>(block.occupation, block.n_b), block.weight};
    add(prepared_.poles->add_offdiagonal(products, terms, matrix_.kernel,
                                         view<Cplx>(sum.correlation_ry, n_e, sum.n, sum.n)),
        &report);
  }
  /// Static SX − X and CH: +I for occupied bands, −½ I for all.
  void add_static(const BandBlock& block, const PairBlock& products, SigmaMatrixAtK& sum) {
    const std::int64_t n_g = products.n_g();
    std::vector<double> factor;
    for (const double f : block.occupation) factor.push_back(block.weight * (f - 0.5));
    products.quadratic_form_matrix(view<const Cplx>(prepared_.static_w, n_g, n_g),
                                   view<const double>(factor, 1, factor.size()),
                                   view<Cplx>(sum.correlation_ry, 1, sum.n, sum.n));
  }

  const MeanField& field_;
  const DielectricMatrix& epsilon_;
  const SigmaOptions& options_;
  const SigmaMatrixOptions& matrix_;
  const PartAtK& part_;
  const CoulombInteraction& coulomb_;
  GwKernels& kernels_;
  PreparedMatrix& prepared_;
  std::vector<Vec3> members_;  ///< all q of the zone that belong to the part's irreducible q
};

/// Calls visit(data, count) for every array of the sums of a part, as doubles, in one order.
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
  const MatrixProblem problem{field, epsilon, options, matrix};
  PartedSum parted{.name = "matrix",
                   .phase = "full-matrix self-energy",
                   .parts = static_cast<std::int64_t>(parts.size()),
                   .make = {},
                   .running = {}};
  parted.make = [&](std::int64_t index, GwKernels& kernels, Progress& inside) {
    const PartAtK& part = parts[static_cast<std::size_t>(index)];
    auto sums = empty_matrices(field, options.kpoints[part.k], options, matrix);
    Report counted;
    MatrixPart made(problem, part, {context.coulomb, kernels, inside}, prepared.at(&kernels));
    for (SigmaMatrixAtK& sum : sums) {
      made.add_to(sum, counted);
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

std::vector<SigmaMatrixAtK> self_energy_matrix(const MeanField& field,
                                               const std::vector<DielectricMatrix>& epsilon,
                                               const SigmaOptions& options,
                                               const SigmaMatrixOptions& matrix,
                                               const DeviceContext& context, Report* report) {
  DeviceTeam alone(context.kernels);
  Checkpoint none;
  return self_energy_matrix(field, epsilon, options, matrix,
                            {context.coulomb, alone, none, context.progress}, report);
}

}  // namespace quasi::gw
