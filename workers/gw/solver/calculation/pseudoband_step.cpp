#include "workers/gw/solver/calculation/pseudoband_step.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/polarizability/partial_chi.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"
#include "workers/gw/model/column_slices.hpp"
#include "workers/gw/solver/mean_field/filtered_pseudobands.hpp"
#include "workers/gw/solver/mean_field/random_factors.hpp"
#include "workers/gw/solver/pseudoband_errors/first_order_blocks.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

void require_protected(int band_max, const PseudobandPlan& p) {
  if (band_max > p.kept)
    throw InvalidInput("sigma.band_max = " + std::to_string(band_max) + " exceeds the " +
                       std::to_string(p.kept) +
                       " protected bands, which pseudobands leave as they are; raise "
                       "pseudobands.protected_ry or lower sigma.band_max");
}

/// Returns the bytes of the vectors of the complement on their larger spheres.
double bytes_of_complement(const Calculation& run) {
  const Wavefunctions& waves = run.field.waves;
  const double radius = std::sqrt(waves.wavefunction_cutoff_ry) +
                        std::sqrt(run.plan.sigma.screened_cutoff_ry),
               per_k = run.field.crystal().volume_bohr3 * std::pow(radius, 3) / (6.0 * kPi * kPi);
  return 16.0 * per_k * waves.n_k() * run.field.n_spins() * run.field.n_spinor() *
         run.pseudobands->vectors * run.pseudobands->sigma_factor;
}

/// Returns the number of elements of a matrix between the plane waves of W.
double elements_of_w(const Calculation& run) {
  const auto n_g = static_cast<double>(
      make_g_sphere(run.field.crystal().bdot, {}, run.plan.sigma.screened_cutoff_ry).size());
  return n_g * n_g;
}

/// Returns the memory of the coefficients of all states, bytes.
double bytes_of(const Wavefunctions& waves) {
  double bytes = 0.0;
  for (const KPointWaves& at : waves.waves)
    for (const auto& spin : at.coefficients) bytes += spin.memory_bytes();
  return bytes;
}

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
/// Returns the bytes of the products of one block of bands with the outer states, and of the bands
/// on the box of transforms (bands_at_a_time()).
double bytes_of_products(const Calculation& run) {
  const SigmaOptions& s = run.plan.sigma;
  const GSphere sphere = make_g_sphere(run.field.crystal().bdot, {}, s.screened_cutoff_ry);
  const auto box = sum_box(run.field, sphere.g);
  const double on_box = 16.0 * box[0] * box[1] * box[2] * run.field.n_spinor(),
               products = 16.0 * (s.band_max - s.band_min + 1) * static_cast<double>(sphere.size()),
               room = 0.25 * static_cast<double>(s.memory_budget_bytes);
  return std::min<double>(s.bands, std::max(64.0, room / (2.0 * products + on_box))) *
         (products + on_box);
}
/// Returns the bytes of a device for the first order of Σ in slices: the poles of one slice, its
/// rows of all changes, and the products of a block of bands.
double slice_bytes_of_changes(const Deck& deck, const Calculation& run) {
  const auto n_g = std::llround(std::sqrt(elements_of_w(run)));
  const int slices = run.plan.sigma.column_slices;
  std::int64_t elements = 0;
  for (const ElementRows& rows : slices_of_lower_triangle(n_g, slices))
    elements = std::max(elements, triangle_size(rows.end) - triangle_size(rows.begin));
  return 24.0 * static_cast<double>(largest_pole_slice(n_g, slices)) +
         12.0 * (deck.pseudobands.blocks + 1) * static_cast<double>(elements) +
         bytes_of_products(run);
}
/// Returns the bytes of a device for the first order of Σ. They are those of making changes, or of
/// summing bands with all changes or with one range of their rows.
double device_bytes_of_changes(const Deck& deck, const Calculation& run, int devices) {
  const double matrix = elements_of_w(run);
  const auto n_g = std::llround(std::sqrt(matrix));
  const std::int64_t n_changes = deck.pseudobands.blocks + 1, kept = changes_on_device(deck, run),
                     // A device may take a change that another one has left.
      kept_here = devices > 1 ? std::min(kept, kept / devices + 1) : kept;
  if (run.plan.sigma.column_slices > 0) return slice_bytes_of_changes(deck, run);
  const bool folded = deck.coulomb.truncation == Truncation::kNone, real = has_real_changes(run);
  const std::int64_t ranges =
      count_of_ranges({n_g, n_changes, folded, real && folded}, run.plan.sigma);
  const double changes = ranges == 1
                             ? static_cast<double>(n_changes)
                             : static_cast<double>(n_changes) / static_cast<double>(ranges) +
                                   static_cast<double>(kept_here),
               summed = static_cast<double>(bytes_of_model(n_g, real && folded)) +
                        (real && folded ? 4.0 : 6.0) * changes * matrix + bytes_of_products(run);
  if (!devices_make_changes(deck, run)) return summed;
  return std::max(summed, static_cast<double>(
                              bytes_of_change(n_g, std::max<std::int64_t>(1, kept_here), real)));
}

