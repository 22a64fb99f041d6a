#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/part_runner.hpp"
#include "workers/gw/solver/perturbation/derivative_at_point.hpp"

namespace quasi::gw {
namespace {

void check(const MeanField& field, const SigmaOptions& options, const DerivativeRequest& wanted) {
  const std::vector<Perturbation>& perturbations = wanted.perturbations;
  if (!has_first_order(options.method))
    throw InvalidInput(
        "the derivative of Σ is built for plasmon poles, static COHSEX and contour deformation; "
        "set "
        "sigma.method to \"hl-gpp\", \"gn-gpp\", \"cohsex\" or \"contour\"");
  if (options.invalid == InvalidMode::kImaginary)
    throw InvalidInput(
        "sigma.invalid_modes = \"imaginary\" has no derivative of Σ; choose \"static\", "
        "\"two-rydberg\" or \"skip\"");
  const FilteredPseudobands* const random = wanted.pseudobands;
  if (random != nullptr && (random->plan.filter == nullptr || wanted.response == nullptr))
    throw InvalidInput(
        "the first order of pseudobands needs polynomials of H and the Sternheimer equation; set "
        "meanfield.solver = \"operator\" and perturbation.state_response = \"sternheimer\"");
  if (options.exact_static_ch && !(random != nullptr && options.method == SigmaMethod::kCohsex))
    throw InvalidInput(
        "the static remainder and the completed CH have no derivative of Σ; switch them off");
  if (field.n_spins() != 1)
    throw InvalidInput("the derivative of Σ is built for one spin; the mean field has two");
  for (const Perturbation& perturbation : perturbations)
    if (perturbation.p != perturbations.front().p)
      throw InvalidInput("perturbation '" + perturbation.name + "' has another wave vector than '" +
                         perturbations.front().name + "'; calculate each wave vector by itself");
}

/// Number of bands of a part; the last part of a k-point may have fewer. Small parts let all
/// devices end at about the same time, and let the job write checkpoints often. With even fewer
/// bands the matrix products would be too small to occupy a device.
constexpr std::int64_t kBandsOfPart = 32;

/// Number of perturbations of a part of pseudobands. Each part repeats the recursion of the states
/// at rest, and more parts let more devices work.
constexpr std::int64_t kPerturbationsOfPart = 3;

/// The share of one task: ranges of bands and perturbations in the term of one q.
struct DerivativePart {
  DerivativePoint point;
  DerivativeRange range;
};

/// Lists all parts at one k. The list depends on the problem alone.
std::vector<DerivativePart> parts_at(const DerivativeProblem& problem, int k_index) {
  const std::int64_t n_bands = problem.n_paired(), n_p = std::ssize(problem.perturbations),
                     count = std::max<std::int64_t>(1, n_bands / kBandsOfPart);
  std::vector<DerivativePart> parts;
  for (std::size_t iq = 0; iq < problem.epsilon.size(); ++iq)
    for (const ZonePoint& point : problem.field.transfers().points()) {
      if (point.irreducible != static_cast<int>(iq)) continue;
      for (std::int64_t b = 0; b < count; ++b)
        parts.push_back(
            {{k_index, iq, point.k}, {{b * n_bands / count, (b + 1) * n_bands / count}, {0, n_p}}});
      // All windows of a vector share their recursion, so that a part has all pseudobands.
      if (problem.pseudobands == nullptr) continue;
      for (std::int64_t p = 0; p < n_p; p += kPerturbationsOfPart)
        parts.push_back(
            {{k_index, iq, point.k},
             {{n_bands, problem.options.bands}, {p, std::min(p + kPerturbationsOfPart, n_p)}}});
    }
  return parts;
}

/// The point at which a device works. It stays from one part to the next.
struct PointOnDevice {
  const DerivativePart* part = nullptr;  ///< a part of the point
  std::unique_ptr<DerivativeAtPoint> at;

