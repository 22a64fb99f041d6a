#include "workers/gw/solver/pseudoband_errors/sigma_response.hpp"

#include <algorithm>
#include <complex>
#include <iterator>
#include <string>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"
#include "workers/gw/kernels/pole_sums/changes/screened_elements.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cpu.hpp"
#include "workers/gw/solver/part_runner.hpp"
#include "workers/gw/solver/self_energy/sigma_parts.hpp"

namespace quasi::gw {
namespace {

double tau_of(double pole_ry) { return pole_ry >= kStaticPole_ry ? 0.0 : 1.0 / pole_ry; }

/// Returns Σ_D w(D) ρ_ll(D) of the outer states at a member S q of a star, where w(D) of q is
/// given in a box: S takes D to S D with the phase e^{−i(SD)·τ}; [n_l].
std::vector<double> closed_sums(const ChargeTable& charge, const SymmetryOperation& operation,
                                const DifferenceBox& box, const std::vector<Cplx>& sums) {
  const IMat3 back = inverse(operation.rotation);
  const auto n_d = static_cast<std::size_t>(charge.sphere.size());
  std::vector<Cplx> w(n_d);
#pragma omp parallel for schedule(static)
  for (std::size_t d = 0; d < n_d; ++d) {
    const IVec3& at = charge.sphere.g[d];
    const std::int64_t from = box.position(multiply(back, at));
    if (from >= 0)
      w[d] = sums[static_cast<std::size_t>(from)] *
             std::polar(1.0, -dot(to_real(at), operation.translation));
  }
  std::vector<double> found(charge.values.size() / n_d);
#pragma omp parallel for schedule(static)
  for (std::size_t l = 0; l < found.size(); ++l)
    for (std::size_t d = 0; d < n_d; ++d) found[l] += (w[d] * charge.values[l * n_d + d]).real();
  return found;
}

/// A part of the sum: inner bands at one q and outer k, for changes [first, end).
struct ResponseTask {
  PartAtK part;
  std::size_t first = 0, end = 0;
};

/// One task on one device.
class ResponsePart {
 public:
  ResponsePart(const MeanField& field, const ChangingPoles& poles, const SigmaOptions& options,
               const ResponseTask& task, const DeviceContext& context, PolesOnDevice& here)
      : field_(field),
        poles_(poles),
        options_(options),
        task_(task),
        coulomb_(context.coulomb),
        kernels_(context.kernels),
        here_(here) {}

  /// Returns totals, then slopes where wanted, [spin][change][n_l] each.
  std::vector<double> calculate() {
    load_changes();
    const int ik = options_.kpoints[task_.part.k];
    const auto stars =
        q_points_by_star(field_, field_.waves.k[static_cast<std::size_t>(ik)], options_.reduce_q);
    const auto star = stars.find(static_cast<int>(task_.part.q_begin));
    const std::size_t size = n_changes() * static_cast<std::size_t>(n_left());
    for (int spin = 0; spin < field_.n_spins(); ++spin) {
      std::vector<double> total(size, 0.0), slope(options_.slope ? size : 0, 0.0);
      sums_ = {view<double>(total, n_changes(), n_left()),
               options_.slope ? view<double>(slope, n_changes(), n_left()) : View<double, 2>{}};
      if (star != stars.end())
        add_star({ik, spin, options_.band_min - 1, options_.band_max}, star->second);
      result_.insert(result_.end(), total.begin(), total.end());
      result_.insert(result_.end(), slope.begin(), slope.end());
    }
    return std::move(result_);
  }

 private:
  std::size_t n_changes() const { return task_.end - task_.first; }
  std::int64_t n_left() const { return options_.band_max - options_.band_min + 1; }
  double closed_x() const { return options_.closed_sum_x_ry.value_or(0.0); }
  double weight_of(const StarMember& member) const {
    return member.multiplicity / field_.zone_volume_bohr3();
  }

  void load_changes() {
    const std::size_t iq = task_.part.q_begin;
    if (here_.changes != nullptr && here_.iq == iq && here_.first == task_.first) return;
    here_.changes = {};
    here_.take(poles_, iq, options_.rules, kernels_);
    here_.first = task_.first;
    std::vector<const PoleChange*> changes;
    for (std::size_t c = task_.first; c < task_.end; ++c) changes.push_back(&poles_.changes[c]);
    here_.changes = kernels_.pole_sums().load_changes(here_.model, changes);
  }

