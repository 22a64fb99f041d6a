#include "workers/thermal/solver/calculation/solve_case.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "workers/backend/error.hpp"
#include "workers/backend/team/every_device.hpp"
#include "workers/thermal/solver/calculation/case_checks.hpp"
#include "workers/thermal/solver/four_phonon/four_phonon_start.hpp"
#include "workers/thermal/solver/three_phonon/running_sums.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/thermal/solver/three_phonon/shared_sums_3ph.hpp"
#include "workers/thermal/solver/transport/derivative/fourth_order_derivative.hpp"
#include "workers/thermal/solver/transport/derivative/kappa_derivative.hpp"
#include "workers/thermal/solver/transport/kappa_error.hpp"

namespace quasi::thermal {

ConductivityRun start_case(const LatticeModel& model, const CaseOptions& options,
                           Progress& progress) {
  ConductivityRun run = start_run(model, options.transport.harmonic, progress);
  if (!options.only_harmonic) warn_of_cold(options.transport, options.scale_broad(), run);
  return run;
}

void require_transport(const LatticeModel& model, const CaseOptions& options, const Modes& modes) {
  if (options.only_harmonic) return;
  const Transport transport{model.crystal, model.symmetry, modes, options.transport};
  constexpr double kVanishing_km_s = 1e-6;
  bool any_active = false;
  for (std::int64_t row = 0; row < transport.n_rows(); ++row)
    if (transport.conducts(row) && transport.speed_km_s(row) > kVanishing_km_s) return;
  for (std::int64_t row = 0; row < transport.n_rows(); ++row) any_active |= transport.conducts(row);
  if (any_active)
    throw InvalidInput(
        "'ngrid': every mode of this mesh has zero velocity by symmetry, so κ would be 0; a mesh "
        "of two divisions holds Γ and points of the zone boundary alone; use at least 4 divisions");
  throw InvalidInput(modes.n_q == 1
                         ? "'ngrid' = 1 1 1 holds Γ alone, where no mode carries heat; use a finer "
                           "mesh"
                         : "no mode carries heat: 'omega_max' = " +
                               std::to_string(options.transport.omega_max_rad_ps) +
                               " rad/ps lies below every frequency; raise it");
}

namespace {

/// Standard error of κ at every temperature, from the errors of sampled rates of both orders.
void add_kappa_errors(const Transport& transport, SolvedCase& solved) {
  const Rates4ph* four = solved.four_phonon ? &solved.four_phonon->rates : nullptr;
  for (std::size_t t = 0; t < transport.options.temperatures_k.size(); ++t) {
    const auto temperature = static_cast<int>(t);
    solved.run.kappa_relative_error.push_back(relative_kappa_error(
        transport, solved.run, t,
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
void add_converged_wires(const LatticeModel& model, const CaseOptions& options,
                         const std::vector<Device>& devices, SolvedCase& solved,
                         Progress& progress) {
  const FurtherScattering further =
      solved.four_phonon ? solved.four_phonon->further : FurtherScattering{};
  const bool iterated = further.in_scattering != nullptr;
  if (!has_symmetric_width(options.three_phonon.broadening) || (iterated && !further.symmetric)) {
    solved.run.warnings.push_back(
        "wires are computed in relaxation-time approximation only: beyond it they need broadening "
        "= symmetric or fixed, and with 'four_phonon_iteration' exact_weights = .true. and "
        "omega_floor_4ph = 0");
    return;
  }
  const Transport transport{model.crystal, model.symmetry, solved.run.modes, options.transport};
  WireScattering scattering{.three_phonon = options.three_phonon,
                            .relaxation_per_ps = further.rate_per_ps,
                            .iterated_along = nullptr};
  if (iterated)
    scattering.iterated_along = [&](const Symmetry& along) {
      return iterated_with(along, transport, *model.fourth_order, devices, *solved.four_phonon,
                           progress);
    };
  solved.derived->wires = converged_wires(transport, model.third_order, solved.run, scattering,
                                          devices.front(), progress);
}

void warn_of_idle_isotope_factors(const SweepOptions& sweep, ConductivityRun& run) {
  const auto& isotopes = run.isotope_per_ps;
  if (!sweep.isotope_factors.empty() &&
      std::all_of(isotopes.begin(), isotopes.end(), [](double rate) { return rate == 0.0; }))
    run.warnings.push_back(
        "'isotope_factors' change nothing: no atom scatters by its isotopes (all 'gfactors' are "
        "0)");
}

/// Measures the error of mixed precision where the options ask for it.
void add_precision(const CaseOptions& options, const ThreePhononProblem& problem,
                   const Device& device, SolvedCase& solved) {
  if (options.three_phonon.precision == Precision::kMixed)
    solved.precision = measure_precision(options.transport, problem, solved.run, device);
  if (solved.four_phonon && solved.four_phonon->precision_errors)
    solved.precision_4ph = measure_precision_4ph(solved.run, solved.four_phonon->rates,
                                                 *solved.four_phonon->precision_errors);
}

/// Opens the checkpoint of the iteration and lets the collision operator of four phonons keep its
/// sums in it.
void open_iteration_checkpoint(const CaseOptions& options,
                               const std::filesystem::path& own_directory, SolvedCase& solved,
                               Progress& progress) {
  // The checkpoint is built in place, because it cannot be moved.
  solved.checkpoint.reset(
      new Checkpoint(open_checkpoint({own_directory, options.checkpoint_interval_s}, progress)));
  if (solved.four_phonon && solved.four_phonon->collision)
    solved.four_phonon->collision->keep_in(*solved.checkpoint,
                                           options.collision_checkpoint_limit_bytes);
}

/// Makes the checks of `validate` that take milliseconds.
void add_checks(const LatticeModel& model, const CaseOptions& options, SolvedCase& solved) {
  const auto start = std::chrono::steady_clock::now();
  solved.checks = check_case(model, options, solved.run);
  if (!options.only_harmonic) {
    ThreePhononProblem problem = make_three_phonon_problem(
        model.crystal, model.third_order, model.symmetry, solved.run.modes, options.three_phonon);
    const Transport transport{model.crystal, model.symmetry, solved.run.modes, options.transport};
    check_broadening(transport, options.checks, solved.run, problem, solved.checks);
  }
  solved.run.seconds["checks"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns κ at every temperature without four phonons, from the same three-phonon processes. It
/// keeps nothing in the checkpoint.
std::vector<LevelConductivity> without_four_phonons(const BteTerms& terms, ConductivityRun& run,
                                                    const RunSite& site) {
  const FurtherScattering none;
  const BteTerms alone{terms.transport, terms.third_order, terms.three_phonon, none};
  std::vector<LevelConductivity> levels;
  for (std::size_t t = 0; t < terms.transport.options.temperatures_k.size(); ++t)
    levels.push_back(
        level_of(conductivity_at(t, alone, run, {site.progress, nullptr, site.ranks})));
  return levels;
}

constexpr double kThird = 1.0 / 3.0;
constexpr Mat3 kMean{Vec3{kThird, 0, 0}, Vec3{0, kThird, 0}, Vec3{0, 0, kThird}};

/// Differentiates the mean diagonal element of κ at every temperature, iterated where it is.
void add_derivatives(const Transport& transport, const ThreePhononProblem& problem,
                     SolvedCase& solved) {
  const auto start = std::chrono::steady_clock::now();
  for (const TemperatureResult& result : solved.run.by_temperature)
    solved.kappa_derivative.push_back(kappa_derivative(
        {transport, problem, result},
        result.converged ? KappaSolution::kIterated : KappaSolution::kRelaxationTime, kMean));
  solved.run.seconds["derivative"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Differentiates it by the fourth order.
void add_fourth_order_derivatives(const Transport& transport, const ThreePhononProblem& problem,
                                  const SparseForceConstants& fourth_order, SolvedCase& solved) {
  const auto start = std::chrono::steady_clock::now();
  int temperature = 0;
  for (const TemperatureResult& result : solved.run.by_temperature)
    solved.kappa_derivative_4ph.push_back(fourth_order_derivative(
        {transport, problem, result}, {solved.four_phonon->problem, temperature++, fourth_order},
        result.converged ? KappaSolution::kIterated : KappaSolution::kRelaxationTime, kMean));
  solved.run.seconds["derivative_4ph"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

LevelConductivity level_of(const TemperatureResult& result) {
  return {result.kappa_rta_w_per_mk,
          result.converged ? std::optional(result.kappa_w_per_mk) : std::nullopt};
}

SolvedCase solve_case(const LatticeModel& model, const CaseOptions& options, const CaseSite& site,
                      Progress& progress) {
  const std::vector<Device>& devices = site.devices;
  SolvedCase solved;
  // Three phonons use the first device; the others start while three phonons are summed.
  DeviceStart other_devices(model.fourth_order
                                ? std::vector<Device>(devices.begin() + 1, devices.end())
                                : std::vector<Device>{});
  solved.run = start_case(model, options, progress);
  require_transport(model, options, solved.run.modes);
  add_checks(model, options, solved);
  if (options.only_harmonic) return solved;
  const std::filesystem::path own_directory =
      site.ranks.leads() ? site.checkpoint_directory : std::filesystem::path{};
  const Transport transport{model.crystal, model.symmetry, solved.run.modes, options.transport};
  std::optional<FourPhononStart> four_phonons;
  if (model.fourth_order)
    four_phonons.emplace(transport, *model.fourth_order, options.four_phonon, devices,
                         FourPhononStart::may_begin_early(devices));
  const auto kernels = share_three_phonons(devices, site.ranks);
  ThreePhononProblem problem = make_three_phonon_problem(
      model.crystal, model.third_order, model.symmetry, solved.run.modes, options.three_phonon);
  add_scattering(transport, options.rates, *kernels, problem, solved.run,
                 {progress, devices, own_directory});
  if (devices.size() > 1) solved.run.seconds["start_devices"] = other_devices.wait();
  if (four_phonons)
    solved.four_phonon =
        run_four_phonon(transport, *four_phonons, {devices, site.ranks, site.checkpoint_directory},
                        solved.run, progress);
  const FurtherScattering further =
      solved.four_phonon ? solved.four_phonon->further : FurtherScattering{};
  open_iteration_checkpoint(options, own_directory, solved, progress);
  const RunSite run_site{progress, solved.checkpoint.get(), site.ranks};
  const BteTerms terms{transport, model.third_order, *kernels, further};
  add_conductivity(terms, solved.run, run_site);
  check_result(model, options, solved.run, solved.checks);
  if (options.derivative && site.ranks.leads()) add_derivatives(transport, problem, solved);
  if (options.derivative_fourth_order && site.ranks.leads())
    add_fourth_order_derivatives(transport, problem, *model.fourth_order, solved);
  if (options.three_phonons_alone && solved.four_phonon)
    solved.three_phonons_alone = without_four_phonons(terms, solved.run, run_site);
  if (options.rates.three_phonon_sampling.enabled || options.four_phonon.sampling.enabled)
    add_kappa_errors(transport, solved);
  add_precision(options, problem, devices.front(), solved);
  solved.derived = derive(transport, model.second_order, problem.fc3, solved.run);
  if (options.transport.wires.enabled && options.transport.iteration.enabled)
    add_converged_wires(model, options, devices, solved, progress);
  warn_of_idle_isotope_factors(options.transport.sweep, solved.run);
  solved.derived->sweep = run_sweep(terms, solved.run, run_site);
  return solved;
}

}  // namespace quasi::thermal
