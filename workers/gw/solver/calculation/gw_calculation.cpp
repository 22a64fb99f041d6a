#include "workers/gw/solver/calculation/gw_calculation.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/input/slices/deck_slices.hpp"
#include "workers/gw/solver/calculation/cost/cost_estimate.hpp"
#include "workers/gw/solver/calculation/displacement_step.hpp"
#include "workers/gw/solver/calculation/early_checks.hpp"
#include "workers/gw/solver/calculation/phase_clock.hpp"
#include "workers/gw/solver/calculation/problem_digest.hpp"
#include "workers/gw/solver/calculation/pseudoband_step.hpp"
#include "workers/gw/solver/calculation/screening_step.hpp"
#include "workers/gw/solver/calculation/slices/slices_plan.hpp"
#include "workers/gw/solver/mean_field/espresso/file_or_save.hpp"
#include "workers/gw/solver/pseudoband_errors/block_energies.hpp"
#include "workers/gw/solver/pseudoband_errors/statistical_errors.hpp"
#include "workers/gw/solver/self_energy/sigma_stage.hpp"
#include "workers/gw/solver/self_energy/zone_sum/zone_sum_step.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

/// Checks the mean field by laws that every sound one obeys, before ε⁻¹ is calculated.
/// @throws InvalidInput if one is violated and not accepted
void test_mean_field(const Deck& deck, const MeanField* outer, GwKernels& kernels,
                     Calculation& run) {
  StepTimes times;
  if (outer != nullptr) {
    SigmaOptions of_screening = run.plan.sigma;
    of_screening.bands = run.plan.epsilon.bands;
    of_screening.kpoints = {0};
    require_sound(deck, check_mean_field(run.field, of_screening, kernels, &times));
  }
  run.self_test =
      check_mean_field(outer != nullptr ? *outer : run.field, run.plan.sigma, kernels, &times);
  for (const auto& [step, seconds] : times.seconds()) run.seconds["self_test_" + step] = seconds;
  require_sound(deck, run.self_test);
}

/// Checks the mean field. The states that pseudobands replace are tested, not the random vectors.
void test_states(const Deck& deck, const MeanField* outer, std::optional<Wavefunctions>& given,
                 GwKernels& kernels, Calculation& run) {
  if (!given) return test_mean_field(deck, outer, kernels, run);
  std::swap(run.field.waves, *given);
  const int bands = std::exchange(run.plan.sigma.bands, run.pseudobands->given);
  test_mean_field(deck, outer, kernels, run);
  run.plan.sigma.bands = bands;
  std::swap(run.field.waves, *given);
}

/// Checks Σ of a multiplet at rest: inner states of a displaced crystal split it by intention.
std::vector<SelfCheck> check_states_at_rest(const StepContext& context, StepTimes* times,
                                            Calculation& run) {
  auto inner = std::exchange(run.field.inner, {});
  std::vector<SelfCheck> list =
      check_states(run.field, run.epsilon, run.plan.sigma, context, times);
  run.field.inner = std::move(inner);
  return list;
}

/// Checks ε⁻¹ and, if states are calculated, Σ by laws that every sound calculation obeys. A law
/// that fails marks the results.
void run_self_test(bool with_states, const Deck& deck, const StepContext& context,
                   ScreeningChecks& screening, Calculation& run) {
  StepTimes times;
  screening.start();
  std::vector<SelfCheck> of_states;
  if (with_states)
    of_states = run.pseudobands ? unexamined_states("pseudobands replace states")
                : run.plan.sigma.column_slices > 0
                    ? unexamined_states("W is cut into slices (epsilon.column_slices)")
                    : check_states_at_rest(context, &times, run);
  for (const auto& [step, seconds] : times.seconds()) run.seconds["self_test_" + step] = seconds;
  std::vector<SelfCheck> of_screening = screening.take();
  run.seconds["self_test_screening"] = screening.seconds();
  if (!with_states) require_sound(deck, of_screening);
  run.self_test.insert(run.self_test.begin(), std::make_move_iterator(of_screening.begin()),
                       std::make_move_iterator(of_screening.end()));
  run.self_test.insert(run.self_test.end(), std::make_move_iterator(of_states.begin()),
                       std::make_move_iterator(of_states.end()));
  note_violations(deck, context.progress, run);
}

