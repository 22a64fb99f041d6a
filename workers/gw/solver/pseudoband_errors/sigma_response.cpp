#include "workers/gw/solver/pseudoband_errors/sigma_response.hpp"

#include <algorithm>
#include <cmath>
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
#include "workers/gw/solver/self_energy/zone_sum/diagonal_terms.hpp"

namespace quasi::gw {
namespace {

/// A part of the sum: inner bands at one q and outer k, for some rows of the model.
struct ResponseTask {
  PartAtK part;
  ElementRows rows;
  bool is_sliced = false;  ///< true if the device has only these rows of the model
  /// Returns true if this part adds the closed sum over all states (docs/theory/gw.md 9.4). There
  /// is one such part, or one for each slice.
  bool sums_known() const { return part.band_begin == 0 && (rows.begin == 0 || is_sliced); }
};

/// Holds the inputs of one sum, which its tasks share.
struct ResponseJob {
  const MeanField& field;
  const std::vector<ChangingPoles>& poles;
  std::size_t n_changes;
  const SigmaOptions& options;
  const BandSegments& segments;
  StepTimes* times;

  std::int64_t n_left() const { return options.band_max - options.band_min + 1; }
  std::int64_t n_segments() const { return std::ssize(segments.end); }
};

/// Sums of one task and spin.
struct ResponseArrays {
  std::vector<double> total, slope;  ///< [change][n_l]; the slope is empty if not wanted
  SigmaOfModel own;

  /// Calls visit(list) for every array, in one order.
  template <typename Visit>
  void for_each(const Visit& visit) {
    for (auto* list : {&total, &slope, &own.sums, &own.of_complement, &own.known}) visit(*list);
  }
};

ResponseArrays no_sums(const ResponseJob& job) {
  const auto n_l = static_cast<std::size_t>(job.n_left());
  return {std::vector<double>(job.n_changes * n_l),
          std::vector<double>(job.options.slope ? job.n_changes * n_l : 0),
          {std::vector<double>(static_cast<std::size_t>(job.n_segments() * kOwnSums) * n_l),
           std::vector<double>(static_cast<std::size_t>(job.segments.of_complement) * n_l),
           std::vector<double>(n_l)}};
}

/// One task on one device.
class ResponsePart {
 public:
  ResponsePart(const ResponseJob& job, const ResponseTask& task, const DeviceContext& context,
               PolesOnDevice& here)
      : job_(job),
        poles_(job.poles[task.part.q_begin]),
        field_(job.field),
        options_(job.options),
        task_(task),
        kernels_(context.kernels),
        here_(here),
        clock_(job.times) {}

  /// Returns the arrays of each spin, one after another.
  std::vector<double> calculate() {
    load_changes();
    clock_.step("response_poles");
    const int ik = options_.kpoints[task_.part.k];
    const auto stars =
        q_points_by_star(field_, field_.waves.k[static_cast<std::size_t>(ik)], options_.reduce_q);
    const auto star = stars.find(static_cast<int>(task_.part.q_begin));
    std::vector<double> result;
    for (int spin = 0; spin < field_.n_spins(); ++spin) {
      sums_ = no_sums(job_);
      set_groups(ik, spin);
      if (star != stars.end())
        add_star({ik, spin, options_.band_min - 1, options_.band_max}, star->second);
      sums_.for_each([&](const std::vector<double>& list) {
        result.insert(result.end(), list.begin(), list.end());
      });
    }
    return result;
  }

 private:
  std::size_t n_changes() const { return job_.n_changes; }
  std::int64_t n_left() const { return job_.n_left(); }
  double closed_x() const { return options_.closed_sum_x_ry.value_or(0.0); }
  double weight_of(const StarMember& member) const {
    return member.multiplicity / field_.zone_volume_bohr3();
  }

  /// Sets the multiplets of outer states, over which energies are averaged.
  void set_groups(int ik, int spin) {
    groups_.clear();
    const int first = options_.band_min - 1;
    for (const auto& [begin, end] : multiplets(field_.waves, spin, ik, first, options_.band_max))
      groups_.push_back(end - first);
  }

