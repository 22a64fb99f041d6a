#include "workers/thermal/solver/calculation/solve_case.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/thermal/solver/device_team.hpp"
#include "workers/thermal/solver/three_phonon/running_sums.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/thermal/solver/three_phonon/shared_sums_3ph.hpp"
#include "workers/thermal/solver/transport/kappa_error.hpp"

namespace quasi::thermal {

void require_transport(const Deck& deck, const Modes& modes) {
  if (deck.control.only_harmonic) return;
  const Transport transport{deck.crystal, deck.symmetry, modes, deck.control};
  for (std::int64_t row = 0; row < transport.n_rows(); ++row)
    if (transport.conducts(row)) return;
  throw InvalidInput(
      modes.n_q == 1
          ? "'ngrid' = 1 1 1 holds Γ alone, where no mode carries heat; use a finer mesh"
          : "no mode carries heat: 'omega_max' = " + std::to_string(deck.control.omega_max_rad_ps) +
                " rad/ps lies below every frequency; raise it");
}

SolvedCase solve_case(const Deck& deck, const std::vector<Device>& devices, Ranks& ranks,
                      const std::filesystem::path& checkpoint_directory, Progress& progress) {
  SolvedCase solved;
  // The first is used by three phonons.
  DeviceStart other_devices(deck.fourth_order
                                ? std::vector<Device>(devices.begin() + 1, devices.end())
                                : std::vector<Device>{});
  solved.run = start_run(deck, progress);
  for (const std::string& warning : solved.run.warnings) progress.log("warning: " + warning);
  if (deck.control.only_harmonic) return solved;
  require_transport(deck, solved.run.modes);
  const auto kernels = share_three_phonons(devices, ranks);
  ThreePhononProblem problem = make_three_phonon_problem(
      deck.crystal, deck.third_order, deck.symmetry, solved.run.modes, deck.control);
  add_scattering(deck, *kernels, problem, solved.run, progress,
                 {devices, ranks.leads() ? checkpoint_directory : std::filesystem::path{}});
  if (devices.size() > 1) solved.run.seconds["start_devices"] = other_devices.wait();
  if (deck.fourth_order)
    solved.four_phonon =
        run_four_phonon(deck, devices, ranks, solved.run, checkpoint_directory, progress);
  const FurtherScattering further =
      solved.four_phonon ? solved.four_phonon->further : FurtherScattering{};
  // Built in place: a checkpoint does not move.
  solved.checkpoint.reset(new Checkpoint(
      open_checkpoint({ranks.leads() ? checkpoint_directory : std::filesystem::path{},
                       deck.control.checkpoint_interval_s},
                      progress)));
  if (solved.four_phonon && solved.four_phonon->collision)
    solved.four_phonon->collision->keep_in(*solved.checkpoint,
                                           deck.control.checkpoint_limit_mib * 1048576.0);
  add_conductivity(deck, *kernels, further, solved.run, progress, solved.checkpoint.get(), ranks);
  if (deck.control.samples_rates_3ph() || deck.control.samples_rates_4ph())
    for (std::size_t t = 0; t < deck.control.temperatures_k.size(); ++t)
      solved.run.kappa_relative_error.push_back(relative_kappa_error(
          deck, solved.run, t,
          [&](std::int64_t row) {
            return solved.four_phonon
                       ? solved.four_phonon->rates.total_per_ps(static_cast<int>(t), row)
                       : 0.0;
          },
          [&](std::int64_t row) {
            const double of_four =
                solved.four_phonon
                    ? solved.four_phonon->rates.total_error_per_ps(static_cast<int>(t), row)
                    : 0.0;
            return std::hypot(solved.run.three_phonon.error_per_ps(t, row), of_four);
          }));
  if (deck.control.precision == Precision::kMixed)
    solved.precision = measure_precision(deck, problem, solved.run, devices.front());
  if (solved.four_phonon && solved.four_phonon->precision_errors)
    solved.precision_4ph = measure_precision_4ph(solved.run, solved.four_phonon->rates,
                                                 *solved.four_phonon->precision_errors);
  solved.derived = derive(deck, problem.fc3, solved.run);
  const bool wires = deck.control.nanowires && deck.control.converge;
  const bool iterated = further.in_scattering != nullptr;
  if (wires &&
      (deck.control.broadening != Broadening::kSymmetric || (iterated && !further.symmetric)))
    solved.run.warnings.push_back(
        "wires are computed in relaxation-time approximation only: beyond it they need broadening "
        "= "
        "symmetric, and with 'four_phonon_iteration' exact_weights = .true. and omega_floor_4ph = "
        "0");
  else if (wires)
    solved.derived->wires = converged_wires(
        deck, problem.fc3, solved.run, further.rate_per_ps,
        iterated ? std::function<FurtherScattering(const Symmetry&)>([&](const Symmetry& along) {
          return iterated_with(along, deck, devices, solved.run, *solved.four_phonon, progress);
        })
                 : nullptr,
        devices.front(), progress);
  const auto& isotopes = solved.run.isotope_per_ps;
  if (!deck.control.isotope_factors.empty() &&
      std::all_of(isotopes.begin(), isotopes.end(), [](double rate) { return rate == 0.0; }))
    solved.run.warnings.push_back(
        "'isotope_factors' change nothing: no atom scatters by its isotopes (all 'gfactors' are "
        "0)");
  solved.derived->sweep =
      run_sweep(deck, *kernels, further, solved.run, progress, solved.checkpoint.get(), ranks);
  return solved;
}

}  // namespace quasi::thermal
