#include "workers/gw/solver/calculation/memory/error_bar_memory.hpp"

#include <algorithm>
#include <cmath>

#include "workers/gw/kernels/polarizability/partial_chi.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"
#include "workers/gw/model/column_slices.hpp"
#include "workers/gw/solver/calculation/cost/cost_samples.hpp"
#include "workers/gw/solver/calculation/memory/band_memory.hpp"
#include "workers/gw/solver/calculation/memory/sigma_memory.hpp"
#include "workers/gw/solver/pseudoband_errors/block_energies.hpp"
#include "workers/gw/solver/pseudoband_errors/first_order_blocks.hpp"

namespace quasi::gw {
namespace {

/// Returns the bytes of χ by groups of bands (grouped_screening.hpp).
double bytes_of_groups(const Deck& deck, const Calculation& run) {
  const EpsilonOptions& e = run.plan.epsilon;
  const auto n_g =
      static_cast<double>(make_g_sphere(run.field.crystal().bdot, {}, e.epsilon_cutoff_ry).size());
  // A triangle of χ(0) and whole χ(ω).
  const double matrices = static_cast<double>(e.frequencies_ry.size()) - 0.5;
  return n_g * n_g * (deck.pseudobands.blocks + 2) * run.field.waves.n_k() * matrices *
         (run.plan.real_states ? 8.0 : 16.0);
}

/// Returns true if devices calculate the changes of the poles (screened_elements_at_q.hpp). Slices
/// of ε⁻¹ meet in the memory of the host, which makes the changes then.
bool devices_make_changes(const Deck& deck, const Calculation& run) {
  return run.plan.sigma.column_slices == 0 && deck.coulomb.truncation == Truncation::kNone &&
         run.plan.sigma.method == SigmaMethod::kHybertsenLouie &&
         run.field.transfers().operations().size() == 1;
}
/// Returns true if a device keeps real matrices and poles while it makes changes.
bool has_real_changes(const Calculation& run) { return run.plan.real_states && !run.plan.on_cpu; }
/// Returns the number of changes that a device may keep while it makes them; 0: the host has them.
std::int64_t changes_on_device(const Deck& deck, const Calculation& run) {
  const auto n_g = std::llround(std::sqrt(elements_of_w(run)));
  const std::int64_t all = (deck.pseudobands.blocks + 1) * std::int64_t{run.field.waves.n_k()};
  return devices_make_changes(deck, run) &&
                 devices_keep_changes(n_g, all, has_real_changes(run), run.plan.sigma)
             ? all
             : 0;
}

/// Returns the number of inner bands of the response that a device has at a time
/// (bands_at_a_time()).
/// @param ranges  of the rows of the changes
double bands_of_response(const Calculation& run, const BandArrays& arrays, double n_g,
                         double ranges) {
  constexpr double kParts = 8.0, kSmallestBlock = 64.0;
  const SigmaOptions& s = run.plan.sigma;
  const double n_l = s.band_max - s.band_min + 1,
               points = 1.0 * run.field.waves.n_k() * static_cast<double>(s.kpoints.size()),
               wanted = ranges > 1.0 || s.column_slices > 0
                            ? 1.0
                            : std::max(1.0, std::floor(kParts / points)),
               parts = std::clamp(std::floor(s.bands / kSmallestBlock), 1.0, wanted),
               of_band = 40.0 * n_l * n_g + 16.0 * arrays.points * arrays.n_spinor,
               room = 0.25 * static_cast<double>(s.memory_budget_bytes);
  return std::min(std::ceil(s.bands / parts), std::max(64.0, std::floor(room / of_band)));
}
/// Returns the bytes of the bands and products of one block of the response. A GPU packs real
/// products beside the complex ones.
double bytes_of_block(const Calculation& run, double ranges) {
  const SigmaOptions& s = run.plan.sigma;
  const GSphere sphere = make_g_sphere(run.field.crystal().bdot, {}, s.screened_cutoff_ry);
  const auto n_g = static_cast<double>(sphere.size());
  const BandArrays arrays = band_arrays(run.field, sphere.g, run.plan.on_cpu);
  return bytes_of_products(arrays,
                           {.left = 1.0 * (s.band_max - s.band_min + 1),
                            .right = bands_of_response(run, arrays, n_g, ranges),
                            .n_g = n_g},
                           has_real_changes(run) ? 1.5 : 1.0);
}

/// Returns the bytes of a device for the first order of Σ in slices: the poles of one slice, and
/// its rows of all changes.
double slice_bytes_of_changes(const Deck& deck, const Calculation& run) {
  const auto n_g = std::llround(std::sqrt(elements_of_w(run)));
  const int slices = run.plan.sigma.column_slices;
  std::int64_t elements = 0;
  for (const ElementRows& rows : slices_of_lower_triangle(n_g, slices))
    elements = std::max(elements, triangle_size(rows.end) - triangle_size(rows.begin));
  return 24.0 * static_cast<double>(largest_pole_slice(n_g, slices)) +
         12.0 * (deck.pseudobands.blocks + 1) * static_cast<double>(elements);
}

/// Returns the bytes of a device for the first order of Σ. They are those of making changes, or of
/// summing bands with all changes or with one range of their rows.
double device_bytes_of_changes(const Deck& deck, const Calculation& run, int devices) {
  const auto n_g = std::llround(std::sqrt(elements_of_w(run)));
  if (run.plan.sigma.column_slices > 0)
    return slice_bytes_of_changes(deck, run) + bytes_of_block(run, 1.0);
  const std::int64_t n_changes = deck.pseudobands.blocks + 1, kept = changes_on_device(deck, run),
                     // A device may take a change that another one has left.
      kept_here = devices > 1 ? std::min(kept, kept / devices + 1) : kept;
  const bool folded = deck.coulomb.truncation == Truncation::kNone, real = has_real_changes(run);
  const auto ranges = static_cast<double>(
      count_of_ranges({n_g, n_changes, folded, real && folded}, run.plan.sigma));
  const double summed =
      bytes_of_response({.n_g = static_cast<double>(n_g),
                         .n_changes = static_cast<double>(n_changes),
                         .kept = static_cast<double>(kept_here),
                         .kept_of_q = kept > 0 ? static_cast<double>(n_changes / devices) : 0.0,
                         .ranges = ranges,
                         .real = real && folded,
                         .folded = folded}) +
      bytes_of_block(run, ranges);
  if (!devices_make_changes(deck, run)) return summed;
  return std::max(summed, static_cast<double>(
                              bytes_of_change(n_g, std::max<std::int64_t>(1, kept_here), real)));
}

/// Returns the bytes of a CPU in the first order of Σ: a kernel's poles with χ and ε̃⁻¹ of a
/// change, with exchange, or with a block of bands. The self-test has a triangle beside them.
double bytes_of_cpu(const Deck& deck, const Calculation& run) {
  const Plan& plan = run.plan;
  if (!plan.on_cpu) return 0.0;
  const double matrix = elements_of_w(run),
               summing = std::max(bytes_of_block(run, 1.0),
                                  bytes_of_sigma(run.field, plan, run.field.waves.n_k()).exchange),
               triangle = !deck.self_test ? 0.0 : (plan.real_states ? 4.0 : 8.0) * matrix;
  if (plan.sigma.column_slices == 0)
    return 56.0 * matrix + std::max(32.0 * matrix, summing) + triangle;
  return 56.0 * static_cast<double>(
                    largest_pole_slice(std::llround(std::sqrt(matrix)), plan.sigma.column_slices)) +
         summing + triangle;
}

/// Returns the bytes of the host for poles of all q and their changes by blocks. While devices make
/// changes it also holds a weighted χ of each (screened_elements_at_q.hpp). Other changes pass
/// through whole matrices before the first sum over bands.
double bytes_of_changes(const Deck& deck, const Calculation& run, int devices) {
  const double matrix = elements_of_w(run);
  const bool hermitian = deck.coulomb.truncation == Truncation::kNone,
             by_device = devices_make_changes(deck, run);
  // W of plasmon poles is Hermitian without a truncation; changes are triangles then.
  const bool in_host = run.plan.on_cpu || changes_on_device(deck, run) == 0;
  const double of_change = !hermitian                           ? 12.0
                           : has_real_changes(run) && by_device ? 4.0
                                                                : 6.0,
               changes = in_host ? of_change * matrix * (deck.pseudobands.blocks + 1) : 0.0,
               making = by_device ? (run.plan.real_states ? 4.0 : 16.0) * devices
                        : run.plan.sigma.column_slices > 0
                            ? 72.0
                            : 72.0 * std::min(devices, kChangesAtATime);
  const double of_cpu = bytes_of_cpu(deck, run);
  return run.field.waves.n_k() * (24.0 * matrix + changes) +
         (by_device ? making * matrix + of_cpu : std::max(making * matrix, of_cpu));
}

/// Sets the memory of a device that sums χ of the groups of bands one after another: those of the
/// protected bands, of one block of random vectors, and of the bands at nodes.
void plan_sums_of_groups(const Deck& deck, Calculation& run) {
  const PseudobandPlan& p = *run.pseudobands;
  double of_block = 0.0;
  for (int block = 0; block < p.blocks; ++block) {
    const auto [begin, end] = p.bands_of_block(block);
    of_block = std::max(of_block, 1.0 * (end - begin));
  }
  const double at_nodes = takes_first_order(deck, run) ? of_block : p.bands() - p.kept,
               whole = std::max(1.0 * p.kept - run.field.n_occupied,
                                deck.pseudobands.windows == WindowForm::kSplines ? at_nodes : 0.0);
  run.plan.device.sums =
      static_cast<double>(std::max(bytes_of_static_sums(run.field, run.plan, whole),
                                   bytes_of_static_sums(run.field, run.plan, of_block, 1)));
}

}  // namespace

double elements_of_w(const Calculation& run) {
  const auto n_g = static_cast<double>(
      make_g_sphere(run.field.crystal().bdot, {}, run.plan.sigma.screened_cutoff_ry).size());
  return n_g * n_g;
}

double bytes_of_response(const ResponseShape& shape) {
  const double of_element = shape.real ? 8.0 : 12.0,
               of_change = shape.folded ? 0.5 * of_element : of_element,
               others = std::max(0.0, shape.n_changes - shape.kept_of_q) / shape.ranges;
  return static_cast<double>(bytes_of_model(std::llround(shape.n_g), shape.real)) +
         of_change * (shape.kept + others) * shape.n_g * shape.n_g;
}

std::int64_t least_of_closed_sum(const Deck& deck, const Calculation& run) {
  const auto n_g = std::llround(std::sqrt(elements_of_w(run)));
  const bool sums_once = run.plan.error_bars.first_order && devices_make_changes(deck, run) &&
                         run.plan.sigma.offsets_ry.size() == 1;
  return sums_once && has_real_changes(run) ? bytes_of_change(n_g, 1, true) : 48 * n_g * n_g;
}

void plan_memory_of_blocks(const Deck& deck, double given, int devices, Calculation& run) {
  Plan& plan = run.plan;
  const auto of_epsilon = static_cast<double>(plan.screening_bytes);
  if (!solves_once(deck)) plan.host.states += given;
  if (!shares_blocks(deck, run)) {
    // The job is repeated while the results of the first one are there.
    plan.host.error_bars = of_epsilon + std::max(plan.host.epsilon, plan.host.sigma);
    return;
  }
  const double groups = bytes_of_groups(deck, run);
  const bool first_order = takes_first_order(deck, run);
  plan.host.error_bars = groups + of_epsilon +
                         (first_order ? bytes_of_changes(deck, run, devices)
                                      : std::max(plan.host.epsilon, plan.host.sigma) +
                                            bytes_of_states(run.field.waves));
  plan.host.epsilon += groups;
  plan.host.sigma += groups;
  if (plan.epsilon.frequencies_ry.size() > 1) return;
  plan_sums_of_groups(deck, run);
  if (!first_order) return;
  plan.device.error_bars = device_bytes_of_changes(deck, run, devices);
  // Σ then has exchange alone before that sum.
  if (sums_once(plan))
    plan.device.sigma = bytes_of_sigma(run.field, plan, run.field.waves.n_k()).exchange;
  if (plan.sigma.column_slices > 0)
    plan.least_memory_bytes = std::max(
        plan.least_memory_bytes, static_cast<std::int64_t>(slice_bytes_of_changes(deck, run)));
}

}  // namespace quasi::gw