  void load_changes() {
    const std::size_t iq = task_.part.q_begin;
    if (here_.changes != nullptr && here_.iq == iq && here_.first_row == task_.rows.begin) return;
    here_.changes = {};
    if (task_.is_sliced)
      here_.take_rows(poles_, iq, task_.rows, options_.rules, kernels_);
    else
      here_.take(poles_, iq, options_.rules, kernels_);
    here_.first_row = task_.rows.begin;
    std::vector<const PoleChange*> changes;
    for (const PoleChange& change : poles_.changes) changes.push_back(&change);
    here_.changes =
        kernels_.pole_sums().load_changes(here_.model, {})->of_rows(changes, task_.rows);
  }

  ResponseSums responses(bool with_slope) {
    return {view<double>(sums_.total, n_changes(), n_left()),
            with_slope ? view<double>(sums_.slope, n_changes(), n_left()) : View<double, 2>{}};
  }
  void add_star(const BandsAtK& bands, const std::vector<StarMember>& star) {
    const GSphere& sphere = poles_.at.sphere;
    OuterProducts outer(field_, bands, sum_box(field_, sphere.g), kernels_);
    const std::int64_t step = bands_at_a_time(sphere.size(), outer, options_);
    for (const StarMember& member : star) {
      const auto rotated = outer.load_sphere(member.q, sphere, OuterProducts::Phases::kApplied);
      for (std::int64_t begin = task_.part.band_begin; begin < task_.part.band_end; begin += step) {
        BandBlock block =
            outer.load_inner(member.q, begin, std::min(task_.part.band_end, begin + step));
        block.weight = weight_of(member);
        clock_.step("response_states");
        const PairBlock& products = outer.fill(*rotated);
        clock_.step("response_products");
        add_bands(block, begin, products);
        clock_.step("response_sums");
      }
    }
    if (options_.closed_sum_x_ry && task_.part.band_begin == 0) add_closed_sum(bands, star);
    clock_.step("response_closed_sum");
  }
  /// Adds the bands of one block, which begins with band `begin`.
  void add_bands(const BandBlock& block, std::int64_t begin, const PairBlock& products) {
    std::vector<double> x, other;
    for (const double outer_ry : block.outer_ry)
      for (std::size_t n = 0; n < block.inner_ry.size(); ++n) {
        x.push_back(outer_ry - block.inner_ry[n]);
        if (!job_.segments.other_ry.empty())
          other.push_back(outer_ry - job_.segments.other_ry[static_cast<std::size_t>(begin) + n]);
      }
    const auto [first, ends] = segments_within(begin, begin + block.n_b);
    std::vector<double> own(ends.size() * static_cast<std::size_t>(kOwnSums * n_left()));
    ResponseSums sums = responses(options_.slope);
    sums.own = view<double>(own, ends.size(), kOwnSums, n_left());
    here_.changes->add_response(
        products,
        {.x_ry = view<const double>(x, block.n_l, block.n_b),
         .occupation = view<const double>(block.occupation, block.n_b),
         .weight = block.weight,
         .closed_x_ry = closed_x(),
         .other_x_ry = other.empty() ? View<const double, 2>{}
                                     : view<const double>(other, block.n_l, block.n_b),
         .segment_end = ends,
         .group_end = groups_,
         .screened_exchange = job_.segments.screened_exchange},
        sums);
    const std::size_t at = first * static_cast<std::size_t>(kOwnSums * n_left());
    for (std::size_t i = 0; i < own.size(); ++i) sums_.own.sums[at + i] += own[i];
  }
  /// Returns the first segment of bands [begin, end), and the ends of all counted from `begin`.
  std::pair<std::size_t, std::vector<std::int64_t>> segments_within(std::int64_t begin,
                                                                    std::int64_t end) const {
    const std::vector<std::int64_t>& all = job_.segments.end;
    std::size_t segment = 0;
    while (all[segment] <= begin) ++segment;
    const std::size_t first = segment;
    std::vector<std::int64_t> ends;
    for (; ends.empty() || ends.back() < end - begin; ++segment)
      ends.push_back(std::min(all[segment], end) - begin);
    return {first, ends};
  }
  /// Adds the change of the known closed sum less that of the complement's vectors, and both closed
  /// sums of the model.
  void add_closed_sum(const BandsAtK& bands, const std::vector<StarMember>& star) {
    const GSphere& sphere = poles_.at.sphere;
    OuterProducts outer(field_, bands, complement_box(field_, sphere.g), kernels_);
    for (const StarMember& member : star) {
      const auto rotated = outer.load_sphere(member.q, sphere, OuterProducts::Phases::kApplied);
      BandBlock block = outer.load_complement(member.q, 0, field_.complement->n_bands);
      block.weight = weight_of(member);
      add_complement(block, outer.fill(*rotated));
    }
    const ChargeTable charge = charge_table(field_, bands, options_.screened_cutoff_ry, kernels_);
    const DifferenceBox box(sphere.g);
    const auto add_known = [&](const std::vector<Cplx>& sums, double* to) {
      for (const StarMember& member : star) {
        const int operation = field_.transfers().rotation_to(member.q).operation;
        const std::vector<Cplx> known = known_closed_sums(
            charge, field_.transfers().operations()[static_cast<std::size_t>(operation)], box,
            sums);
        for (std::size_t l = 0; l < known.size(); ++l) to[l] += weight_of(member) * known[l].real();
      }
    };
    if (task_.sums_known())
      add_known(here_.model->sums_by_difference(closed_x(), box), sums_.own.known.data());
    for (std::size_t c = 0; c < n_changes(); ++c)
      add_known(here_.changes->sums_by_difference(static_cast<std::int64_t>(c), closed_x(), box),
                sums_.total.data() + c * static_cast<std::size_t>(n_left()));
  }
  void add_complement(const BandBlock& block, const PairBlock& products) {
    const std::vector<double> none(static_cast<std::size_t>(block.n_l * block.n_b), 0.0);
    const std::int64_t parts = std::max<std::int64_t>(1, job_.segments.of_complement);
    std::vector<std::int64_t> ends;
    for (std::int64_t part = 1; part <= parts; ++part) ends.push_back(part * block.n_b / parts);
    std::vector<double> own(ends.size() * static_cast<std::size_t>(kOwnSums * n_left()));
    ResponseSums sums = responses(false);
    sums.own = view<double>(own, ends.size(), kOwnSums, n_left());
    here_.changes->add_response(products,
                                {.x_ry = view<const double>(none, block.n_l, block.n_b),
                                 .occupation = view<const double>(none, block.n_b),
                                 .weight = block.weight,
                                 .closed_x_ry = closed_x(),
                                 .only_closed = true,
                                 .segment_end = ends,
                                 .group_end = groups_},
                                sums);
    const auto n_l = static_cast<std::size_t>(n_left());
    for (std::size_t i = 0; i < sums_.own.of_complement.size(); ++i)
      sums_.own.of_complement[i] +=
          own[(i / n_l * kOwnSums + static_cast<std::size_t>(OwnSum::kClosed)) * n_l + i % n_l];
  }