/// Returns the bytes of a device that Σ with a closed sum cannot do without. These are the poles,
/// the matrix of the closed sum and its products. Where Σ shares the sum of its error bars, they
/// are the bytes of one change of the poles.
std::int64_t least_of_closed_sum(const Deck& deck, const Calculation& run) {
  const auto n_g = std::llround(std::sqrt(elements_of_w(run)));
  const bool sums_once = run.plan.error_bars.first_order && devices_make_changes(deck, run) &&
                         run.plan.sigma.offsets_ry.size() == 1;
  return sums_once && has_real_changes(run) ? bytes_of_change(n_g, 1, true) : 48 * n_g * n_g;
}

/// Returns the bytes of the host for poles of all q and their changes by blocks, and of what it
/// holds while devices make changes: a weighted χ each, or whole matrices of some devices
/// (screened_elements_at_q.hpp).
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
  return run.field.waves.n_k() * (24.0 * matrix + changes) + making * matrix;
}

/// Sets the memory of the error bars, whose last phase has the groups of χ beside the rest.
/// @param given  bytes of the given states, which remain unless solves_once()
void plan_memory_of_blocks(const Deck& deck, double given, int devices, Calculation& run) {
  Plan& plan = run.plan;
  const auto of_epsilon = static_cast<double>(plan.screening_bytes);
  if (!solves_once(deck)) plan.host.states += given;
  if (!shares_blocks(deck, run)) {
    // The job is repeated while the results of the first one are there.
    plan.host.error_bars = of_epsilon + std::max(plan.host.epsilon, plan.host.sigma);
    return;
  }
  const double groups = bytes_of_groups(deck, run), matrix = elements_of_w(run),
               // A kernel's poles, and χ and ε̃⁻¹ of a change.
      of_cpu = !plan.on_cpu ? 0.0
               : plan.sigma.column_slices > 0
                   ? 56.0 * static_cast<double>(largest_pole_slice(std::llround(std::sqrt(matrix)),
                                                                   plan.sigma.column_slices))
                   : (56.0 + 32.0) * matrix;
  plan.host.error_bars =
      groups + of_epsilon +
      (takes_first_order(deck, run)
           ? bytes_of_changes(deck, run, devices) + of_cpu
           : std::max(plan.host.epsilon, plan.host.sigma) + bytes_of(run.field.waves));
  plan.host.epsilon += groups;
  plan.host.sigma += groups;
  // A device sums protected bands, or all random ones, at a time.
  if (plan.epsilon.frequencies_ry.size() > 1) return;
  const PseudobandPlan& p = *run.pseudobands;
  const double n_c = std::max(p.kept - run.field.n_occupied, p.bands() - p.kept);
  const double changes =
      takes_first_order(deck, run) ? device_bytes_of_changes(deck, run, devices) : 0.0;
  if (plan.sigma.column_slices > 0) {
    plan.memory_bytes = std::max({plan.memory_bytes, bytes_of_static_sums(run.field, plan, n_c),
                                  static_cast<std::int64_t>(changes)});
    plan.least_memory_bytes = std::max(plan.least_memory_bytes,
                                       static_cast<std::int64_t>(changes - bytes_of_products(run)));
    return;
  }
  plan.memory_bytes =
      std::max({bytes_of_static_sums(run.field, plan, n_c), static_cast<std::int64_t>(changes),
                static_cast<std::int64_t>((has_real_changes(run) ? 16.0 : 48.0) * matrix)});
}

/// Sets the bands of Σ, whose vectors may be more than those of χ, and their memory.
void plan_bands_of_sigma(Calculation& run) {
  run.plan.sigma.bands = plan_of_sigma(*run.pseudobands).bands();
  run.plan.host.states += bytes_of(run.field.waves) *
                          (run.plan.sigma.bands - run.field.waves.n_bands) /
                          run.field.waves.n_bands;
}