/// Reports the gap by the sums so far or, where V_xc is undefined, the change of the gap by Σ.
void report_gap(const Calculation& run, const std::vector<SelfEnergyAtK>& sums,
                const ExchangeCorrelation& vxc, bool remainder, Progress& progress) {
  const auto list = quasiparticles(run.field, sums, vxc.diagonal_ev(), run.plan.sigma,
                                   run.plan.derivative, remainder);
  if (const Gaps found = gaps(run.field, list); found.fundamental_ev) {
    progress.metric("gap_ev", *found.fundamental_ev);
    return;
  }
  const Quasiparticle *top = nullptr, *bottom = nullptr;
  for (const Quasiparticle& qp : list)
    if (qp.band <= run.field.n_occupied_of_spin[static_cast<std::size_t>(qp.spin - 1)]) {
      if (top == nullptr || qp.mean_field_ev > top->mean_field_ev) top = &qp;
    } else if (bottom == nullptr || qp.mean_field_ev < bottom->mean_field_ev) {
      bottom = &qp;
    }
  if (top != nullptr && bottom != nullptr)
    progress.metric("sigma_gap_ev", bottom->sigma_ev - top->sigma_ev);
}

/// The diagonal Σ. Blocks of random vectors may sum it with their changes.
/// @param blocks  null: none
void sum_sigma(const Deck& deck, const ExchangeCorrelation& vxc, const StepContext& context,
               ScreeningChecks& screening_checks, BlockEnergies* blocks, Calculation& run) {
  const auto running = [&](const std::vector<SelfEnergyAtK>& sums) {
    if (deck.self_test) screening_checks.start();
    report_gap(run, sums, vxc, deck.sigma.remainder, context.progress);
  };
  if (blocks != nullptr) {
    const PhaseClock clock(&run.seconds["pseudoband_errors"]);
    blocks->prepare();
    if (deck.self_test) screening_checks.start();
  }
  const PhaseClock clock(&run.seconds["sigma"]);
  if (blocks == nullptr || !blocks->sum_sigma())
    run.sigma =
        self_energy(run.field, run.epsilon, run.plan.sigma, context, &run.statistics, running);
  else if (context.team.ranks().leads())
    running(run.sigma);
}

/// The completed sum of Σ over the q-grid, its checks, and the energies that follow from it.
/// @param samples  ε⁻¹ at the samples of q → 0
void solve_states(const Deck& deck, const ExchangeCorrelation& vxc,
                  const std::vector<DielectricMatrix>& samples, const StepContext& context,
                  ScreeningChecks& screening_checks, Calculation& run) {
  complete_zone_sum(deck, samples, context, run);
  {
    const PhaseClock clock(&run.seconds["self_test"]);
    if (deck.self_test) run_self_test(true, deck, context, screening_checks, run);
  }
  if (deck.sigma.method == SigmaMethod::kCohsex && deck.sigma.exact_ch)
    for (SelfEnergyAtK& sum : run.sigma) sum.ch_ry[0] = sum.ch_exact_ry;
  run.quasiparticles = quasiparticles(run.field, run.sigma, vxc.diagonal_ev(), run.plan.sigma,
                                      run.plan.derivative, deck.sigma.remainder);
  {
    const PhaseClock clock(&run.seconds["sigma_further"]);
    solve_further(deck.sigma, vxc, context, run);
  }
  if (deck.sigma.spectrum.wanted()) {
    run.spectra = spectra(run.field, run.sigma, vxc.diagonal_ev(),
                          {.band_min = run.plan.sigma.band_min,
                           .band_max = run.plan.sigma.band_max,
                           .first_offset = run.plan.spectrum_offset,
                           .grid = deck.sigma.spectrum,
                           .offsets_ry = {run.plan.sigma.offsets_ry.begin() +
                                              static_cast<std::ptrdiff_t>(run.plan.spectrum_offset),
                                          run.plan.sigma.offsets_ry.end()},
                           .energy_ev = run.plan.spectrum_ev,
                           .remainder = deck.sigma.remainder});
    if (deck.sigma.solution == Solution::kGraphical)
      use_graphical_solution(run.spectra, run.quasiparticles);
    note_spectra(deck.sigma, run);
  }
  note_gaps(run);
  for (const auto& [step, value] : run.statistics.seconds) run.seconds["sigma_" + step] = value;
}

/// Plans the job, and ends it at once where it cannot succeed.
/// @param given  states that pseudobands replace, which stay in memory; null: none
void plan_job(const Deck& deck, const MeanField* outer, const Wavefunctions* given,
              const Workplace& place, Progress& progress, Calculation& run) {
  const auto plan = [&](const Deck& cut) {
    {
      const PhaseClock clock(&run.seconds["plan"]);
      const bool on_cpu = place.team.first().device().backend == Backend::kCpu;
      run.plan = make_plan(cut, run.field, place.memory_budget_bytes, outer, on_cpu);
    }
    run.plan.sigma.memory_limit_bytes = place.memory_limit_bytes;
    if (given != nullptr)
      add_pseudobands_to_plan(cut, *given, static_cast<int>(place.team.members().size()), run);
    if (!place.checkpoint_directory.empty() && !run.plan.stored && !shares_blocks(cut, run)) {
      run.plan.host.states += static_cast<double>(run.plan.screening_bytes);  // its copy of ε⁻¹
      run.plan.set_peaks();
    }
    add_eigensolver_to_plan(cut, place.team.first().device(), run);
  };
  plan_slices(deck, place, plan, run);
  for (const std::string& note : run.plan.notes) progress.log(note);
  require_room(run.plan, place.memory_limit_bytes, remedy_of_slices(deck));
  require_host_room(run.plan, place.host_limit_bytes);
  // WFN_outer has another symmetry, which the estimate knows nothing of.
  if (outer != nullptr || deck.pseudobands.serves_errors()) return;
  const PhaseClock clock(&run.seconds["estimate"]);
  for (const auto& [step, seconds] :
       estimate_seconds(run.field, place.team, deck.coulomb.subsampling, &run.plan))
    run.seconds["estimate_" + step] = seconds;
  if (deck.stop_after_epsilon) run.plan.sigma_seconds = run.plan.error_bar_seconds = 0.0;
  progress.log(cost_line(run.plan));
}

