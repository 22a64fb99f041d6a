#include "workers/thermal/solver/calculation/solve_case.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/backend/team/every_device.hpp"
#include "workers/thermal/solver/three_phonon/running_sums.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/thermal/solver/three_phonon/shared_sums_3ph.hpp"
#include "workers/thermal/solver/transport/kappa_error.hpp"

namespace quasi::thermal {

void require_transport(const Deck& deck, const Modes& modes) {
  if (deck.control.only_harmonic) return;
  const Transport transport{deck.crystal, deck.symmetry, modes, deck.control.transport_options()};
  for (std::int64_t row = 0; row < transport.n_rows(); ++row)
    if (transport.conducts(row)) return;
  throw InvalidInput(
      modes.n_q == 1
          ? "'ngrid' = 1 1 1 holds Γ alone, where no mode carries heat; use a finer mesh"
          : "no mode carries heat: 'omega_max' = " + std::to_string(deck.control.omega_max_rad_ps) +
                " rad/ps lies below every frequency; raise it");
}

namespace {

/// Standard error of κ at every temperature, from the errors of sampled rates of both orders.
void add_kappa_errors(const Deck& deck, SolvedCase& solved) {
  const Rates4ph* four = solved.four_phonon ? &solved.four_phonon->rates : nullptr;
  for (std::size_t t = 0; t < deck.control.temperatures_k.size(); ++t) {
    const auto temperature = static_cast<int>(t);
    solved.run.kappa_relative_error.push_back(relative_kappa_error(
        deck, solved.run, t,
        [&](std::int64_t row) {
          return four != nullptr ? four->total_per_ps(temperature, row) : 0.0;
        },
        [&](std::int64_t row) {
          const double error_4ph =
              four != nullptr ? four->total_error_per_ps(temperature, row) : 0.0;
          return std::hypot(solved.run.three_phonon.error_per_ps(t, row), error_4ph);
        }));
  }
}

/// κ of wires from the BTE where the operator is symmetric; else a warning.
void add_converged_wires(const Deck& deck, const std::vector<Device>& devices,
                         const FurtherScattering& further, SolvedCase& solved, Progress& progress) {
  const bool iterated = further.in_scattering != nullptr;
  if (deck.control.broadening != Broadening::kSymmetric || (iterated && !further.symmetric)) {
    solved.run.warnings.push_back(
        "wires are computed in relaxation-time approximation only: beyond it they need broadening "
        "= symmetric, and with 'four_phonon_iteration' exact_weights = .true. and "
        "omega_floor_4ph = 0");
    return;
  }
  WireScattering scattering{.relaxation_per_ps = further.rate_per_ps, .iterated_along = nullptr};
  if (iterated)
    scattering.iterated_along = [&](const Symmetry& along) {
      return iterated_with(along, deck, devices, solved.run, *solved.four_phonon, progress);
    };
  solved.derived->wires =
      converged_wires(deck, deck.third_order, solved.run, scattering, devices.front(), progress);
}

void warn_of_idle_isotope_factors(const Control& control, ConductivityRun& run) {
  const auto& isotopes = run.isotope_per_ps;
  if (!control.isotope_factors.empty() &&
      std::all_of(isotopes.begin(), isotopes.end(), [](double rate) { return rate == 0.0; }))
    run.warnings.push_back(
        "'isotope_factors' change nothing: no atom scatters by its isotopes (all 'gfactors' are "
        "0)");
}

/// Measures the error of mixed precision where the deck asks for it.
void add_precision(const Deck& deck, const ThreePhononProblem& problem, const Device& device,
                   SolvedCase& solved) {
  if (deck.control.precision == Precision::kMixed)
    solved.precision = measure_precision(deck, problem, solved.run, device);
  if (solved.four_phonon && solved.four_phonon->precision_errors)
    solved.precision_4ph = measure_precision_4ph(solved.run, solved.four_phonon->rates,
                                                 *solved.four_phonon->precision_errors);
}

}  // namespace

SolvedCase solve_case(const Deck& deck, const std::vector<Device>& devices, Ranks& ranks,
                      const std::filesystem::path& checkpoint_directory, Progress& progress) {
  const Control& control = deck.control;
  SolvedCase solved;
  // Three phonons use the first device; the others start while three phonons are summed.
  DeviceStart other_devices(deck.fourth_order
                                ? std::vector<Device>(devices.begin() + 1, devices.end())
                                : std::vector<Device>{});
  solved.run = start_run(deck, progress);
  for (const std::string& warning : solved.run.warnings) progress.log("warning: " + warning);
  if (control.only_harmonic) return solved;
  require_transport(deck, solved.run.modes);
  const std::filesystem::path own_directory =
      ranks.leads() ? checkpoint_directory : std::filesystem::path{};
  const auto kernels = share_three_phonons(devices, ranks);
  ThreePhononProblem problem =
      make_three_phonon_problem(deck.crystal, deck.third_order, deck.symmetry, solved.run.modes,
                                control.three_phonon_options());
  add_scattering(deck, *kernels, problem, solved.run, progress, {devices, own_directory});
  if (devices.size() > 1) solved.run.seconds["start_devices"] = other_devices.wait();
  if (deck.fourth_order)
    solved.four_phonon =
        run_four_phonon(deck, devices, ranks, solved.run, checkpoint_directory, progress);
  const FurtherScattering further =
      solved.four_phonon ? solved.four_phonon->further : FurtherScattering{};
  // Built in place: a checkpoint does not move.
  solved.checkpoint.reset(
      new Checkpoint(open_checkpoint({own_directory, control.checkpoint_interval_s}, progress)));
  if (solved.four_phonon && solved.four_phonon->collision)
    solved.four_phonon->collision->keep_in(*solved.checkpoint,
                                           control.checkpoint_limit_mib * 1048576.0);
  const RunSite site{progress, solved.checkpoint.get(), ranks};
  add_conductivity(deck, *kernels, further, solved.run, site);
  if (control.samples_rates_3ph() || control.samples_rates_4ph()) add_kappa_errors(deck, solved);
  add_precision(deck, problem, devices.front(), solved);
  solved.derived = derive(deck, problem.fc3, solved.run);
  if (control.nanowires && control.converge)
    add_converged_wires(deck, devices, further, solved, progress);
  warn_of_idle_isotope_factors(control, solved.run);
  solved.derived->sweep = run_sweep(deck, *kernels, further, solved.run, site);
  return solved;
}

}  // namespace quasi::thermal
