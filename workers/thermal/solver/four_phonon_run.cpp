#include "workers/thermal/solver/four_phonon_run.hpp"

#include <chrono>
#include <cmath>
#include <string>

#include "workers/backend/error.hpp"

namespace quasi::thermal {

void require_supported_4ph(const Control& control) {
  if (!control.four_phonon) return;
  if (control.four_phonon_iteration)
    throw InvalidInput("'four_phonon_iteration' = .true. is not available: four phonons enter the relaxation "
                       "times, three phonons are iterated; set it to .false.");
  if (control.samples_4ph > 0 || control.samples_4ph_phase_space > 0)
    throw InvalidInput("'num_sample_process_4ph' and 'num_sample_process_4ph_phase_space' are not available: "
                       "every four-phonon process is summed; set them to -1");
  if (control.strategy != Strategy::kFactorised)
    throw InvalidInput("'strategy' other than factorised is not available with 'four_phonon' = .true.");
}

FourPhononRun run_four_phonon(const Deck& deck, const Device& device, ConductivityRun& run,
                              const std::filesystem::path& checkpoint_directory, Progress& progress) {
  require_supported_4ph(deck.control);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const Control& control = deck.control;
  const Problem4ph problem = make_problem_4ph(deck.crystal, run.modes, deck.symmetry, control,
                                              *deck.fourth_order, deck.symmetry.irreducible);
  const auto kernels = make_scattering_kernels_4ph(
      device, static_cast<std::int64_t>(control.memory_budget_mib * 1048576.0));
  FourPhononRun result;
  result.rules = problem.rules;
  result.n_blocks = deck.fourth_order->n_blocks();
  result.rates = scattering_rates_4ph(problem, control.constants(), *kernels, progress, checkpoint_directory);
  if (control.average_degenerate)
    average_degenerate_4ph(run.modes, deck.symmetry.irreducible, result.rates);
  const std::int64_t n_rows = result.rates.n_rows;
  for (int t = 0; t < result.rates.n_temperatures; ++t)
    for (std::int64_t row = 0; row < n_rows; ++row) {
      const double rate = result.rates.total_per_ps(t, row);
      if (!std::isfinite(rate))
        throw InvalidInput("four-phonon scattering gave a rate that is not finite (row " +
                           std::to_string(row) + "); are the fourth-order force constants finite and sane?");
      result.further.rate_per_ps.push_back(rate);
    }
  run.seconds["scattering_4ph"] += std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

}  // namespace quasi::thermal
