#include "workers/gw/solver/calculation/pseudoband_step.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/memory/error_bar_memory.hpp"
#include "workers/gw/solver/calculation/memory/sigma_memory.hpp"
#include "workers/gw/solver/mean_field/filtered_pseudobands.hpp"
#include "workers/gw/solver/mean_field/random_factors.hpp"
#include "workers/gw/solver/pseudoband_errors/block_energies.hpp"
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

/// Sets the bands of Σ, whose vectors may be more than those of χ, and their memory.
void plan_bands_of_sigma(Calculation& run) {
  run.plan.sigma.bands = plan_of_sigma(*run.pseudobands).bands();
  run.plan.host.states += bytes_of_states(run.field.waves) *
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

/// Sets the memory of a device while it filters the vectors of Σ, and while it sums Σ with them.
/// @param before  bytes of Σ with the vectors of χ
void plan_random_vectors(const Deck& deck, const SigmaBytes& before, Calculation& run) {
  Plan& plan = run.plan;
  const PseudobandPlan p = plan_of_sigma(*run.pseudobands);
  if (p.filter != nullptr) {
    double row = 0.0;  // coefficients of a state
    for (const KPointWaves& at : run.field.waves.waves)
      row = std::max(row, static_cast<double>(at.g.size()) * run.field.n_spinor());
    // A batch of vectors passes through the recursion with a block for each window and those of
    // its terms. Then the vectors of all windows are made orthogonal to the protected states.
    constexpr double kTerms = 24.0;
    const auto vectors = static_cast<double>(p.chosen.size());
    const double number = plan.real_states ? 8.0 : 16.0,
                 batch = 2.0 * number * row * vectors * (kTerms + 1.0 * p.filter->size()),
                 all = number * row * (p.bands() + vectors);
    plan.device.pseudobands =
        std::max(all, std::min(batch, static_cast<double>(kTransformBatch_bytes)));
  }
  if (deck.stop_after_epsilon) return;
  const SigmaBytes now = bytes_of_sigma(run.field, plan, run.field.waves.n_k());
  plan.device.sigma = now.peak();
  if (plan.on_cpu) plan.host.sigma += std::max(0.0, now.products - before.products);
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
  const SigmaBytes before = bytes_of_sigma(run.field, run.plan, run.field.waves.n_k());
  if (shares_blocks(deck, run))
    run.plan.error_bars = {.blocks = deck.pseudobands.blocks,
                           .first_order = takes_first_order(deck, run),
                           .random_bands = run.pseudobands->bands() - run.pseudobands->kept};
  plan_bands_of_sigma(run);
  note_pseudobands(deck, given.n_bands, run);
  plan_closed_sum(deck, given, run);
  plan_random_vectors(deck, before, run);
  if (deck.perturbation.wanted && !deck.stop_after_epsilon)
    run.plan.device.first_order = static_cast<double>(add_first_order_of_pseudobands(
        deck, run.field, plan_of_sigma(*run.pseudobands), &run.plan));
  if (deck.pseudobands.blocks > 0)
    plan_memory_of_blocks(deck, bytes_of_states(given), devices, run);
  run.plan.host.epsilon += bytes_of_states(given);  // until Σ takes its own vectors
  run.plan.set_peaks();
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