  void add_star(const BandsAtK& bands, const std::vector<StarMember>& star) {
    const GSphere& sphere = poles_.at.sphere;
    OuterProducts outer(field_, bands, sum_box(field_, sphere.g), kernels_);
    const std::int64_t step = bands_at_a_time(sphere.size(), outer, options_);
    for (const StarMember& member : star) {
      const auto rotated = outer.load_sphere(member.q, sphere, OuterProducts::Phases::kApplied);
      for (std::int64_t begin = task_.part.band_begin; begin < task_.part.band_end; begin += step) {
        const BandBlock block =
            outer.load_inner(member.q, begin, std::min(task_.part.band_end, begin + step));
        std::vector<double> x;
        for (const double outer_ry : block.outer_ry)
          for (const double inner_ry : block.inner_ry) x.push_back(outer_ry - inner_ry);
        here_.changes->add_response(outer.fill(*rotated),
                                    {.x_ry = view<const double>(x, block.n_l, block.n_b),
                                     .occupation = view<const double>(block.occupation, block.n_b),
                                     .weight = weight_of(member),
                                     .closed_x_ry = closed_x()},
                                    sums_);
      }
    }
    if (options_.closed_sum_x_ry && task_.part.band_begin == 0) add_closed_sum(bands, star);
  }
  /// Adds the change of the known closed sum less that of the complement's vectors.
  void add_closed_sum(const BandsAtK& bands, const std::vector<StarMember>& star) {
    const GSphere& sphere = poles_.at.sphere;
    OuterProducts outer(field_, bands, complement_box(field_, sphere.g), kernels_);
    for (const StarMember& member : star) {
      const auto rotated = outer.load_sphere(member.q, sphere, OuterProducts::Phases::kApplied);
      const BandBlock block = outer.load_complement(member.q, 0, field_.complement->n_bands);
      const std::vector<double> none(static_cast<std::size_t>(block.n_l * block.n_b), 0.0);
      here_.changes->add_response(outer.fill(*rotated),
                                  {.x_ry = view<const double>(none, block.n_l, block.n_b),
                                   .occupation = view<const double>(none, block.n_b),
                                   .weight = weight_of(member),
                                   .closed_x_ry = closed_x(),
                                   .only_closed = true},
                                  {sums_.total, {}});
    }
    const ChargeTable charge = charge_table(field_, bands, options_.screened_cutoff_ry, kernels_);
    const DifferenceBox box(sphere.g);
    for (std::size_t c = 0; c < n_changes(); ++c) {
      const std::vector<Cplx> sums =
          here_.changes->sums_by_difference(static_cast<std::int64_t>(c), closed_x(), box);
      for (const StarMember& member : star) {
        const int operation = field_.transfers().rotation_to(member.q).operation;
        const std::vector<double> known = closed_sums(
            charge, field_.transfers().operations()[static_cast<std::size_t>(operation)], box,
            sums);
        for (std::size_t l = 0; l < known.size(); ++l)
          sums_.total(c, l) += weight_of(member) * known[l];
      }
    }
  }

  const MeanField& field_;
  const ChangingPoles& poles_;
  const SigmaOptions& options_;
  const ResponseTask& task_;
  const CoulombInteraction& coulomb_;
  GwKernels& kernels_;
  PolesOnDevice& here_;
  ResponseSums sums_{};
  std::vector<double> result_;
};

/// Returns the number of changes that fit a device beside the model of the largest q.
std::size_t changes_at_a_time(const std::vector<ChangingPoles>& poles, std::size_t n_changes,
                              const SigmaOptions& options) {
  std::int64_t n = 0, elements = 1;
  for (const ChangingPoles& at : poles) {
    n = std::max(n, at.model.n);
    if (!at.changes.empty())
      elements = std::max<std::int64_t>(elements, std::ssize(at.changes.front().strength));
  }
  // The poles, the products of a quarter of the budget and their bands; each change and its sums.
  const std::int64_t room = std::max(options.memory_limit_bytes, options.memory_budget_bytes),
                     fixed = 24 * n * n + options.memory_budget_bytes / 3,
                     each = 12 * elements + 2 * n * n;
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>((room - fixed) / each, 1, static_cast<std::int64_t>(n_changes)));
}

}  // namespace

