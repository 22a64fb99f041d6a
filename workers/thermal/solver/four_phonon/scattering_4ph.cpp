#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/four_phonon/precedence_4ph.hpp"
#include "workers/thermal/solver/four_phonon/share_tiles.hpp"
#include "workers/thermal/solver/four_phonon/total_order_4ph.hpp"
#include "workers/thermal/solver/transport/kappa_error.hpp"

namespace quasi::thermal {

namespace {

/// Largest violation of inversion by constants and modes with which half of the pairs stand for
/// all.
constexpr double kInversionTolerance = 1e-8;

/// Mesh coordinates of every point folded into the first zone: the shortest image, the first found
/// among equally short ones.
std::vector<std::int16_t> first_zone_coordinates(const Crystal& crystal, const QMesh& mesh) {
  const Mat3 b = crystal.reciprocal_per_nm();
  std::vector<std::int16_t> zone(static_cast<std::size_t>(3 * mesh.size()));
#pragma omp parallel for schedule(static)
  for (std::int64_t q = 0; q < mesh.size(); ++q) {
    int c[3];
    mesh.coordinates(q, c);
    double shortest = std::numeric_limits<double>::infinity();
    for (int i = -2; i <= 1; ++i)
      for (int j = -2; j <= 1; ++j)
        for (int k = -2; k <= 1; ++k) {
          const int m[3] = {c[0] + i * mesh.n[0], c[1] + j * mesh.n[1], c[2] + k * mesh.n[2]};
          Vec3 cartesian{};
          for (int x = 0; x < 3; ++x)
            cartesian = cartesian + (static_cast<double>(m[x]) / mesh.n[x]) * b[x];
          const double square = dot(cartesian, cartesian);
          if (square < shortest * (1.0 - 1e-9)) {
            shortest = square;
            for (int x = 0; x < 3; ++x)
              zone[static_cast<std::size_t>(3 * q + x)] = static_cast<std::int16_t>(m[x]);
          }
        }
  }
  return zone;
}

/// Counts the points that each q' stands for under the little group of `point`. The point of lowest
/// number represents its orbit.
/// @param images  of images_of_points()
void fold_partners(const Symmetry& symmetry, const std::vector<std::int32_t>& images,
                   std::int32_t point, std::uint16_t* weight) {
  const std::int64_t n = symmetry.mesh.size();
  std::vector<const std::int32_t*> little_group;
  for (std::int64_t op = 0; op < static_cast<std::int64_t>(symmetry.operations.size()); ++op)
    if (symmetry.fixes(point, op, false)) little_group.push_back(&images[op * n]);
  constexpr std::uint16_t kUnseen = std::numeric_limits<std::uint16_t>::max();
  std::fill(weight, weight + n, kUnseen);
  for (std::int64_t q = 0; q < n; ++q) {
    if (weight[q] != kUnseen) continue;
    std::uint16_t orbit = 0;
    for (const std::int32_t* image : little_group)
      if (weight[image[q]] == kUnseen) {
        weight[image[q]] = 0;
        ++orbit;
      }
    weight[q] = orbit;
  }
}

}  // namespace

double Rates4ph::total_per_ps(int temperature, std::int64_t row) const {
  double sum = 0.0;
  for (int c = 0; c < kChannels4ph; ++c)
    sum += rate_per_ps(static_cast<Channel4ph>(c), temperature, row);
  return sum;
}

double Rates4ph::total_error_per_ps(int temperature, std::int64_t row) const {
  double square = 0.0;
  for (int c = 0; c < kChannels4ph && !error_per_ps.empty(); ++c) {
    const double e =
        error_per_ps[static_cast<std::size_t>(at(static_cast<Channel4ph>(c), temperature, row))];
    square += e * e;
  }
  return std::sqrt(square);
}

double Rates4ph::total_processes(Channel4ph channel) const {
  double sum = 0.0;
  for (std::int64_t row = 0; row < n_rows; ++row)
    sum += processes[static_cast<std::size_t>(at(channel, row))];
  return sum;
}

Rules4ph rules_4ph(const FourPhononOptions& options, const Modes& modes) {
  Rules4ph rules;
  rules.broadening = options.broadening;
  rules.scale_broad = options.scale_broad;
  rules.cut = options.cut;
  rules.tie_tolerance_rad_ps = options.tie_tolerance_rad_ps;
  rules.window_norm = options.window_norm ? std::erf(options.cut) : 1.0;
  rules.sigma_least_rad_ps = options.sigma_least_rad_ps;
  rules.sigma_floor_rad_ps = options.sigma_floor_rad_ps;
  rules.omega_floor_rad_ps = options.omega_floor_rad_ps;
  rules.exact_weights = options.exact_weights;
  if (options.compat) {
    rules.sigma_at_floor_rad_ps = 1.0 / std::sqrt(units::kPi);
  } else if (rules.sigma_floor_rad_ps == 0.0) {
    // Tuples that are resonant by symmetry and whose phonons stand still would have an infinite δ.
    // A tenth of the typical width (⟨σ²⟩ = sb²⟨|p|²⟩/3 for independent p) keeps them finite and
    // leaves nearly all others alone.
    rules.sigma_floor_rad_ps = 0.1 * options.scale_broad *
                               std::sqrt(mean_square_spread(modes, options.omega_max_rad_ps) / 3.0);
  }
  return rules;
}

namespace {

void require_indexable(const QMesh& mesh, int n_branches) {
  if (static_cast<double>(mesh.size()) * n_branches * n_branches > 2.0e9)
    throw InvalidInput("four phonons: 'ngrid' = " + std::to_string(mesh.n[0]) + " " +
                       std::to_string(mesh.n[1]) + " " + std::to_string(mesh.n[2]) + " with " +
                       std::to_string(n_branches) +
                       " branches gives more than 2e9 pairs of modes per total "
                       "momentum; use a coarser mesh");
}

/// Fills in frequencies, degenerate sets, spreads and occupations of the modes.
void add_modes(const FourPhononOptions& options, const Modes& modes, Problem4ph& problem) {
  const int nb = problem.n_branches;
  problem.omega_rad_ps = modes.omega_rad_ps;
  for (std::int64_t mode = 0; mode < modes.n_modes(); ++mode)
    if (!modes.active(mode, options.omega_max_rad_ps))
      problem.omega_rad_ps[static_cast<std::size_t>(mode)] = 0.0;
  problem.set.resize(problem.omega_rad_ps.size());
  for (std::int64_t mode = 0; mode < modes.n_modes(); ++mode)
    problem.set[static_cast<std::size_t>(mode)] = static_cast<std::int32_t>(
        options.average_degenerate ? mode / nb * nb + modes.subspace[static_cast<std::size_t>(mode)]
                                   : mode);
  problem.spread_rad_ps = modes.spread_rad_ps;
  problem.temperatures_k = options.temperatures_k;
  const std::size_t n_modes = problem.omega_rad_ps.size();
  problem.occupation.resize(problem.temperatures_k.size() * n_modes);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < problem.occupation.size(); ++i) {
    const double omega = problem.omega_rad_ps[i % n_modes];
    problem.occupation[i] = omega > 0.0 ? bose_einstein(omega, problem.temperatures_k[i / n_modes],
                                                        options.constants.hbar_over_kb_k_ps())
                                        : 0.0;
  }
}

/// Returns true if the rows of λ and λ' share their processes (exchange_4ph.hpp).
bool exchanges_partners(const FourPhononOptions& options, const Symmetry& symmetry,
                        const std::vector<std::int32_t>& points) {
  return options.omega_floor_rad_ps == 0.0 && points == symmetry.irreducible;
}

/// Lets symmetry reduce the sums over partners, total momenta and pairs (λ, λ'). The sums over
/// degenerate sets stay as they are, those of single branches do not.
void reduce_by_symmetry(const FourPhononOptions& options, const Symmetry& symmetry,
                        Problem4ph& problem) {
  const std::vector<std::int32_t>& points = problem.point;
  const std::vector<std::int32_t> images = images_of_points(symmetry);
  if (options.use_symmetry)
#pragma omp parallel for schedule(dynamic, 1)
    for (std::size_t i = 0; i < points.size(); ++i)
      fold_partners(symmetry, images, points[i],
                    &problem.partner_weight[i * static_cast<std::size_t>(problem.mesh.size())]);
  problem.totals = order_totals_4ph(symmetry, images);
  if (exchanges_partners(options, symmetry, points)) {
    problem.star = symmetry.star_of;
    problem.star_size = symmetry.multiplicity;
    order_precedence_4ph(problem);
  }
}

/// Finds the centre of inversion of crystal and constants and makes the eigenvectors of the problem
/// those that it leaves unchanged.
std::optional<Inversion> use_inversion(const Crystal& crystal, const Modes& modes,
                                       const SparseForceConstants& fourth_order,
                                       double symmetry_tolerance_nm, Problem4ph& problem) {
  std::optional<Inversion> inversion = find_inversion(crystal, symmetry_tolerance_nm);
  if (inversion && inversion_residual(*inversion, fourth_order) > kInversionTolerance)
    inversion.reset();
  if (!inversion) return inversion;
  const double residual =
      turn_to_inversion(problem.mesh, *inversion, modes.subspace, problem.eigenvector);
  if (residual > kInversionTolerance) {
    inversion.reset();
    problem.eigenvector = modes.eigenvector;
  }
  return inversion;
}

}  // namespace

