#include "workers/thermal/solver/transport/conductivity_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/control/namelist_section.hpp"
#include "workers/thermal/solver/harmonic/isotope.hpp"
#include "workers/thermal/solver/three_phonon/remembered_operator.hpp"
#include "workers/thermal/solver/three_phonon/sampling_3ph.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/thermal/solver/transport/kappa_error.hpp"
#include "workers/thermal/solver/transport/subspace_conductivity.hpp"

namespace quasi::thermal {
namespace {

/// Adds the time of its scope to one phase of a run.
class PhaseTimer {
 public:
  PhaseTimer(ConductivityRun& run, const char* phase) : run_(run), phase_(phase) {}
  ~PhaseTimer() {
    run_.seconds[phase_] +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  ConductivityRun& run_;
  const char* phase_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void check_finite(const std::vector<double>& values, const char* what) {
  for (const double value : values)
    if (!std::isfinite(value))
      throw NotConverged(std::string(what) +
                         " gave a number that is not finite; check the numbers and the units of "
                         "the third-order force constants");
}

void average_degenerate_3ph(const Modes& modes, const std::vector<std::int32_t>& points,
                            ThreePhononRates& rates) {
  const std::size_t n_rows = points.size() * static_cast<std::size_t>(modes.n_branches);
  for (auto* values :
       {&rates.absorption_per_ps, &rates.emission_per_ps, &rates.normal_absorption_per_ps,
        &rates.normal_emission_per_ps, &rates.weighted_absorption_ps4, &rates.weighted_emission_ps4,
        &rates.phase_space_absorption_ps, &rates.phase_space_emission_ps})
    for (std::size_t at = 0; at < values->size(); at += n_rows)
      average_over_subspaces(modes, points, 1, values->data() + at);
  for (auto* values : {&rates.absorption_error_per_ps, &rates.emission_error_per_ps})
    for (std::size_t at = 0; at < values->size(); at += n_rows)
      average_errors_over_subspaces(modes, points, values->data() + at);
}

/// Puts sampled rates into run.three_phonon. Where only draws of phase spaces are asked for, it
/// replaces the phase spaces alone.
void sample_three_phonons(const Transport& transport, const RateOptions& options,
                          const ThreePhononProblem& problem, ConductivityRun& run,
                          const SamplingSite& site) {
  constexpr std::int64_t kFirstDraws = 32;  // by weight, where only an error is asked for
  constexpr std::int64_t kFirstUniform = 10000;
  const SamplingOptions& sampling = options.three_phonon_sampling;
  const std::vector<double>& temperatures_k = transport.options.temperatures_k;
  std::vector<std::unique_ptr<SamplingKernels3>> owned;
  std::vector<SamplingKernels3*> kernels;
  for (const Device& device : site.devices) {
    owned.push_back(make_sampling_kernels_3ph(device));
    kernels.push_back(owned.back().get());
    kernels.back()->load(problem, temperatures_k);
  }
  Sampler3 sampler(problem, temperatures_k, kernels, sampling.seed,
                   {site.checkpoint_directory, options.checkpoint_interval_s}, site.progress);
  if (!sampling.enabled) {
    ThreePhononRates drawn = sampler.uniform(0, sampling.phase_space_draws);
    run.three_phonon.weighted_absorption_ps4 = std::move(drawn.weighted_absorption_ps4);
    run.three_phonon.weighted_emission_ps4 = std::move(drawn.weighted_emission_ps4);
    run.three_phonon.phase_space_absorption_ps = std::move(drawn.phase_space_absorption_ps);
    run.three_phonon.phase_space_emission_ps = std::move(drawn.phase_space_emission_ps);
    run.three_phonon.n_absorption = drawn.n_absorption;
    run.three_phonon.n_emission = drawn.n_emission;
    return;
  }
  const auto good_enough = [&](const ThreePhononRates& rates) {
    if (!(sampling.target_kappa_error > 0.0)) return true;
    run.three_phonon = rates;
    if (transport.options.harmonic.average_degenerate)
      average_degenerate_3ph(run.modes, transport.symmetry.irreducible, run.three_phonon);
    double worst = 0.0;
    for (std::size_t t = 0; t < temperatures_k.size(); ++t)
      worst = std::max(worst, relative_kappa_error(transport, run, t, {}, [&](std::int64_t row) {
                         return run.three_phonon.error_per_ps(t, row);
                       }));
    site.progress.metric("kappa_relative_error", worst);
    return worst <= sampling.target_of_order;
  };
  if (sampling.estimator == Sampling::kByWeight) {
    run.three_phonon =
        sampler.by_weight(sampling.draws > 0 ? sampling.draws : kFirstDraws, good_enough);
    return;
  }
  for (std::int64_t draws = sampling.draws > 0 ? sampling.draws : kFirstUniform;; draws *= 2) {
    ThreePhononRates rates =
        sampler.uniform(draws, sampling.phase_space_draws > 0 ? sampling.phase_space_draws : draws);
    const bool enough = good_enough(rates);
    run.three_phonon = std::move(rates);
    if (enough) return;
    if (draws > (std::int64_t{1} << 40))
      throw NotConverged(
          "uniform sampling of three phonons does not reach 'target_kappa_error' = " +
          std::to_string(sampling.target_kappa_error) + "; use sampling = by-weight");
  }
}

}  // namespace

ConductivityRun start_run(const LatticeModel& model, const HarmonicOptions& options,
                          Progress& progress) {
  ConductivityRun run;
  PhaseTimer timer(run, "harmonic");
  run.modes = solve_harmonic(model.crystal, model.second_order, model.symmetry, options, progress);
  if (!options.compat) set_subspace_velocities(model, options, run.modes);
  run.warnings = model.warnings;
  run.warnings.insert(run.warnings.end(), run.modes.warnings.begin(), run.modes.warnings.end());
  return run;
}

// If k_BT is below the width of δ, occupations change by more than e within the width. Processes
// that miss the energy shell then count for more than those on it, and the two forms of the Bose
// factors, equal on the shell, lead to different κ.
void warn_of_cold(const TransportOptions& options, double scale_broad, ConductivityRun& run) {
  const double coldest_k =
      *std::min_element(options.temperatures_k.begin(), options.temperatures_k.end());
  const double thermal_rad_ps = coldest_k / options.constants().hbar_over_kb_k_ps();
  const HarmonicOptions& harmonic = options.harmonic;
  const bool fixed = harmonic.broadening == Broadening::kFixed;
  const bool tetrahedra = harmonic.broadening == Broadening::kTetrahedra;
  const double sigma = fixed
                           ? harmonic.fixed_sigma_rad_ps
                           : typical_sigma_rad_ps(run.modes, scale_broad, options.omega_max_rad_ps);
  const std::string smaller = tetrahedra ? ""
                              : fixed    ? ", a smaller 'sigma_thz'"
                                         : ", a smaller 'scalebroad'";
  if (thermal_rad_ps < sigma)
    run.warnings.push_back("at 'T' = " + number_text(coldest_k) +
                           " K k_BT = " + number_text(thermal_rad_ps) +
                           " rad/ps is below the typical width σ = " + number_text(sigma) +
                           " rad/ps: energy is not conserved to within k_BT, and κ there is that "
                           "of the width; use a finer 'ngrid'" +
                           smaller + " or a higher 'T'");
}

void add_scattering(const Transport& transport, const RateOptions& options,
                    ThreePhononSums& kernels, ThreePhononProblem& problem, ConductivityRun& run,
                    const SamplingSite& site) {
  const HarmonicOptions& harmonic = transport.options.harmonic;
  const std::vector<std::int32_t>& points = transport.symmetry.irreducible;
  if (options.isotopes) {
    PhaseTimer timer(run, "isotopes");
    run.isotope_per_ps = isotope_rates_per_ps(
        transport.crystal, transport.symmetry, run.modes,
        ElasticDelta(transport.crystal, transport.symmetry.mesh, run.modes, harmonic),
        transport.options.omega_max_rad_ps);
    if (harmonic.average_degenerate)
      average_over_subspaces(run.modes, points, 1, run.isotope_per_ps.data());
  }
  if (options.boundary_length_nm > 0.0)
    run.boundary_per_ps = boundary_rates_per_ps(transport, options.boundary_length_nm);
  {
    PhaseTimer timer(run, "load_3ph");
    kernels.load(problem);
  }
  {
    PhaseTimer timer(run, "scattering_3ph");
    const SamplingOptions& sampling = options.three_phonon_sampling;
    if (!sampling.enabled)
      run.three_phonon = kernels.rates(transport.options.temperatures_k,
                                       transport.options.iteration.enabled, site.progress);
    if (sampling.enabled || sampling.phase_space_draws > 0)
      sample_three_phonons(transport, options, problem, run, site);
  }
  const ThreePhononRates& rates = run.three_phonon;
  if (harmonic.average_degenerate) average_degenerate_3ph(run.modes, points, run.three_phonon);
  check_finite(rates.absorption_per_ps, "three-phonon absorption");
  check_finite(rates.emission_per_ps, "three-phonon emission");
}

namespace {

/// κ at one temperature of a run.
class TemperatureStep {
 public:
  TemperatureStep(std::size_t t, const BteTerms& terms, ConductivityRun& run, const RunSite& site)
      : t_(t),
        transport_(terms.transport),
        third_order_(terms.third_order),
        kernels_(terms.three_phonon),
        further_(terms.further),
        run_(run),
        site_(site),
        n_rows_(static_cast<std::size_t>(transport_.n_rows())) {
    result_.temperature_k = transport_.options.temperatures_k[t];
  }