bool wants_path(const Deck& deck) {
  return !deck.sigma.path.corners.empty() && !deck.stop_after_epsilon;
}

std::optional<MeanField> load_outer_mean_field(const MeanFieldOptions& source,
                                               const MeanField& screening) {
  if (source.wfn_outer.empty()) return std::nullopt;
  return make_outer_mean_field(screening, load_states(source.wfn_outer));
}

/// Everything that a job makes and checks before ε⁻¹.
struct Preparation {
  std::optional<MeanField> outer = {};      ///< of WFN_outer
  std::optional<Wavefunctions> given = {};  ///< states that pseudobands replace
  std::uint64_t digest = 0;
  std::unique_ptr<const CoulombInteraction> coulomb = {};
  ExchangeCorrelation vxc = {};
  PathStates path = {};
};

/// Phases that follow each other. Their seconds and those of `other` add up to those of the job.
constexpr const char* kPhases[] = {"mean_field",       "pseudobands", "plan",
                                   "estimate",         "vxc",         "self_test",
                                   "epsilon",          "sigma",       "sigma_further",
                                   "zone_sum_change",  "band_path",   "perturbation",
                                   "pseudoband_errors"};

Calculation started(MeanField field) {
  Calculation run{.field = std::move(field), .plan = {}, .seconds = {}};
  for (const char* phase : {"epsilon", "sigma", "vxc", "self_test"}) run.seconds[phase] = 0.0;
  return run;
}

/// Sets digest and interaction of a job, and checks that all ranks have the same problem.
void identify(const Deck& deck, const MeanField* outer, const Workplace& place,
              const Calculation& run, Preparation& ready) {
  ready.digest =
      digest_of(run.field, run.plan, deck.coulomb, outer != nullptr ? &outer->waves : nullptr);
  place.team.ranks().require_same(ready.digest, "the mean field or the deck");
  ready.coulomb = std::make_unique<const CoulombInteraction>(run.field.crystal(),
                                                             run.field.waves.k_grid, deck.coulomb);
  for (const auto& spin : run.field.density.values)
    ready.coulomb->require_charge_inside(run.field.density.header.g, spin);
  if (!run.plan.stored) ready.coulomb->require_direction(run.field.q0);
}

/// Plans a job and checks its data. V_xc and the states of a path come here, so that files that do
/// not fit end the job at once.
Preparation prepare(const Deck& deck, const Workplace& place, Progress& progress,
                    Calculation& run) {
  Preparation ready{.outer = load_outer_mean_field(deck.mean_field, run.field)};
  const MeanField* const outer = ready.outer ? &*ready.outer : nullptr;
  require_support_of_spinors(deck, run.field);
  if (deck.pseudobands.wanted()) {
    const PhaseClock clock(&run.seconds["pseudobands"]);
    ready.given = replace_by_pseudobands(deck, place.team.first(), run);
  }
  plan_job(deck, outer, ready.given ? &*ready.given : nullptr, place, progress, run);
  {
    const PhaseClock clock(&run.seconds["plan"]);
    identify(deck, outer, place, run, ready);
  }
  if (!deck.stop_after_epsilon) {
    const PhaseClock clock(&run.seconds["vxc"]);
    ready.vxc = exchange_correlation(deck.mean_field, outer != nullptr ? *outer : run.field,
                                     run.plan.sigma, place.team.first(), deck.sigma.wants_matrix());
  }
  if (deck.self_test) {
    const PhaseClock clock(&run.seconds["self_test"]);
    test_states(deck, outer, ready.given, place.team.first(), run);
  }
  if (wants_path(deck))
    ready.path = path_states(deck.mean_field, deck.sigma, run.field, place.team.first());
  return ready;
}