Problem4ph make_problem_4ph(const Crystal& crystal, const Modes& modes, const Symmetry& symmetry,
                            const FourPhononOptions& options,
                            const SparseForceConstants& fourth_order,
                            const std::vector<std::int32_t>& points) {
  const QMesh mesh = symmetry.mesh;
  require_indexable(mesh, crystal.n_branches());
  Problem4ph problem;
  problem.mesh = mesh;
  problem.n_branches = crystal.n_branches();
  problem.rules = rules_4ph(options, modes);
  problem.precision = options.precision;
  add_modes(options, modes, problem);
  problem.eigenvector = modes.eigenvector;
  problem.zone = first_zone_coordinates(crystal, mesh);
  problem.point = points;
  problem.partner_weight.assign(points.size() * static_cast<std::size_t>(mesh.size()), 1);
  std::optional<Inversion> inversion;
  if (options.has_symmetric_processes()) {
    reduce_by_symmetry(options, symmetry, problem);
    inversion = use_inversion(crystal, modes, fourth_order, options.symmetry_tolerance_nm, problem);
  }
  problem.plan = plan_contraction_4ph(crystal, fourth_order, inversion ? &*inversion : nullptr);
  problem.phase = phase_table_4ph(mesh, problem.plan);
  return problem;
}

Problem4ph outline_problem_4ph(const Modes& modes, const Symmetry& symmetry,
                               const FourPhononOptions& options,
                               const std::vector<std::int32_t>& points) {
  Problem4ph outline;
  outline.mesh = symmetry.mesh;
  outline.n_branches = modes.n_branches;
  outline.plan.n_atoms = modes.n_branches / 3;
  outline.rules.broadening = options.broadening;
  outline.precision = options.precision;
  outline.temperatures_k = options.temperatures_k;
  outline.point = points;
  if (!options.has_symmetric_processes()) return outline;
  if (symmetry.folded) {
    outline.totals.representative = symmetry.irreducible;
    outline.totals.total.resize(static_cast<std::size_t>(symmetry.mesh.size()));
  }
  if (exchanges_partners(options, symmetry, points)) {
    outline.star = symmetry.star_of;
    outline.star_size = symmetry.multiplicity;
  }
  return outline;
}