  TemperatureResult solve() {
    add_rates();
    relax();
    if (transport_.options.iteration.enabled) iterate();
    return std::move(result_);
  }

 private:
  bool has_own_diagonal() const { return further_.in_scattering && further_.diagonal_per_ps; }

  /// Rate of the scattering that is not iterated, 1/ps.
  double fixed_per_ps(std::size_t row) const {
    double rate = 0.0;
    if (!run_.isotope_per_ps.empty()) rate += run_.isotope_per_ps[row];
    if (!run_.boundary_per_ps.empty()) rate += run_.boundary_per_ps[row];
    if (!further_.rate_per_ps.empty() && !has_own_diagonal())
      rate += further_.rate_per_ps[t_ * n_rows_ + row];
    return rate;
  }

  void add_rates() {
    result_.rate_per_ps.resize(n_rows_);
    for (std::size_t row = 0; row < n_rows_; ++row) {
      const std::size_t at = t_ * n_rows_ + row;
      result_.rate_per_ps[row] = run_.three_phonon.absorption_per_ps[at] +
                                 run_.three_phonon.emission_per_ps[at] + fixed_per_ps(row);
      if (!further_.rate_per_ps.empty() && has_own_diagonal())
        result_.rate_per_ps[row] += further_.rate_per_ps[at];
    }
  }