/// Returns what a job needs of its mean field, and the memory for states.
MeanFieldDemand demand_at(const Deck& deck, const Workplace& place, Progress& progress) {
  MeanFieldDemand demand = demand_of(deck);
  const double bytes = 1048576.0 * deck.mean_field.state_memory_mib;
  demand.states = {bytes > 0.0 ? static_cast<std::int64_t>(bytes) : place.host_limit_bytes / 2,
                   place.checkpoint_directory, &progress};
  demand.room = {place.memory_limit_bytes, place.host_limit_bytes};
  return demand;
}

}  // namespace

MeanFieldDemand demand_of(const Deck& deck) {
  return {.bands = std::max(deck.epsilon.bands, deck.sigma.bands),
          .screening = deck.epsilon.stored.gamma.empty(),
          .hamiltonian = deck.pseudobands.wanted() &&
                         deck.mean_field.eigensolver.method == Eigensolver::kOperator,
          .molecule = deck.coulomb.truncation == Truncation::kBox ||
                      deck.coulomb.truncation == Truncation::kSphere,
          .shifts = deck.coulomb.subsampling > 0};
}

Calculation run_calculation(const Deck& deck, GwKernels& kernels, std::int64_t memory_budget_bytes,
                            Progress& progress) {
  DeviceTeam alone(kernels);
  return run_calculation(deck, {.team = alone, .memory_budget_bytes = memory_budget_bytes},
                         progress);
}

Calculation run_calculation(const Deck& deck, const Workplace& place, Progress& progress) {
  const Stopwatch whole;
  double seconds = 0.0;
  StepTimes times;
  std::optional<MeanField> field;
  {
    const PhaseClock clock(&seconds);
    require_room_of_crystal(deck, place);
    place.team.warm_up_others();
    field = load_mean_field(deck.mean_field, demand_at(deck, place, progress), place.team.first(),
                            progress, &times);
  }
  Calculation run = deck.pseudobands.blocks > 0
                        ? solve_with_errors(deck, std::move(*field), place, progress)
                        : solve_mean_field(deck, std::move(*field), place, progress);
  run.seconds["mean_field"] = seconds;
  for (const auto& [step, value] : times.seconds()) run.seconds["mean_field_" + step] = value;
  run.errors = error_table(run, nullptr);
  double in_phases = 0.0;
  for (const char* phase : kPhases)
    if (const auto found = run.seconds.find(phase); found != run.seconds.end())
      in_phases += found->second;
  run.seconds["other"] = std::max(0.0, whole.seconds() - in_phases);
  return run;
}

Plan validated_plan(const Deck& deck, const Workplace& place, Progress& progress) {
  require_room_of_crystal(deck, place);
  MeanFieldDemand demand = demand_at(deck, place, progress);
  demand.states.forget = true;
  Calculation run = started(load_mean_field(deck.mean_field, demand, place.team.first(), progress));
  Deck known = deck;
  const std::string note = leave_out_forgotten_states(run.field, known);
  prepare(known, place, progress, run);
  if (!note.empty()) run.plan.notes.push_back(note);
  return std::move(run.plan);
}

Calculation solve_mean_field(const Deck& deck, MeanField field, const Workplace& place,
                             Progress& progress) {
  Calculation run = started(std::move(field));
  Preparation ready = prepare(deck, place, progress, run);
  Checkpoint checkpoint(place.checkpoint_directory, ready.digest, deck.common.checkpoint_interval_s,
                        progress);
  const StepContext context{*ready.coulomb, place.team, checkpoint, progress};
  const ScreeningStep screening(deck, context, run);
  ScreeningChecks screening_checks(run.epsilon);
  if (deck.stop_after_epsilon) {
    if (deck.self_test) run_self_test(false, deck, context, screening_checks, run);
    checkpoint.finish();
    return run;
  }
  if (ready.outer) {
    run.screening_field = std::move(run.field);
    run.field = std::move(*ready.outer);
  }
  if (ready.given) {
    const PhaseClock clock(&run.seconds["pseudobands"]);
    take_pseudobands_of_sigma(std::move(*ready.given), place.team.first(), run);
    ready.given.reset();
  }
  std::unique_ptr<BlockEnergies> blocks;
  if (shares_blocks(deck, run))
    blocks = block_energies(deck, ready.vxc, context, screening.groups(), run);
  sum_sigma(deck, ready.vxc, context, screening_checks, blocks.get(), run);
  solve_states(deck, ready.vxc, screening.samples(), context, screening_checks, run);
  if (blocks != nullptr) {
    const PhaseClock clock(&run.seconds["pseudoband_errors"]);
    add_block_errors(deck, *blocks, progress, run);
  }
  if (deck.perturbation.wanted) solve_displacements(deck, screening.groups(), context, run);
  if (wants_path(deck) && place.team.ranks().leads()) {
    const PhaseClock clock(&run.seconds["band_path"]);
    bands_along_path(deck.sigma.path, ready.path, progress, run);
  }
  checkpoint.finish();
  return run;
}

}  // namespace quasi::gw