  const ResponseJob& job_;
  const ChangingPoles& poles_;
  const MeanField& field_;
  const SigmaOptions& options_;
  const ResponseTask& task_;
  GwKernels& kernels_;
  PolesOnDevice& here_;
  StepClock clock_;
  ResponseArrays sums_;
  std::vector<std::int64_t> groups_;  ///< ends of the multiplets of outer states
};

}  // namespace

std::int64_t bytes_of_model(std::int64_t n_g, bool real) { return (real ? 8 : 24) * n_g * n_g; }

std::int64_t count_of_ranges(const RangeShape& shape, const SigmaOptions& options) {
  constexpr std::int64_t kLeast = 8;  // several devices share them
  const std::int64_t n = shape.n_g;
  // The poles, the products of a quarter of the budget and their bands; each change and its sums.
  const std::int64_t room = std::max(options.memory_limit_bytes, options.memory_budget_bytes) -
                            bytes_of_model(n, shape.folded && shape.real) -
                            options.memory_budget_bytes / 3,
                     of_element = shape.folded && shape.real ? 8 : 12,
                     changes = shape.n_changes *
                               (of_element * elements_of_change(n, shape.folded) + 2 * n * n),
                     most = std::max<std::int64_t>(1, n / kRowsOfRange);
  if (changes <= room) return 1;
  return std::clamp((changes - 1) / std::max<std::int64_t>(room, 1) + 1, std::min(kLeast, most),
                    most);
}

std::vector<ElementRows> row_ranges(const ChangingPoles& poles, const SigmaOptions& options) {
  const std::int64_t n = poles.model.n;
  if (options.column_slices > 0) return slices_of_lower_triangle(n, options.column_slices);
  const bool folded = is_hermitian(poles.model.view());
  const std::int64_t count =
      count_of_ranges({n, std::ssize(poles.changes), folded, poles.model.real}, options);
  std::vector<ElementRows> ranges;
  for (std::int64_t i = 1; i <= count; ++i) {
    // A folded model has the triangle G' ≤ G alone, in which row G has G + 1 elements. Later
    // ranges get fewer rows, so that all ranges have about the same number of elements.
    const double share = static_cast<double>(i) / static_cast<double>(count),
                 rows = static_cast<double>(n) * (folded ? std::sqrt(share) : share);
    const std::int64_t begin = ranges.empty() ? 0 : ranges.back().end,
                       end = i == count ? n : std::llround(rows / kRowsOfRange) * kRowsOfRange;
    if (end > begin) ranges.push_back({begin, end});
  }
  return ranges;
}

SigmaChanges no_change(const MeanField& field, const SigmaOptions& options) {
  const auto n_l = static_cast<std::size_t>(options.band_max - options.band_min + 1);
  return SigmaChanges(
      options.kpoints.size() * static_cast<std::size_t>(field.n_spins()),
      {std::vector<double>(n_l, 0.0), std::vector<double>(options.slope ? n_l : 0, 0.0)});
}

std::int64_t bands_at_a_time(std::int64_t n_g, const OuterProducts& outer,
                             const SigmaOptions& options) {
  return std::max<std::int64_t>(64, (options.memory_budget_bytes / 4) /
                                        (40 * outer.outer().size() * n_g + outer.band_bytes()));
}

void SigmaChange::add(double factor, const SigmaChange& other) {
  for (std::size_t l = 0; l < total_ry.size(); ++l) total_ry[l] += factor * other.total_ry[l];
  for (std::size_t l = 0; l < slope.size(); ++l) slope[l] += factor * other.slope[l];
}

SigmaResponses sigma_responses(const MeanField& field, const std::vector<ChangingPoles>& poles,
                               std::size_t n_changes, const SigmaOptions& options,
                               const BandSegments& segments, const ResponseContext& context) {
  for (auto& [member, here] : context.loaded) here.changes = {};  // of an earlier call
  std::vector<ResponseTask> tasks;
  for (std::size_t iq = 0; iq < poles.size(); ++iq) {
    const std::vector<ElementRows> ranges = row_ranges(poles[iq], options);
    // Fewer parts than those of Σ, because every part multiplies its sums with every change. If
    // the changes are cut, devices share their rows, and each range is loaded once.
    const bool sliced = options.column_slices > 0;
    const std::int64_t n_parts = ranges.size() > 1 || sliced ? 1 : 8;
    for (const ElementRows& rows : ranges)
      for (const PartAtK& part : parts_of_sigma(poles.size(), options, n_parts))
        if (part.q_begin == iq) tasks.push_back({part, rows, sliced});
  }
  PartedSum sum{.name = "response-of-" + std::to_string(tasks.size()),
                .phase = "self-energy",
                .parts = static_cast<std::int64_t>(tasks.size()),
                .make = {},
                .running = {}};
  const ResponseJob job{field, poles, n_changes, options, segments, context.times};
  sum.make = [&](std::int64_t index, GwKernels& kernels, Progress& inside) {
    return ResponsePart(job, tasks[static_cast<std::size_t>(index)],
                        {context.step.coulomb, kernels, inside}, context.loaded.at(&kernels))
        .calculate();
  };
  const std::vector<Piece> results =
      run_parts(sum, context.step.team, context.step.checkpoint, context.step.progress);
  const auto n_spins = static_cast<std::size_t>(field.n_spins());
  SigmaResponses found{std::vector<SigmaChanges>(n_changes, no_change(field, options)),
                       std::vector<SigmaOfModel>(options.kpoints.size() * n_spins)};
  for (SigmaOfModel& own : found.own) own = no_sums(job).own;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double* at = results[i].data;
    for (std::size_t spin = 0; spin < n_spins; ++spin) {
      const std::size_t of_k = tasks[i].part.k * n_spins + spin;
      for (const auto list : {&SigmaChange::total_ry, &SigmaChange::slope})
        for (SigmaChanges& change : found.changes)
          for (double& value : change[of_k].*list) value += *at++;
      SigmaOfModel& own = found.own[of_k];
      for (auto* list : {&own.sums, &own.of_complement, &own.known})
        for (double& value : *list) value += *at++;
    }
  }
  return found;
}

}  // namespace quasi::gw