/// Says how the energies without a block are calculated.
std::string way_of_blocks(const Deck& deck, const Calculation& run) {
  if (deck.pseudobands.block_sums == BlockSums::kExact) return ", each by a Σ of its own";
  if (!shares_blocks(deck, run)) return ", each by a job of its own";
  if (const char* obstacle = obstacle_to_first_order(deck, run))
    return std::string(", each by a Σ of its own because of ") + obstacle;
  return ", by the first order of Σ";
}

/// Makes the pseudobands of a plan from the states that are now in `run.field`.
Wavefunctions made_for(const Calculation& run, PseudobandUse use, GwKernels& kernels) {
  if (run.pseudobands->filter != nullptr)
    return filtered_pseudobands(run.field, *run.pseudobands, use, kernels.hamiltonian());
  return pseudobands(run.field.waves, *run.pseudobands, use);
}

/// Says what the pseudobands of polynomials stand for.
std::string stand_for(const WindowPolynomials& filter, WindowForm form) {
  const std::string form_text =
      form == WindowForm::kSplines
          ? "; the windows add up to 1 within " + shown(filter.identity_error())
          : "; slices damped by Jackson factors add up to 1 only within " +
                shown(filter.identity_error()) + " and lose " +
                shown(100.0 * filter.lost_weight()) + " % of the weight of all states";
  return "all other states of H by polynomials of degree " + std::to_string(filter.degree()) +
         form_text;
}

/// Notes in the plan what a target of the half-widths has chosen.
void note_choice(const PseudobandOptions& options, Calculation& run) {
  std::string chosen;
  const auto add = [&](bool wanted, const std::string& text) {
    if (wanted) chosen += (chosen.empty() ? " chooses " : ", ") + text;
  };
  add(options.chooses_ratio, "pseudobands.ratio = " + shown(options.ratio));
  add(options.chooses_vectors, "vectors = " + std::to_string(options.vectors));
  add(options.chooses_blocks, "blocks = " + std::to_string(options.blocks));
  if (!chosen.empty())
    run.plan.notes.push_back("pseudobands.target_error_ev = " + shown(options.target_error_ev) +
                             chosen +
                             "; more vectors and narrower windows follow if its "
                             "half-widths ask for them");
}

/// Says how many vectors Σ has, if they are more than those of χ.
std::string vectors_of_sigma(const PseudobandPlan& p) {
  if (p.sigma_factor == 1) return {};
  return " (" + std::to_string(p.sigma_factor * p.vectors) + " in Σ)";
}

/// Says which bands the pseudobands stand for. @param n_bands  bands of the mean field
std::string range_of(const PseudobandPlan& p, int n_bands) {
  if (p.given == n_bands) return std::to_string(p.given) + " bands";
  return std::to_string(p.given) + " of " + std::to_string(n_bands) +
         " bands, since the rest may cut a multiplet";
}

/// Notes in the plan how pseudobands replace states. @param n_bands  bands of the mean field
void note_pseudobands(const Deck& deck, int n_bands, Calculation& run) {
  const PseudobandPlan& p = *run.pseudobands;
  note_choice(deck.pseudobands, run);
  if (!deck.stop_after_epsilon) require_protected(run.plan.sigma.band_max, p);
  run.plan.notes.push_back(
      p.keeps_all()
          ? "pseudobands: there would be no fewer random vectors than states; the job keeps " +
                range_of(p, n_bands)
          : "pseudobands: " + std::to_string(p.kept) + " protected bands and " +
                std::to_string(p.used.size()) + " windows of " + std::to_string(p.vectors) +
                " random vectors" + vectors_of_sigma(p) + " stand for " +
                (p.filter != nullptr ? stand_for(*p.filter, deck.pseudobands.windows)
                                     : range_of(p, n_bands) + "; the windows add up to 1 within " +
                                           shown(p.identity_error)) +
                (deck.pseudobands.blocks > 0
                     ? "; " + std::to_string(deck.pseudobands.blocks) +
                           " blocks of vectors give the statistical error of the energies" +
                           way_of_blocks(deck, run)
                     : std::string("; the statistical error of the energies is not examined: set "
                                   "pseudobands.blocks")));
}

