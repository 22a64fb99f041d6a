#include "workers/thermal/solver/four_phonon_run.hpp"

#include <chrono>
#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/thermal/solver/scattering.hpp"

namespace quasi::thermal {

void require_supported_4ph(const Control& control) {
  if (!control.four_phonon) return;
  if (control.samples_4ph > 0 || control.samples_4ph_phase_space > 0)
    throw InvalidInput("'num_sample_process_4ph' and 'num_sample_process_4ph_phase_space' are not available: "
                       "every four-phonon process is summed; set them to -1");
  if (control.strategy != Strategy::kFactorised)
    throw InvalidInput("'strategy' other than factorised is not available with 'four_phonon' = .true.");
}

std::unique_ptr<FourPhononRun> run_four_phonon(const Deck& deck, const std::vector<Device>& devices,
                                               ConductivityRun& run,
                                               const std::filesystem::path& checkpoint_directory,
                                               Progress& progress) {
  require_supported_4ph(deck.control);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const Control& control = deck.control;
  auto result = std::make_unique<FourPhononRun>();
  result->problem = make_problem_4ph(deck.crystal, run.modes, deck.symmetry, control, *deck.fourth_order,
                                     deck.symmetry.irreducible);
  std::vector<ScatteringKernels4ph*> kernels;
  for (const Device& device : devices) {
    result->kernels.push_back(make_scattering_kernels_4ph(
        device, static_cast<std::int64_t>(control.memory_budget_mib * 1048576.0)));
    kernels.push_back(result->kernels.back().get());
  }
  result->rules = result->problem.rules;
  result->n_blocks = deck.fourth_order->n_blocks();
  Rates4ph& rates = result->rates;
  rates = scattering_rates_4ph(result->problem, control.constants(), kernels, progress,
                               {checkpoint_directory, control.checkpoint_interval_s});
  if (control.average_degenerate) average_degenerate_4ph(run.modes, deck.symmetry.irreducible, rates);
  for (int t = 0; t < rates.n_temperatures; ++t)
    for (std::int64_t row = 0; row < rates.n_rows; ++row) {
      const double rate = rates.total_per_ps(t, row);
      if (!std::isfinite(rate))
        throw InvalidInput("four-phonon scattering gave a rate that is not finite (row " +
                           std::to_string(row) + "); are the fourth-order force constants finite and sane?");
      result->further.rate_per_ps.push_back(rate);
    }
  if (control.four_phonon_iteration) {
    // The symmetric form needs processes that look the same from each of their phonons.
    const bool symmetric = control.broadening == Broadening::kSymmetric && control.exact_weights &&
                           control.omega_floor_4ph_rad_ps == 0.0;
    for (ScatteringKernels4ph* kernel : kernels) kernel->load(result->problem);
    result->collision = std::make_unique<Collision4ph>(result->problem, control.constants(), kernels, rates,
                                                       symmetric, progress);
    Collision4ph* collision = result->collision.get();
    result->further.symmetric = symmetric;
    result->further.in_scattering = [collision](std::size_t t, const std::vector<double>& f) {
      return collision->in_scattering(t, f);
    };
    const Modes* modes = &run.modes;
    const Deck* whole = &deck;
    if (symmetric)
      result->further.diagonal_per_ps = [collision, modes, whole](std::size_t t) {
        std::vector<double> diagonal = collision->out_scattering(t);
        if (whole->control.average_degenerate)
          average_over_subspaces(*modes, whole->symmetry.irreducible, 1, diagonal.data());
        return diagonal;
      };
  }
  run.seconds["scattering_4ph"] += std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

}  // namespace quasi::thermal
