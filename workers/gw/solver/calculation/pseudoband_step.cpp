#include "workers/gw/solver/calculation/pseudoband_step.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"
#include "workers/gw/solver/mean_field/filtered_pseudobands.hpp"
#include "workers/gw/solver/mean_field/random_factors.hpp"
#include "workers/gw/solver/pseudoband_errors/first_order_blocks.hpp"
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

/// Returns the bytes of the matrix of the closed sum at one q, and of the vectors of the complement
/// on their larger spheres.
std::int64_t bytes_of_closed_sum(const Calculation& run) {
  const Wavefunctions& waves = run.field.waves;
  const double radius = std::sqrt(waves.wavefunction_cutoff_ry) +
                        std::sqrt(run.plan.sigma.screened_cutoff_ry),
               per_k = run.field.crystal().volume_bohr3 * std::pow(radius, 3) / (6.0 * kPi * kPi);
  const auto n_g = static_cast<double>(
      make_g_sphere(run.field.crystal().bdot, {}, run.plan.sigma.screened_cutoff_ry).size());
  return static_cast<std::int64_t>(
      16.0 * (n_g * n_g + per_k * waves.n_k() * run.field.n_spins() * run.pseudobands->vectors));
}

/// Returns the bytes of a device that Σ cannot do without: the poles, the matrix of the closed sum,
/// and its products.
std::int64_t least_of_closed_sum(const Calculation& run) {
  const std::int64_t n_g =
      make_g_sphere(run.field.crystal().bdot, {}, run.plan.sigma.screened_cutoff_ry).size();
  return 48 * n_g * n_g;
}

/// Returns the bytes of the coefficients of all states.
std::int64_t bytes_of(const Wavefunctions& waves) {
  std::int64_t bytes = 0;
  for (const KPointWaves& at : waves.waves)
    for (const auto& spin : at.coefficients) bytes += std::ssize(spin) * 16;
  return bytes;
}

/// Returns the bytes of χ by groups of bands (grouped_screening.hpp), and of one weighted sum.
std::int64_t bytes_of_groups(const Deck& deck, const Calculation& run) {
  const EpsilonOptions& e = run.plan.epsilon;
  const auto n_g =
      static_cast<double>(make_g_sphere(run.field.crystal().bdot, {}, e.epsilon_cutoff_ry).size());
  // A triangle of χ(0) and whole χ(ω); values are real where the states of every k are.
  bool real = true;
  for (const KPointWaves& at : run.field.waves.waves)
    for (const auto& spin : at.coefficients)
      real = real && is_real(std::span(spin).first(at.g.size()));
  const double matrices = static_cast<double>(e.frequencies_ry.size()) - 0.5;
  return static_cast<std::int64_t>(
      n_g * n_g *
      ((deck.pseudobands.blocks + 2) * run.field.waves.n_k() * matrices * (real ? 8.0 : 16.0) +
       16.0 * static_cast<double>(e.frequencies_ry.size())));
}

/// Returns the bytes of the host for poles of all q and their changes by blocks, and of the
/// matrices from which changes are made on some devices at a time.
std::int64_t bytes_of_changes(const Deck& deck, const Calculation& run, int devices) {
  const std::int64_t n_g =
      make_g_sphere(run.field.crystal().bdot, {}, run.plan.sigma.screened_cutoff_ry).size();
  // Poles, then a triangle of each change; W of plasmon poles is Hermitian without a truncation.
  const std::int64_t each = deck.coulomb.truncation == Truncation::kNone
                                ? elements_of_change(n_g, true)
                                : elements_of_change(n_g, false);
  return run.field.waves.n_k() * (24 * n_g * n_g + 12 * (deck.pseudobands.blocks + 1) * each) +
         std::min(devices, kChangesAtATime) * 40 * n_g * n_g;
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

/// Notes in the plan how pseudobands replace states.
void note_pseudobands(const Deck& deck, Calculation& run) {
  const PseudobandPlan& p = *run.pseudobands;
  note_choice(deck.pseudobands, run);
  if (!deck.stop_after_epsilon) require_protected(run.plan.sigma.band_max, p);
  run.plan.notes.push_back(
      p.keeps_all()
          ? "pseudobands: all " + std::to_string(p.given) +
                " bands are kept, because there would be no fewer random vectors"
          : "pseudobands: " + std::to_string(p.kept) + " protected bands and " +
                std::to_string(p.used.size()) + " windows of " + std::to_string(p.vectors) +
                " random vectors stand for " +
                (p.filter != nullptr
                     ? stand_for(*p.filter, deck.pseudobands.windows)
                     : std::to_string(p.given) + " bands; the windows add up to 1 within " +
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
  run.plan.host_bytes += bytes_of_closed_sum(run);
  run.plan.least_memory_bytes = std::max(run.plan.least_memory_bytes, least_of_closed_sum(run));
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
  // Error bars need the given states once more, and matrices beside those of the job.
  run.plan.host_bytes += bytes_of(given);
  if (shares_blocks(deck, run))
    run.plan.error_bars = {.blocks = deck.pseudobands.blocks,
                           .first_order = takes_first_order(deck, run),
                           .random_bands = run.pseudobands->bands() - run.pseudobands->kept};
  if (deck.pseudobands.blocks > 0)
    run.plan.host_bytes += bytes_of(given) + run.plan.screening_bytes;
  if (shares_blocks(deck, run)) {
    run.plan.host_bytes += bytes_of_groups(deck, run);
    if (takes_first_order(deck, run)) run.plan.host_bytes += bytes_of_changes(deck, run, devices);
  }
  note_pseudobands(deck, run);
  plan_closed_sum(deck, given, run);
}

void take_pseudobands_of_sigma(Wavefunctions given, GwKernels& kernels, Calculation& run) {
  run.field.waves = std::move(given);
  Wavefunctions made = made_for(run, PseudobandUse::kSelfEnergy, kernels);
  if (run.plan.sigma.closed_sum_x_ry)
    run.field.complement =
        complement_vectors(run.field.waves, *run.pseudobands, run.plan.sigma.screened_cutoff_ry);
  run.field.waves = std::move(made);
}

std::vector<SelfCheck> unexamined_states() {
  std::vector<SelfCheck> list;
  for (const char* law : {"multiplets", "ch_truncation"})
    list.push_back({law, std::nullopt, 0.0, 0.0, "eV", "pseudobands replace states"});
  return list;
}

}  // namespace quasi::gw