  bool is_of(const DerivativePart& other) const {
    return part != nullptr && part->point.iq == other.point.iq && part->point.q == other.point.q;
  }
};

/// Calls visit(values) for every array of sums.
template <typename Sums, typename Visit>
void for_each_array(Sums& sum, const Visit& visit) {
  for (auto* values : {&sum.correlation, &sum.fixed_energies, &sum.exchange}) visit(*values);
}

std::vector<double> packed(const std::vector<DerivativeSums>& sums) {
  std::vector<double> values;
  for (const DerivativeSums& sum : sums)
    for_each_array(sum, [&](const std::vector<Cplx>& list) {
      const auto* flat = reinterpret_cast<const double*>(list.data());
      values.insert(values.end(), flat, flat + 2 * list.size());
    });
  return values;
}

/// Adds the result of a part to the sums, [n_screenings][n_p].
void add_packed(const Piece& values, const DerivativePart& part, std::size_t n_p,
                std::vector<DerivativeSums>& sums) {
  const double* next = values.data;
  const BandRange& of_part = part.range.perturbations;
  for (std::size_t first = 0; first < sums.size(); first += n_p)
    for (std::int64_t p = of_part.begin; p < of_part.end; ++p)
      for_each_array(sums[first + static_cast<std::size_t>(p)], [&](std::vector<Cplx>& list) {
        for (Cplx& value : list) {
          value += Cplx(next[0], next[1]);
          next += 2;
        }
      });
}

/// Returns sums of zeros for every screened interaction and perturbation, with room for all outer
/// states and energies.
std::vector<DerivativeSums> empty_sums(const DerivativeProblem& problem) {
  const auto size = static_cast<std::size_t>(problem.n_outer() * problem.n_outer()),
             all = size * problem.energies_ry.size();
  return std::vector<DerivativeSums>(
      problem.n_screenings() * problem.perturbations.size(),
      {std::vector<Cplx>(all), std::vector<Cplx>(all), std::vector<Cplx>(size)});
}

/// Returns a number that tells the sums of a checkpoint from those of another request.
std::uint64_t digest_of_request(const DerivativeProblem& problem) {
  ProblemDigest digest;
  for (const Perturbation& perturbation : problem.perturbations) {
    digest.add(perturbation.name.data(), perturbation.name.size());
    digest.add(&perturbation.digest, sizeof perturbation.digest);
  }
  if (problem.response != nullptr)
    digest.add(&problem.response->residual, sizeof problem.response->residual);
  if (problem.pseudobands != nullptr) {
    const PseudobandPlan& plan = problem.pseudobands->plan;
    for (const std::size_t value :
         {static_cast<std::size_t>(plan.seed), static_cast<std::size_t>(plan.kept),
          plan.chosen.size(), plan.used.size(), problem.n_screenings()})
      digest.add(static_cast<double>(value));
  }
  return digest.value();
}

/// Calculates the sums of all screened interactions and perturbations at one k on the devices of
/// the team, [n_screenings][n_p].
std::vector<DerivativeSums> sums_at(const DerivativeProblem& problem, int k_index,
                                    const StepContext& context, StepTimes* times) {
  const std::vector<DerivativePart> parts = parts_at(problem, k_index);
  std::map<const GwKernels*, PointOnDevice> points;
  for (GwKernels* member : context.team.members()) points[member] = {};
  PartedSum sum{.name = "first order of Σ " + std::to_string(digest_of_request(problem)) +
                        " at k " + std::to_string(k_index),
                .phase = "first order of the self-energy",
                .parts = std::ssize(parts),
                .make = {},
                .running = {}};
  sum.make = [&](std::int64_t i, GwKernels& kernels, Progress& inside) {
    const DerivativePart& part = parts[static_cast<std::size_t>(i)];
    PointOnDevice& here = points.at(&kernels);
    if (!here.is_of(part)) {
      here = {};  // Two points need not fit into the memory of a device.
      here = {&part, std::make_unique<DerivativeAtPoint>(problem, part.point, context.coulomb,
                                                         kernels, times)};
    }
    std::vector<double> values = packed(here.at->part(part.range));
    inside.throw_if_cancelled();
    return values;
  };
  std::vector<DerivativeSums> sums = empty_sums(problem);
  const std::vector<Piece> pieces =
      run_parts(sum, context.team, context.checkpoint, context.progress);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    add_packed(pieces[i], parts[i], problem.perturbations.size(), sums);
  return sums;
}

/// Calculates ⟨l|∂V|m⟩ between the outer states at one k, of each perturbation.
std::vector<std::vector<Cplx>> outer_couplings(const DerivativeProblem& problem, int k_index,
                                               GwKernels& kernels) {
  const Vec3 k = problem.field.waves.k[static_cast<std::size_t>(k_index)];
  const BraPoint bra = bra_point(k, problem.perturbations.front().p);
  const WavesAtPoint left = problem.outer_waves(bra.k), right = problem.outer_waves(k);
  const std::int64_t n = problem.n_outer(), size = n * n, n_p = std::ssize(problem.perturbations);
  const auto block = kernels.hamiltonian().make_couplings();
  coupling_parts(problem.perturbations, k, left, bra.umklapp, right, kernels)
      ->of_kets({0, n}, *block);
  std::vector<Cplx> all(static_cast<std::size_t>(n_p * size));
  block->read(view<Cplx>(all, n_p, n, n));
  std::vector<std::vector<Cplx>> elements;
  for (std::int64_t p = 0; p < n_p; ++p)
    elements.emplace_back(all.begin() + p * size, all.begin() + (p + 1) * size);
  return elements;
}

}  // namespace

std::vector<std::vector<SigmaDerivativeAtK>> sigma_derivatives(
    const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
    const SigmaOptions& options, const DerivativeRequest& wanted, const StepContext& context) {
  const std::vector<Perturbation>& perturbations = wanted.perturbations;
  check(field, options, wanted);
  DerivativeProblem problem{
      field,
      epsilon,
      options,
      perturbations,
      options.method == SigmaMethod::kCohsex ? std::vector<double>{0.0} : wanted.energies_ry,
      {},
      wanted.response,
      wanted.pseudobands};
  std::vector<IVec3> kept;
  for (std::size_t iq = 0; iq < epsilon.size(); ++iq)
    for (const IVec3& g : problem.bare_sphere(iq).g) kept.push_back(g);
  problem.box = sum_box(field, kept);
  std::vector<std::vector<SigmaDerivativeAtK>> results(perturbations.size());
  for (const int ik : options.kpoints) {
    std::vector<std::vector<Cplx>> elements = outer_couplings(problem, ik, context.team.first());
    std::vector<DerivativeSums> sums = sums_at(problem, ik, context, wanted.times);
    for (std::size_t p = 0; p < perturbations.size(); ++p) {
      results[p].push_back({.k_index = ik,
                            .n = problem.n_outer(),
                            .energy_ry = problem.energies_ry,
                            .mean_field = std::move(elements[p]),
                            .sigma = std::move(sums[p])});
      for (std::size_t i = p + perturbations.size(); i < sums.size(); i += perturbations.size())
        results[p].back().without.push_back(std::move(sums[i]));
    }
  }
  return results;
}

std::vector<std::vector<SigmaDerivativeAtK>> sigma_derivatives(
    const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
    const SigmaOptions& options, const std::vector<Perturbation>& perturbations,
    const std::vector<double>& energies_ry, const DeviceContext& context) {
  DeviceTeam team(context.kernels);
  Checkpoint none;
  return sigma_derivatives(field, epsilon, options, DerivativeRequest{perturbations, energies_ry},
                           StepContext{context.coulomb, team, none, context.progress});
}

}  // namespace quasi::gw