  static void add_tensor(Mat3& sum, const Mat3& term) {
    for (int i = 0; i < 3; ++i) sum[i] = sum[i] + term[i];
  }

  /// Adds the heat that branches carry inside degenerate subspaces to κ of the mean velocities.
  std::vector<Mat3> with_subspaces(std::vector<Mat3> kappa) const {
    for (std::size_t row = 0; row < kappa.size(); ++row)
      add_tensor(kappa[row], result_.mode_kappa_subspace[row]);
    return kappa;
  }

  /// Fills in the relaxation-time approximation.
  void relax() {
    PhaseTimer timer(run_, "conductivity");
    const double temperature_k = result_.temperature_k;
    result_.field_rta = relaxation_time_field(transport_, result_.rate_per_ps);
    result_.mode_kappa_subspace =
        subspace_conductivity(transport_, temperature_k, result_.rate_per_ps);
    result_.kappa_subspace_w_per_mk = total(result_.mode_kappa_subspace);
    result_.mode_kappa_rta =
        with_subspaces(mode_conductivity(transport_, temperature_k, result_.field_rta));
    result_.kappa_rta_w_per_mk = total(result_.mode_kappa_rta);
    result_.heat_capacity_j_m3_k = heat_capacity_j_m3_k(transport_, temperature_k);
    result_.small_grain_w_per_mk_nm = small_grain_w_per_mk_nm(transport_, temperature_k);
  }

  /// Digest of the operator, which identifies it in a checkpoint. The rates depend on everything
  /// that the operator depends on.
  std::uint64_t operator_digest(bool symmetric) const {
    ProblemDigest digest;
    digest.add(result_.temperature_k);
    digest.add(symmetric ? 1.0 : 0.0);
    digest.add(transport_.options.harmonic.compat ? 1.0 : 0.0);
    for (const std::vector<double>* values : std::initializer_list<const std::vector<double>*>{
             &result_.rate_per_ps, &run_.modes.omega_rad_ps, &run_.three_phonon.absorption_per_ps,
             &run_.three_phonon.emission_per_ps, &further_.rate_per_ps})
      digest.add(*values);
    digest.add(third_order_.tensor);
    return digest.value();
  }

  /// Makes `apply` keep its results in the checkpoint, if there is one.
  FieldOperator kept(const char* name, std::uint64_t digest, FieldOperator apply) const {
    return site_.checkpoint != nullptr
               ? remembered(*site_.checkpoint, name, digest, std::move(apply), site_.ranks)
               : apply;
  }

  /// The diagonal that belongs to the symmetric off-diagonal part.
  std::vector<double> symmetric_diagonal(std::uint64_t digest) const {
    std::vector<double> diagonal =
        kernels_.row_rates(result_.temperature_k, OccupationForm::kSymmetric);
    if (transport_.options.harmonic.average_degenerate)
      average_over_subspaces(run_.modes, transport_.symmetry.irreducible, 1, diagonal.data());
    std::vector<double> more;
    // This diagonal is kept too, so that a finished iteration is replayed without building it.
    if (has_own_diagonal())
      more = kept("out-scattering", digest,
                  [&](const std::vector<double>&) { return further_.diagonal_per_ps(t_); })({});
    for (std::size_t row = 0; row < n_rows_; ++row)
      diagonal[row] += fixed_per_ps(row) + (more.empty() ? 0.0 : more[row]);
    return diagonal;
  }