std::uint64_t digest_of(const Problem4ph& p) {
  ProblemDigest d;
  d.add(p.mesh.n, sizeof p.mesh.n);
  for (const double value :
       {p.rules.scale_broad, p.rules.cut, p.rules.tie_tolerance_rad_ps, p.rules.window_norm,
        p.rules.sigma_least_rad_ps, p.rules.sigma_floor_rad_ps, p.rules.sigma_at_floor_rad_ps,
        p.rules.omega_floor_rad_ps, static_cast<double>(p.rules.broadening),
        static_cast<double>(p.rules.exact_weights), static_cast<double>(p.precision)})
    d.add(value);
  d.add(p.omega_rad_ps);
  d.add(p.set);
  d.add(p.spread_rad_ps);
  d.add(p.temperatures_k);
  d.add(p.occupation);
  d.add(p.eigenvector);
  d.add(p.point);
  d.add(p.partner_weight);
  d.add(p.star);
  if (!p.star.empty()) d.add(p.precedence);
  d.add(p.totals.total);
  d.add(p.plan.tensor);
  d.add(p.plan.cell);
  return d.value();
}

Rates4ph scattering_rates_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                              const Team4ph& team, Progress& progress,
                              const CheckpointRule& checkpoint_rule) {
  ReadySums4ph ready(team, problem);
  return scattering_rates_4ph(problem, constants, ready, team, progress, checkpoint_rule);
}