PoleChange change_of(const PlasmonPoleModel& own, const PlasmonPoleModel& changed) {
  const std::int64_t n = own.n;
  const bool folded = is_hermitian(own.view());
  const auto size = static_cast<std::size_t>(elements_of_change(n, folded));
  PoleChange change{.strength = UnsetVector<std::complex<float>>(size),
                    .tau_per_ry = UnsetVector<float>(size)};
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < (folded ? g + 1 : n); ++h) {
      const auto to = static_cast<std::size_t>(folded ? g * (g + 1) / 2 + h : g * n + h),
                 at = static_cast<std::size_t>(g * n + h);
      change.strength[to] = std::complex<float>(changed.strength[at] / changed.pole_ry[at] -
                                                own.strength[at] / own.pole_ry[at]);
      change.tau_per_ry[to] = static_cast<float>(
          bounded_change_of_tau(tau_of(own.pole_ry[at]), tau_of(changed.pole_ry[at])));
    }
  return change;
}

SigmaChanges no_change(const MeanField& field, const SigmaOptions& options) {
  const auto n_l = static_cast<std::size_t>(options.band_max - options.band_min + 1);
  return SigmaChanges(
      options.kpoints.size() * static_cast<std::size_t>(field.n_spins()),
      {std::vector<double>(n_l, 0.0), std::vector<double>(options.slope ? n_l : 0, 0.0)});
}

void PolesOnDevice::take(const ChangingPoles& poles, std::size_t of_q, const PoleRules& rules,
                         GwKernels& kernels) {
  if (model != nullptr && iq == of_q) return;
  changes = {};
  model = {};  // its memory is free before the next model takes as much
  model = kernels.pole_sums().load(poles.model.view(), rules);
  iq = of_q;
}

std::int64_t bands_at_a_time(std::int64_t n_g, const OuterProducts& outer,
                             const SigmaOptions& options) {
  return std::max<std::int64_t>(64, (options.memory_budget_bytes / 4) /
                                        (32 * outer.outer().size() * n_g + outer.band_bytes()));
}

void SigmaChange::add(double factor, const SigmaChange& other) {
  for (std::size_t l = 0; l < total_ry.size(); ++l) total_ry[l] += factor * other.total_ry[l];
  for (std::size_t l = 0; l < slope.size(); ++l) slope[l] += factor * other.slope[l];
}

std::vector<SigmaChanges> sigma_responses(const MeanField& field,
                                          const std::vector<ChangingPoles>& poles,
                                          std::size_t n_changes, const SigmaOptions& options,
                                          const ResponseContext& context) {
  // Fewer parts than those of Σ, because every part multiplies its sums with every change.
  constexpr std::int64_t kParts = 8;
  for (auto& [member, here] : context.loaded) here.changes = {};  // of an earlier call
  const std::size_t batch = changes_at_a_time(poles, n_changes, options);
  std::vector<ResponseTask> tasks;
  for (const PartAtK& part : parts_of_sigma(poles.size(), options, kParts))
    for (std::size_t first = 0; first < n_changes; first += batch)
      tasks.push_back({part, first, std::min(n_changes, first + batch)});
  std::stable_sort(tasks.begin(), tasks.end(), [](const ResponseTask& a, const ResponseTask& b) {
    return std::pair(a.part.q_begin, a.first) < std::pair(b.part.q_begin, b.first);
  });
  PartedSum sum{.name = "response-of-" + std::to_string(batch),
                .phase = "self-energy",
                .parts = static_cast<std::int64_t>(tasks.size()),
                .make = {},
                .running = {}};
  sum.make = [&](std::int64_t index, GwKernels& kernels, Progress& inside) {
    const ResponseTask& task = tasks[static_cast<std::size_t>(index)];
    return ResponsePart(field, poles[task.part.q_begin], options, task,
                        {context.step.coulomb, kernels, inside}, context.loaded.at(&kernels))
        .calculate();
  };
  const auto n_spins = static_cast<std::size_t>(field.n_spins());
  std::vector<SigmaChanges> found(n_changes, no_change(field, options));
  const std::vector<Piece> results =
      run_parts(sum, context.step.team, context.step.checkpoint, context.step.progress);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double* at = results[i].data;
    for (std::size_t spin = 0; spin < n_spins; ++spin)
      for (const auto list : {&SigmaChange::total_ry, &SigmaChange::slope})
        for (std::size_t c = tasks[i].first; c < tasks[i].end; ++c)
          for (double& value : found[c][tasks[i].part.k * n_spins + spin].*list) value += *at++;
  }
  return found;
}

}  // namespace quasi::gw