  void iterate() {
    PhaseTimer timer(run_, "iterate");
    const bool symmetric = has_symmetric_width(transport_.options.harmonic.broadening) &&
                           (!further_.in_scattering || further_.symmetric);
    const OccupationForm form =
        symmetric ? OccupationForm::kSymmetric : OccupationForm::kDifferences;
    const std::uint64_t digest = site_.checkpoint != nullptr ? operator_digest(symmetric) : 0;
    CollisionOperator collision{
        .diagonal_per_ps = result_.rate_per_ps, .in_scattering = {}, .symmetric = symmetric};
    if (symmetric) collision.diagonal_per_ps = symmetric_diagonal(digest);
    collision.in_scattering = kept("in-scattering", digest, [&](const std::vector<double>& f) {
      std::vector<double> out = kernels_.apply_collision(result_.temperature_k, form, f);
      if (further_.in_scattering) {
        const std::vector<double> more = further_.in_scattering(t_, f);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] += more[i];
      }
      return out;
    });
    result_.solution = solve_bte(transport_, result_.temperature_k, collision, site_.progress);
    result_.mode_kappa =
        with_subspaces(mode_conductivity(transport_, result_.temperature_k, result_.solution.f));
    for (Mat3& kappa : result_.solution.kappa_history_w_per_mk)
      add_tensor(kappa, result_.kappa_subspace_w_per_mk);
    result_.kappa_w_per_mk = total(result_.mode_kappa);
    result_.final_rate_per_ps = final_rates();
    result_.converged = true;
  }

  /// Largest square of the group velocity of a row that conducts, (km/s)².
  double largest_square_of_velocity() const {
    double largest = 0.0;
    for (std::int64_t row = 0; row < transport_.n_rows(); ++row) {
      if (!transport_.conducts(row)) continue;
      const double* v =
          &run_.modes.velocity_km_s[static_cast<std::size_t>(transport_.mode_of_row(row) * 3)];
      largest = std::max(largest, v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    }
    return largest;
  }

  /// ω v²/(F·v), the rate that gives the F of a row along its velocity. Rows whose velocity
  /// vanishes by symmetry have no such rate and get 0, because the quotient would be one of
  /// rounding errors.
  std::vector<double> final_rates() const {
    std::vector<double> rates(n_rows_, 0.0);
    const double vanishing = 1e-16 * largest_square_of_velocity();
    for (std::int64_t row = 0; row < transport_.n_rows(); ++row) {
      if (!transport_.conducts(row)) continue;
      const std::int64_t mode = transport_.mode_of_row(row);
      const double* v = &run_.modes.velocity_km_s[static_cast<std::size_t>(mode * 3)];
      const double* f = &result_.solution.f[static_cast<std::size_t>(row * 3)];
      const double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
      const double along = f[0] * v[0] + f[1] * v[1] + f[2] * v[2];
      if (square > vanishing && along != 0.0)
        rates[row] = run_.modes.omega_rad_ps[mode] * square / along;
    }
    return rates;
  }

  std::size_t t_;
  const Transport& transport_;
  const SparseForceConstants& third_order_;
  ThreePhononSums& kernels_;
  const FurtherScattering& further_;
  ConductivityRun& run_;
  const RunSite& site_;
  std::size_t n_rows_;
  TemperatureResult result_;
};

}  // namespace

TemperatureResult conductivity_at(std::size_t t, const BteTerms& terms, ConductivityRun& run,
                                  const RunSite& site) {
  return TemperatureStep(t, terms, run, site).solve();
}

void add_conductivity(const BteTerms& terms, ConductivityRun& run, const RunSite& site) {
  for (std::size_t t = 0; t < terms.transport.options.temperatures_k.size(); ++t)
    run.by_temperature.push_back(conductivity_at(t, terms, run, site));
}

double sheet_factor(const Crystal& crystal, const SheetOptions& options) {
  if (!(options.thickness_nm > 0.0)) return 1.0;
  const int axis = options.axis - 1;
  const Mat3& a = crystal.lattice_nm;
  const double area = length(cross(a[(axis + 1) % 3], a[(axis + 2) % 3]));
  return crystal.volume_nm3() / area / options.thickness_nm;
}

}  // namespace quasi::thermal