/// Decides whether Σ subtracts the known closed sum, and notes it.
void plan_closed_sum(const Deck& deck, const Wavefunctions& given, Calculation& run) {
  // Below, vectors of the complement add as much noise as the closed sum takes away.
  constexpr double kLeastStart = 5.0;  // plasma energies
  const PseudobandPlan& p = *run.pseudobands;
  if (deck.stop_after_epsilon || deck.pseudobands.closure == Closure::kNone || p.keeps_all())
    return;
  const bool wanted = deck.pseudobands.closure == Closure::kSigma;
  if (!uses_plasmon_poles(run.plan.sigma.method)) {
    if (wanted)
      throw InvalidInput(
          "pseudobands.closure = \"sigma\" needs a sigma.method with plasmon poles; for \"cohsex\" "
          "leave it out, because sigma.exact_ch completes static CH");
    return;
  }
  const double start = start_of_complement(given, p), least = kLeastStart * p.plasma_ry;
  if (!wanted && start < least) {
    run.plan.notes.push_back(
        "pseudobands: the closed sum over all states is not subtracted from "
        "Σ, because the given states end " +
        shown(start) + " Ry above midgap, below " + shown(least) + " Ry (five plasma energies)");
    return;
  }
  run.plan.sigma.closed_sum_x_ry = kClosedSumX_ry;
  run.plan.notes.push_back("pseudobands: the closed sum over all states is subtracted from Σ");
  run.plan.host.states += bytes_of_complement(run);
  // Slices sum it like empty bands, without a matrix.
  if (run.plan.sigma.column_slices > 0) return;
  // On a CPU the matrix of the closed sum is in the memory of the host.
  if (run.plan.on_cpu) run.plan.host.sigma += 16.0 * elements_of_w(run);
  run.plan.least_memory_bytes =
      std::max(run.plan.least_memory_bytes, least_of_closed_sum(deck, run));
}

}  // namespace

Wavefunctions replace_by_pseudobands(const Deck& deck, GwKernels& kernels, Calculation& run) {
  const bool top_is_whole = deck.mean_field.empirical;
  run.pseudobands = run.field.hamiltonian
                        ? plan_filtered_pseudobands(run.field, deck.pseudobands, top_is_whole)
                        : plan_pseudobands(run.field, deck.pseudobands, top_is_whole);
  require_protected(deck.sigma.band_max, *run.pseudobands);
  Wavefunctions made = made_for(run, PseudobandUse::kScreening, kernels);
  return std::exchange(run.field.waves, std::move(made));
}

void add_pseudobands_to_plan(const Deck& deck, const Wavefunctions& given, int devices,
                             Calculation& run) {
  if (shares_blocks(deck, run))
    run.plan.error_bars = {.blocks = deck.pseudobands.blocks,
                           .first_order = takes_first_order(deck, run),
                           .random_bands = run.pseudobands->bands() - run.pseudobands->kept};
  plan_bands_of_sigma(run);
  note_pseudobands(deck, given.n_bands, run);
  plan_closed_sum(deck, given, run);
  std::int64_t of_first_order = 0;
  if (deck.perturbation.wanted && !deck.stop_after_epsilon)
    of_first_order =
        add_first_order_of_pseudobands(deck, run.field, plan_of_sigma(*run.pseudobands), &run.plan);
  if (deck.pseudobands.blocks > 0) plan_memory_of_blocks(deck, bytes_of(given), devices, run);
  run.plan.memory_bytes = std::max(run.plan.memory_bytes, of_first_order);
  run.plan.host.epsilon += bytes_of(given);  // until Σ takes its own vectors
  run.plan.host_bytes = run.plan.host.peak();
}

void take_pseudobands_of_sigma(Wavefunctions given, GwKernels& kernels, Calculation& run) {
  run.field.waves = std::move(given);
  run.pseudobands = plan_of_sigma(std::move(*run.pseudobands));
  Wavefunctions made = made_for(run, PseudobandUse::kSelfEnergy, kernels);
  if (run.plan.sigma.closed_sum_x_ry)
    run.field.complement =
        complement_vectors(run.field.waves, *run.pseudobands, run.plan.sigma.screened_cutoff_ry);
  run.field.waves = std::move(made);
}

std::vector<SelfCheck> unexamined_states(const std::string& why) {
  std::vector<SelfCheck> list;
  for (const char* law : {"multiplets", "ch_truncation"})
    list.push_back({law, std::nullopt, 0.0, 0.0, "eV", why});
  return list;
}

}  // namespace quasi::gw