Rates4ph scattering_rates_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                              ReadySums4ph& ready, const Team4ph& team, Progress& progress,
                              const CheckpointRule& checkpoint_rule) {
  const SumLayout4ph layout{static_cast<int>(problem.temperatures_k.size())};
  const std::int64_t n_rows = static_cast<std::int64_t>(problem.point.size()) * problem.n_branches;
  const std::int64_t values = n_rows * kChannels4ph * layout.size();
  const TilePlan4ph& plan = ready.plan;
  Checkpoint checkpoint = open_checkpoint(checkpoint_rule, progress);
  RunningSums sums(checkpoint,
                   "4ph, tiles of stars by work, " + team.kernels.front()->sums_form(problem),
                   digest_of(problem), static_cast<std::size_t>(values), plan.size());
  progress.report("scattering 4ph", plan.progress(sums.finished()), TilePlan4ph::kProgressUnits);
  on_every_tile(
      {ready.loading, plan, sums.finished()}, team, progress,
      [](ScatteringKernels4ph& kernel, std::int32_t first, std::int32_t last) {
        kernel.expect(first, last);
      },
      [](ScatteringKernels4ph& kernel, std::int32_t first, std::int32_t last) {
        return kernel.sums(first, last);
      },
      [&](std::int64_t place, const std::vector<double>& piece) {
        sums.add(piece);
        double found = 0.0;
        for (std::int64_t v = layout.six_count(); v < values; v += layout.size())
          found += sums.total()[static_cast<std::size_t>(v)] / 6.0;
        progress.metric("processes_4ph", found);
        progress.report("scattering 4ph", plan.progress(place + 1), TilePlan4ph::kProgressUnits);
      });
  team.ranks->broadcast(sums.total(), 0);
  return rates_of_sums_4ph(problem, constants, sums.total());
}

Rates4ph rates_of_sums_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                           const std::vector<double>& total) {
  const SumLayout4ph layout{static_cast<int>(problem.temperatures_k.size())};
  const std::int64_t n_rows = static_cast<std::int64_t>(problem.point.size()) * problem.n_branches;
  const double nq = static_cast<double>(problem.mesh.size());
  const double nb = problem.n_branches;
  Rates4ph rates{.n_rows = n_rows, .n_temperatures = layout.n_temperatures};
  const auto per_temperature =
      static_cast<std::size_t>(kChannels4ph * layout.n_temperatures * n_rows);
  rates.normal_per_ps.resize(per_temperature);
  rates.umklapp_per_ps.resize(per_temperature);
  rates.weighted_phase_space.resize(per_temperature);
  rates.phase_space.resize(static_cast<std::size_t>(kChannels4ph * n_rows));
  rates.processes.resize(static_cast<std::size_t>(kChannels4ph * n_rows));
  for (std::int64_t row = 0; row < n_rows; ++row)
    for (int c = 0; c < kChannels4ph; ++c) {
      const double* sum =
          &total[static_cast<std::size_t>((row * kChannels4ph + c) * layout.size())];
      const auto channel = static_cast<Channel4ph>(c);
      for (int t = 0; t < layout.n_temperatures; ++t) {
        const auto at = static_cast<std::size_t>(rates.at(channel, t, row));
        rates.normal_per_ps[at] = constants.rate_4ph / (nq * nq) * sum[layout.normal(t)];
        rates.umklapp_per_ps[at] = constants.rate_4ph / (nq * nq) * sum[layout.umklapp(t)];
        rates.weighted_phase_space[at] = sum[layout.weighted_phase_space(t)] / (nq * nq);
      }
      const auto at = static_cast<std::size_t>(rates.at(channel, row));
      rates.phase_space[at] = sum[layout.phase_space()] / (nq * nq * nq * nb * nb * nb * nb);
      // Shares of the rows of one process are fractions, whose sums are whole numbers.
      rates.processes[at] = std::rint(sum[layout.six_count()]) / 6.0;
      rates.evaluations += sum[layout.evaluations()];
    }
  return rates;
}

void average_degenerate_4ph(const Modes& modes, const std::vector<std::int32_t>& points,
                            Rates4ph& rates) {
  const int nb = modes.n_branches;
  const auto average = [&](std::vector<double>& values) {
    for (std::size_t base = 0; base < values.size(); base += static_cast<std::size_t>(rates.n_rows))
      for (std::size_t i = 0; i < points.size(); ++i) {
        const auto* subspace = &modes.subspace[static_cast<std::size_t>(points[i]) * nb];
        double* value = &values[base + i * nb];
        for (int first = 0; first < nb;) {
          int end = first + 1;
          while (end < nb && subspace[end] == subspace[first]) ++end;
          double sum = 0.0;
          for (int s = first; s < end; ++s) sum += value[s];
          for (int s = first; s < end; ++s) value[s] = sum / (end - first);
          first = end;
        }
      }
  };
  average(rates.normal_per_ps);
  average(rates.umklapp_per_ps);
  average(rates.weighted_phase_space);
  average(rates.phase_space);
  average(rates.processes);
  for (std::size_t base = 0; base < rates.error_per_ps.size();
       base += static_cast<std::size_t>(rates.n_rows))
    average_errors_over_subspaces(modes, points, &rates.error_per_ps[base]);
}

}  // namespace quasi::thermal
