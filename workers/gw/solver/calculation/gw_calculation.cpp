#include "workers/gw/solver/calculation/gw_calculation.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <future>
#include <iterator>

#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/calculation/cost_estimate.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"
#include "workers/gw/solver/self_energy/sigma_stage.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

/// Adds the time from its making to its end to one phase.
class PhaseClock {
 public:
  explicit PhaseClock(double* seconds)
      : seconds_(seconds), start_(std::chrono::steady_clock::now()) {}
  ~PhaseClock() {
    *seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

 private:
  double* seconds_;
  std::chrono::steady_clock::time_point start_;
};

constexpr int kContinuationPoints = 16;  // of Σ(μ + iω); more only fit rounding
constexpr double kContinuationScale_ry = 1.0;
constexpr double kBroadeningAtZero_ev =
    1e-4;  // ε⁻¹(ω = 0) is real; its broadening only guards the division.

bool same_points(const Vec3& a, const Vec3& b, double tolerance) {
  const Vec3 d = a - b;
  return std::abs(d[0]) + std::abs(d[1]) + std::abs(d[2]) < tolerance;
}

/// Largest |E − E_n| at which ε⁻¹ is needed on the real axis, eV: residues lie between E and the
/// gap; the real-axis form wants the whole spectrum, transitions and plasmons.
/// @param matrix_margin_ry  by which the energies of the full matrix exceed the states', 0 without
/// it
double largest_real_frequency_ev(const MeanField& field, const SigmaOptions& s,
                                 double matrix_margin_ry) {
  double needed = 0.0;
  const auto [first, last] = std::minmax_element(s.offsets_ry.begin(), s.offsets_ry.end());
  const double low = std::min(*first, -matrix_margin_ry), high = std::max(*last, matrix_margin_ry);
  for (int spin = 0; spin < field.n_spins(); ++spin) {
    const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
    double top = -1e300, bottom = 1e300, highest = -1e300, lowest = 1e300;
    for (int ik = 0; ik < field.waves.n_k(); ++ik) {
      top = std::max(top, field.waves.energy(spin, ik, n_v - 1));
      bottom = std::min(bottom, field.waves.energy(spin, ik, n_v));
      lowest = std::min(lowest, field.waves.energy(spin, ik, 0));
      highest = std::max(highest, field.waves.energy(spin, ik, s.bands - 1));
    }
    if (s.method == SigmaMethod::kRealAxis) {
      const double plasma_ry =
          std::sqrt(16.0 * kPi * field.n_electrons() / field.crystal().volume_bohr3);
      needed = std::max(needed, highest - lowest + plasma_ry);
      continue;
    }
    for (const int ik : s.kpoints) {
      needed = std::max(needed, field.waves.energy(spin, ik, s.band_max - 1) + high - bottom);
      needed = std::max(needed, top - field.waves.energy(spin, ik, s.band_min - 1) - low);
    }
  }
  return needed * kRydberg_ev;
}

/// The real axis 0, step, … up to its end, and the imaginary one, as the deck describes them.
ContourGrid contour_grid(const Deck& deck, double reach_ev) {
  const auto& e = deck.epsilon;
  ContourGrid grid{.imaginary_ry = imaginary_grid(e.imaginary_points, e.imaginary_scale_ry),
                   .real_ry = {},
                   .rule = deck.sigma.imaginary_rule};
  const int n_real = static_cast<int>(std::floor(reach_ev / e.real_step_ev + 1e-9)) + 1;
  for (int i = 0; i < n_real; ++i) grid.real_ry.push_back(i * e.real_step_ev / kRydberg_ev);
  return grid;
}

/// What a list of frequencies in the order of DielectricMatrix::inverse says of its grids.
ContourGrid grid_of_frequencies(const std::vector<Cplx>& frequencies, int n_real,
                                ImaginaryRule rule) {
  ContourGrid grid{.imaginary_ry = {}, .real_ry = {}, .rule = rule};
  const std::size_t n_imaginary = frequencies.size() - static_cast<std::size_t>(n_real);
  for (std::size_t f = 0; f < frequencies.size(); ++f)
    if (f < n_imaginary)
      grid.imaginary_ry.push_back(frequencies[f].imag());
    else
      grid.real_ry.push_back(frequencies[f].real());
  return grid;
}

/// Frequencies of ε⁻¹ that the deck or the method of Σ asks for. The real axis is extended to what
/// Σ needs.
void set_frequencies(const Deck& deck, const MeanField& field, Plan* plan) {
  EpsilonOptions& e = plan->epsilon;
  SigmaOptions& s = plan->sigma;
  if (s.method == SigmaMethod::kImaginaryAxis)
    for (int j = 0; j < kContinuationPoints; ++j) {
      const double t = (j + 0.5) / kContinuationPoints;
      s.contour.continuation_ry.push_back(kContinuationScale_ry * t / (1.0 - t));
    }
  const double broadening = deck.epsilon.broadening_ev / kRydberg_ev,
               at_zero = kBroadeningAtZero_ev / kRydberg_ev;
  if (plan->stored) {
    e.frequencies_ry = plan->stored->frequencies_ry;
    e.n_real = plan->stored->n_real;
    if (uses_frequencies(deck.sigma.method)) {
      if (e.n_real < 2 || e.frequencies_ry.size() - static_cast<std::size_t>(e.n_real) < 4)
        throw InvalidInput(
            "this sigma.method needs ε⁻¹ on a real and an imaginary axis; the stored files hold " +
            std::to_string(e.n_real) + " real frequencies of " +
            std::to_string(e.frequencies_ry.size()));
      ContourGrid grid = grid_of_frequencies(e.frequencies_ry, e.n_real, deck.sigma.imaginary_rule);
      grid.continuation_ry = s.contour.continuation_ry;
      s.contour = std::move(grid);
    }
    if (deck.sigma.method == SigmaMethod::kGodbyNeeds) {
      if (e.frequencies_ry.size() < 2 || !(e.frequencies_ry[1].imag() > 0.0) ||
          e.frequencies_ry[1].real() != 0.0)
        throw InvalidInput(
            "sigma.method = \"gn-gpp\" needs ε⁻¹ at 0 and at one imaginary frequency, which the "
            "stored files lack");
      s.godby_needs_ry = e.frequencies_ry[1].imag();
    }
    return;
  }
  const FrequencySet asked = deck.epsilon.frequencies;
  const bool contour = uses_frequencies(deck.sigma.method) && !deck.stop_after_epsilon;
  const bool needs_pair = deck.sigma.method == SigmaMethod::kGodbyNeeds && !deck.stop_after_epsilon;
  if (needs_pair || asked == FrequencySet::kGodbyNeeds)
    e.frequencies_ry.push_back({0.0, s.godby_needs_ry});
  double reach_ev = deck.epsilon.real_max_ev;
  const double needed_ev =
      contour && s.method != SigmaMethod::kImaginaryAxis
          ? largest_real_frequency_ev(field, s,
                                      deck.sigma.full_matrix ? deck.sigma.matrix.margin_ry : 0.0)
          : 0.0;
  if (needed_ev > reach_ev) {
    plan->notes.push_back("epsilon.real_max_ev = " + shown(reach_ev) +
                          " ends below the energies that Σ needs");
    reach_ev = std::ceil(needed_ev / deck.epsilon.real_step_ev) * deck.epsilon.real_step_ev;
    plan->notes.back() += "; the real axis reaches " + shown(reach_ev) + " eV";
  }
  ContourGrid grid = contour_grid(deck, reach_ev);
  if (s.method == SigmaMethod::kImaginaryAxis && asked == FrequencySet::kAutomatic)
    grid.real_ry.clear();
  grid.continuation_ry = s.contour.continuation_ry;
  if (contour) s.contour = grid;
  if (contour || asked == FrequencySet::kBoth || asked == FrequencySet::kImaginary ||
      asked == FrequencySet::kReal) {
    if (asked == FrequencySet::kImaginary) grid.real_ry.clear();
    if (asked == FrequencySet::kReal) grid.imaginary_ry.resize(1);
    e.frequencies_ry = grid.frequencies_ry(broadening, at_zero);
    e.n_real = static_cast<int>(grid.real_ry.size());
  }
}

/// A field deck's list of q must be the irreducible points of WFN with Γ replaced by a small q₀.
void check_listed_points(const Deck& deck, const MeanField& field) {
  if (deck.epsilon.occupied_bands > 0 && deck.epsilon.occupied_bands != field.n_occupied)
    throw InvalidInput("band_occupation counts " + std::to_string(deck.epsilon.occupied_bands) +
                       " occupied bands, WFN " + std::to_string(field.n_occupied));
  if (deck.epsilon.qpoints.empty()) return;
  for (const Vec3& wanted : screening_points(field)) {
    bool found = false;
    for (const Vec3& q : deck.epsilon.qpoints) found = found || same_points(q, wanted, 1e-5);
    if (!found) {
      char text[80];
      std::snprintf(text, sizeof text, "(%.6f, %.6f, %.6f)", wanted[0], wanted[1], wanted[2]);
      throw InvalidInput(
          std::string("the list of q-points lacks ") + text +
          ", which Σ needs: list the irreducible points of WFN, Γ replaced by q₀ of WFNq");
    }
  }
}

/// Tells jobs apart whose pieces must not be mixed: mean field and every option that enters ε or Σ.
std::uint64_t digest_of(const Calculation& run, const CoulombOptions& coulomb,
                        const Wavefunctions* outer) {
  ProblemDigest d;
  for (const double value : {1.0 * static_cast<int>(coulomb.truncation), coulomb.sphere_radius_bohr,
                             1.0 * static_cast<int>(coulomb.wing_rule)})
    d.add(value);
  d.add(coulomb.average_file.data(), coulomb.average_file.size());
  for (const Wavefunctions* w : {&run.field.waves, outer}) {
    if (w == nullptr) continue;
    for (const Vec3& k : w->k) d.add(k.data(), sizeof k);
    d.add(w->energy_ry);
    for (const KPointWaves& at : w->waves) {
      d.add(at.g.data(), at.g.size() * sizeof(IVec3));
      // The states follow from H, and H shows in the energies; a sample tells gauges apart.
      for (const auto& c : at.coefficients)
        for (std::size_t i = 0; i < c.size(); i += 101) d.add(&c[i], sizeof c[i]);
    }
  }
  for (const auto& rho : run.field.density.values) d.add(rho);
  d.add(run.field.q0.data(), sizeof run.field.q0);
  d.add(run.field.by_velocity ? 3.0 : 0.0);  // directions that pieces of q → 0 hold
  const EpsilonOptions& e = run.plan.epsilon;
  for (const double value : {e.epsilon_cutoff_ry, 1.0 * e.bands, 1.0 * e.n_real,
                             1.0 * static_cast<double>(e.memory_budget_bytes)})
    d.add(value);
  for (const double value : {e.subspace.tolerance, 1.0 * e.subspace.vectors,
                             e.subspace.complement ? 1.0 : 0.0, e.subspace.complement_ry})
    d.add(value);
  d.add(e.frequencies_ry);
  const SigmaOptions& s = run.plan.sigma;
  for (const double value :
       {1.0 * static_cast<int>(s.method), 1.0 * s.bands, s.bare_cutoff_ry, s.screened_cutoff_ry,
        1.0 * s.band_min, 1.0 * s.band_max, 1.0 * static_cast<int>(s.invalid),
        s.rules.half_width_ry, s.rules.max_ratio, s.rules.screened_exchange_cut,
        s.exact_static_ch ? 1.0 : 0.0, s.reduce_q ? 1.0 : 0.0, s.godby_needs_ry,
        s.slope ? 1.0 : 0.0, 1.0 * static_cast<int>(s.contour.rule), s.subspace.tolerance,
        1.0 * s.subspace.vectors})
    d.add(value);
  d.add(s.kpoints);
  d.add(s.offsets_ry);
  d.add(s.contour.imaginary_ry);
  d.add(s.contour.real_ry);
  d.add(s.contour.continuation_ry);
  return d.value();
}

/// The checks of ε⁻¹, by a few threads of the host beside what the devices do.
class ScreeningChecks {
 public:
  explicit ScreeningChecks(const std::vector<DielectricMatrix>& epsilon) : epsilon_(epsilon) {}
  /// Not before W is made: both are bound by the host's memory.
  void start() {
    if (checks_.valid()) return;
    const int threads = std::max(1, omp_get_max_threads() / 4);
    checks_ = std::async(std::launch::async, [this, threads] {
      const PhaseClock clock(&seconds_);
      omp_set_num_threads(threads);
      return check_screening(epsilon_);
    });
  }
  std::vector<SelfCheck> take() {
    start();
    return checks_.get();
  }
  /// Once they are taken.
  double seconds() const { return seconds_; }

 private:
  const std::vector<DielectricMatrix>& epsilon_;
  double seconds_ = 0.0;
  std::future<std::vector<SelfCheck>> checks_;
};

/// The engine's checks of the user's own data; what fails becomes a warning.
void run_self_test(const Deck& deck, const CoulombInteraction& coulomb, DeviceTeam& team,
                   Progress& progress, ScreeningChecks& screening, Calculation& run) {
  if (!deck.self_test) return;
  StepTimes times;
  screening.start();
  if (!deck.stop_after_epsilon)
    run.self_test =
        check_states(run.field, run.epsilon, run.plan.sigma, coulomb, team, progress, &times);
  for (const auto& [step, seconds] : times.seconds()) run.seconds["self_test_" + step] = seconds;
  std::vector<SelfCheck> of_screening = screening.take();
  run.seconds["self_test_screening"] = screening.seconds();
  run.self_test.insert(run.self_test.begin(), std::make_move_iterator(of_screening.begin()),
                       std::make_move_iterator(of_screening.end()));
  for (const SelfCheck& check : run.self_test) {
    if (check.passed()) continue;
    run.plan.notes.push_back("self-test: " + check.name + " = " + shown(*check.value) +
                             " is outside " + shown(check.low) + " … " + shown(check.high) + ": " +
                             check.suspect);
    progress.log(run.plan.notes.back());
  }
}

/// The gap by the sums so far, live; where V_xc is undefined what Σ adds to it.
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

}  // namespace

MeanField load_mean_field(const Deck& deck, GwKernels& kernels, Progress& progress,
                          StepTimes* times) {
  if (deck.mean_field.empirical)
    return empirical_mean_field(deck.mean_field.crystal, kernels, progress, times);
  const auto& files = deck.mean_field;
  std::optional<Wavefunctions> shifted;
  if (!files.wfnq.empty()) shifted = read_wavefunctions(files.wfnq);
  Wavefunctions waves = read_wavefunctions(files.wfn);
  const int wanted = std::max(deck.epsilon.bands, deck.sigma.bands);
  if (wanted > waves.n_bands && !files.vsc.empty()) {
    if (!files.vxc.empty() && !is_fortran_file(files.vxc))
      throw InvalidInput("meanfield.vxc = '" + files.vxc.filename().string() +
                         "' holds matrix elements of other states than the " +
                         std::to_string(wanted) +
                         " that are made from VSC and VKB; give the file VXC itself");
    replace_by_dense_states(waves, wanted, read_field(files.vsc, "VSC"), read_projectors(files.vkb),
                            kernels, progress);
  }
  std::shared_ptr<const RadialProjectors> nonlocal;
  if (files.long_wave != LongWave::kStates && deck.epsilon.stored.gamma.empty()) {
    const Projectors projectors = read_projectors(files.vkb);
    require_same_crystal(waves.header, "WFN", projectors.header, "VKB");
    nonlocal = std::make_shared<const RadialProjectors>(projectors);
    progress.log("q → 0 without WFNq: projectors between the plane waves of VKB are known to " +
                 shown(nonlocal->residual()) + " of their maximum");
    if (nonlocal->residual() > files.max_projector_residual)
      throw InvalidInput("the projectors of VKB are known between its plane waves only to " +
                         shown(nonlocal->residual()) + " of their maximum, more than " +
                         shown(files.max_projector_residual) +
                         " (meanfield.max_projector_residual); give meanfield.wfnq");
    if (files.long_wave == LongWave::kDense)
      shifted = shifted_dense_states(waves, files.q0, read_field(files.vsc, "VSC"), *nonlocal,
                                     kernels, progress);
  }
  MeanField field =
      make_mean_field(std::move(waves), std::move(shifted), read_field(files.rho, "RHO"));
  field.nonlocal = nonlocal;
  // A molecule's interaction is finite at q = 0, where ⟨v|c⟩ = 0: the head is 1 and needs no second
  // set.
  const bool molecule =
      deck.coulomb.truncation == Truncation::kBox || deck.coulomb.truncation == Truncation::kSphere;
  if (molecule && !field.shifted) {
    field.by_velocity = true;
    field.q0 = {1e-6, 0.0, 0.0};
  }
  if (files.long_wave == LongWave::kVelocity) {
    field.by_velocity = true;
    field.q0 = files.q0;
  }
  return field;
}

Plan make_plan(const Deck& deck, const MeanField& screening, std::int64_t memory_budget_bytes,
               const MeanField* outer) {
  Plan plan;
  const MeanField& field = outer != nullptr ? *outer : screening;  // whose states Σ is of
  const auto count = [&](int wanted, const std::string& key, const MeanField& of) {
    // Whether the last band of a file belongs to a multiplet cannot be seen; the built-in crystals
    // have looked. Where every smaller count cuts one for certain, all bands are the better choice.
    const bool top_unknown = wanted == 0 && !deck.mean_field.empirical;
    const int asked = wanted > 0 ? wanted : of.waves.n_bands;
    int used = band_count_without_split(of.waves, asked, of.n_occupied + 1, key);
    for (int n = of.waves.n_bands - 1; top_unknown && n > of.n_occupied; --n) {
      bool splits = false;
      for (int spin = 0; spin < of.n_spins(); ++spin)
        for (int ik = 0; ik < of.waves.n_k(); ++ik)
          splits = splits || std::abs(of.waves.energy(spin, ik, n) -
                                      of.waves.energy(spin, ik, n - 1)) < kDegenerate_ry;
      if (splits) continue;
      used = n;
      break;
    }
    if (used != asked && wanted > 0)
      plan.notes.push_back(key + " = " + std::to_string(asked) + " splits a multiplet; " +
                           std::to_string(used) + " bands are used");
    if (top_unknown)
      plan.notes.push_back(key + ": " + std::to_string(used) + " of " +
                           std::to_string(of.waves.n_bands) +
                           " bands are used; the rest may cut a multiplet");
    return used;
  };
  if (!deck.epsilon.stored.gamma.empty()) plan.stored = describe_epsilon(deck.epsilon.stored);
  check_listed_points(deck, screening);
  plan.epsilon.epsilon_cutoff_ry =
      plan.stored ? plan.stored->epsilon_cutoff_ry : deck.epsilon.epsilon_cutoff_ry;
  plan.epsilon.bands =
      plan.stored ? plan.stored->bands : count(deck.epsilon.bands, "epsilon.bands", screening);
  plan.epsilon.memory_budget_bytes = memory_budget_bytes;
  plan.epsilon.subspace = deck.epsilon.subspace;
  const Crystal& crystal = screening.crystal();
  const bool cubic = deck.mean_field.empirical &&
                     deck.mean_field.crystal.deformation ==
                         EmpiricalCrystal{}.deformation;  // though supercells list no symmetry
  if (!plan.stored && !screening.by_velocity && deck.coulomb.truncation == Truncation::kNone &&
      deck.coulomb.wing_rule == WingRule::kShortest && !cubic &&
      !is_isotropic(crystal, crystal.symmetries))
    plan.notes.push_back(
        "q → 0 in the direction of q₀ alone, though the crystal's symmetry leaves ε a tensor; "
        "meanfield.long_wave = \"kp\" finds it in every direction");
  SigmaOptions& s = plan.sigma;
  s.method = deck.sigma.method;
  s.bands = count(deck.sigma.bands, "sigma.bands", field);
  s.bare_cutoff_ry = deck.sigma.bare_cutoff_ry > 0.0 ? deck.sigma.bare_cutoff_ry
                                                     : field.waves.wavefunction_cutoff_ry;
  s.screened_cutoff_ry = deck.sigma.screened_cutoff_ry > 0.0 ? deck.sigma.screened_cutoff_ry
                                                             : plan.epsilon.epsilon_cutoff_ry;
  if (s.screened_cutoff_ry > plan.epsilon.epsilon_cutoff_ry)
    throw InvalidInput("sigma.screened_cutoff_ry = " + std::to_string(s.screened_cutoff_ry) +
                       " exceeds the cut-off of ε⁻¹, " +
                       std::to_string(plan.epsilon.epsilon_cutoff_ry) + " Ry");
  if (s.bare_cutoff_ry > field.waves.header.density_cutoff_ry)
    throw InvalidInput("sigma.bare_cutoff_ry = " + std::to_string(s.bare_cutoff_ry) +
                       " exceeds the density cut-off of " +
                       std::to_string(field.waves.header.density_cutoff_ry) + " Ry");
  for (const Vec3& k : deck.sigma.kpoints) {
    int found = -1;
    for (int ik = 0; ik < field.waves.n_k(); ++ik)
      if (same_points(field.waves.k[static_cast<std::size_t>(ik)], k, 1e-5)) found = ik;
    if (found < 0)
      throw InvalidInput("sigma.kpoints names (" + std::to_string(k[0]) + ", " +
                         std::to_string(k[1]) + ", " + std::to_string(k[2]) +
                         "), which is not among the k-points of the mean field");
    s.kpoints.push_back(found);
  }
  if (s.kpoints.empty())
    for (int ik = 0; ik < field.waves.n_k(); ++ik) s.kpoints.push_back(ik);
  s.band_min = deck.sigma.band_min;
  const int wanted_max = deck.sigma.band_max > 0
                             ? deck.sigma.band_max
                             : std::min(field.n_occupied + 2, field.waves.n_bands);
  if (s.band_min > wanted_max)
    throw InvalidInput(
        "sigma.band_min = " + std::to_string(s.band_min) +
        " exceeds sigma.band_max = " + std::to_string(wanted_max) +
        (deck.sigma.band_max > 0
             ? ""
             : ", which is two above the occupied bands unless the deck says otherwise") +
        "; no state is left");
  s.band_max =
      band_count_without_split(field.waves, wanted_max, s.band_min, "sigma.band_max", s.kpoints);
  if (s.band_max != wanted_max)
    plan.notes.push_back("sigma.band_max = " + std::to_string(wanted_max) +
                         " splits a multiplet; states up to band " + std::to_string(s.band_max) +
                         " are calculated");
  if (s.band_min > 1) {
    const int wanted_min = s.band_min;
    s.band_min =
        band_count_without_split(field.waves, wanted_min - 1, 0, "sigma.band_min", s.kpoints) + 1;
    if (s.band_min != wanted_min)
      plan.notes.push_back("sigma.band_min = " + std::to_string(wanted_min) +
                           " splits a multiplet; states from band " + std::to_string(s.band_min) +
                           " are calculated");
  }
  s.invalid = deck.sigma.invalid;
  s.rules = deck.sigma.rules;
  s.subspace = deck.sigma.subspace;
  s.exact_static_ch = deck.sigma.remainder || deck.sigma.exact_ch;
  s.memory_budget_bytes = memory_budget_bytes;
  s.godby_needs_ry = deck.sigma.imaginary_frequency_ev / kRydberg_ev;
  plan.derivative = {deck.sigma.derivative, deck.sigma.derivative_step_ev / kRydberg_ev};
  s.offsets_ry =
      s.method == SigmaMethod::kCohsex ? std::vector<double>{0.0} : plan.derivative.offsets_ry();
  s.slope = s.method != SigmaMethod::kCohsex && deck.sigma.derivative == Derivative::kAnalytic;
  plan.spectrum_offset = s.offsets_ry.size();
  if (deck.sigma.spectrum.wanted()) {
    const auto grid = deck.sigma.spectrum.offsets_ry();
    s.offsets_ry.insert(s.offsets_ry.end(), grid.begin(), grid.end());
  }
  set_frequencies(deck, field, &plan);

  const double volume = field.crystal().volume_bohr3;
  const double n_g = volume * std::pow(plan.epsilon.epsilon_cutoff_ry, 1.5) / (6.0 * kPi * kPi);
  const double n_v = field.n_occupied, n_c = plan.epsilon.bands - field.n_occupied,
               n_k = static_cast<double>(field.zone.size());
  plan.epsilon_gflop = 4.0 * n_v * n_c * n_g * n_g * n_k * field.waves.n_k() * 1e-9;
  plan.sigma_evaluations = n_g * n_g * s.bands * static_cast<double>(s.offsets_ry.size()) *
                           (s.band_max - s.band_min + 1) * static_cast<double>(s.kpoints.size()) *
                           n_k;
  // χ at every frequency and room to invert it; states on the box; a batch of transforms; pair
  // products: two blocks where χ is static, else what the budget leaves.
  constexpr double kBlock_bytes = 4.0 * (1 << 30), kBatch_bytes = 2.0 * (1 << 30);
  const auto box =
      sum_box(screening, make_g_sphere(field.crystal().bdot, {}, plan.epsilon.epsilon_cutoff_ry).g);
  const double box_bytes = 16.0 * box[0] * box[1] * box[2];
  const bool only_static = plan.epsilon.frequencies_ry.size() == 1;
  // ε⁻¹: χ of every frequency, ε of one, its inverse's work space; Σ: A and ω̃, or W.
  const double n_f = static_cast<double>(plan.epsilon.frequencies_ry.size()),
               kept = std::pow(s.screened_cutoff_ry / plan.epsilon.epsilon_cutoff_ry, 1.5) * n_g;
  // In a static subspace only ω = 0 is whole. How many vectors a tolerance keeps is not known
  // before: all at most.
  const bool in_subspace = !plan.stored && !only_static && plan.epsilon.subspace.wanted();
  const double n_b = in_subspace && plan.epsilon.subspace.vectors > 0
                         ? std::min(n_g, plan.epsilon.subspace.vectors + 3.0)
                         : n_g;
  if (in_subspace) plan.subspace_vectors = static_cast<std::int64_t>(n_b);
  const double of_chi = 16.0 * (in_subspace ? 3.0 * n_g * n_g + n_g * n_b + (n_f - 1.0) * n_b * n_b
                                            : n_g * n_g * (2.0 + n_f));
  const double least_of_chi =
      in_subspace && plan.epsilon.subspace.vectors == 0 ? 48.0 * n_g * n_g : of_chi;
  plan.least_memory_bytes = static_cast<std::int64_t>(std::max(
      plan.stored ? 0.0 : least_of_chi, deck.stop_after_epsilon ? 0.0 : 24.0 * kept * kept));
  const double of_q = in_subspace ? 2.0 * n_g * n_g + n_g * n_b + n_f * n_b * n_b : n_f * n_g * n_g;
  // W of one q, as full_frequency_w has it.
  const bool group_averages =
      screening.transfers().operations().size() > 1 && deck.coulomb.truncation == Truncation::kNone;
  double of_w = n_f * n_g * n_g;
  if (s.subspace.wanted()) {
    const double vectors = s.subspace.vectors > 0 ? std::min(kept, 1.0 * s.subspace.vectors) : kept;
    of_w = n_g * n_g + 2.0 * kept * kept + kept * vectors + n_f * vectors * vectors;
  } else if (in_subspace && !group_averages && deck.coulomb.wing_rule != WingRule::kListedPoint) {
    of_w = n_g * n_g + kept * kept + kept * (n_b + n_f) + n_f * n_b * n_b;
  }
  const bool wants_w = uses_frequencies(s.method) && !deck.stop_after_epsilon;
  plan.screening_bytes = static_cast<std::int64_t>(
      16.0 * (of_q * static_cast<double>(screening.waves.n_k()) + (wants_w ? of_w : 0.0)));
  plan.memory_bytes = static_cast<std::int64_t>(
      of_chi + box_bytes * (n_v + n_c) + std::min(box_bytes * n_c, kBatch_bytes) +
      std::min(16.0 * n_v * n_c * n_g * (only_static ? 1.0 : 3.0),
               only_static ? 2.0 * kBlock_bytes : static_cast<double>(memory_budget_bytes)));
  return plan;
}

void require_room(const Plan& plan, std::int64_t limit_bytes) {
  if (limit_bytes <= 0 || plan.least_memory_bytes <= limit_bytes) return;
  constexpr double kGib = 1073741824.0;
  const auto need = static_cast<double>(plan.least_memory_bytes),
             limit = static_cast<double>(limit_bytes);
  // Plane waves go as cutoff^(3/2), matrices as their square.
  char text[400];
  std::snprintf(text, sizeof text,
                "epsilon.cutoff_ry = %.6g needs %.3g GiB for matrices between its plane waves, "
                "which one device must hold (more devices do not help); there are %.3g GiB. "
                "Lower the cut-off to %.3g Ry or less, ask for fewer frequencies, or take a device "
                "with more memory",
                plan.epsilon.epsilon_cutoff_ry, need / kGib, limit / kGib,
                0.99 * plan.epsilon.epsilon_cutoff_ry * std::cbrt(limit / need));
  throw OutOfMemory(text);
}

Calculation run_calculation(const Deck& deck, GwKernels& kernels, std::int64_t memory_budget_bytes,
                            Progress& progress) {
  DeviceTeam alone(kernels);
  return run_calculation(deck, {.team = alone, .memory_budget_bytes = memory_budget_bytes},
                         progress);
}

Calculation run_calculation(const Deck& deck, const Workplace& place, Progress& progress) {
  double seconds = 0.0;
  StepTimes times;
  std::optional<MeanField> field;
  {
    const PhaseClock clock(&seconds);
    place.team.warm_up_others();
    field = load_mean_field(deck, place.team.first(), progress, &times);
  }
  Calculation run = solve_mean_field(deck, std::move(*field), place, progress);
  run.seconds["mean_field"] = seconds;
  for (const auto& [step, value] : times.seconds()) run.seconds["mean_field_" + step] = value;
  return run;
}

Calculation solve_mean_field(const Deck& deck, MeanField field, const Workplace& place,
                             Progress& progress) {
  GwKernels& kernels = place.team.first();
  std::optional<MeanField> outer;
  if (!deck.mean_field.wfn_outer.empty())
    outer = make_outer_mean_field(field, read_wavefunctions(deck.mean_field.wfn_outer));
  std::map<std::string, double> seconds{
      {"epsilon", 0.0}, {"sigma", 0.0}, {"vxc", 0.0}, {"self_test", 0.0}};
  Calculation run{.field = std::move(field),
                  .plan = {},
                  .epsilon = {},
                  .sigma = {},
                  .quasiparticles = {},
                  .statistics = {},
                  .seconds = {}};
  run.plan = make_plan(deck, run.field, place.memory_budget_bytes, outer ? &*outer : nullptr);
  for (const std::string& note : run.plan.notes) progress.log(note);
  require_room(run.plan, place.memory_limit_bytes);
  if (!outer) {  // the points of WFN_outer are as many as those of WFN, but its symmetry is another
    const PhaseClock clock(&seconds["estimate"]);
    estimate_seconds(run.field, place.team, &run.plan);
    progress.log(cost_line(run.plan));
  }
  const std::uint64_t digest = digest_of(run, deck.coulomb, outer ? &outer->waves : nullptr);
  place.team.ranks().require_same(digest, "the mean field or the deck");
  Checkpoint checkpoint(place.checkpoint_directory, digest, deck.checkpoint_seconds, progress);
  const CoulombInteraction coulomb(run.field.crystal(), run.field.waves.k_grid, deck.coulomb);
  for (const auto& spin : run.field.density.values)
    coulomb.require_charge_inside(run.field.density.header.g, spin);
  // Before the long phases: a V_xc that does not fit ends the job at once.
  ExchangeCorrelation vxc;
  {
    const PhaseClock clock(&seconds["vxc"]);
    if (!deck.stop_after_epsilon)
      vxc = exchange_correlation(deck.mean_field.vxc, outer ? *outer : run.field, run.plan.sigma,
                                 kernels, deck.sigma.wants_matrix());
  }
  PathStates path;
  if (!deck.sigma.path.corners.empty() && !deck.stop_after_epsilon)
    path = path_states(deck, run.field, kernels);
  EpsilonProfile profile;
  {
    const PhaseClock clock(&seconds["epsilon"]);
    if (run.plan.stored)
      run.epsilon = read_epsilon(deck.epsilon.stored, run.field, coulomb);
    else
      run.epsilon = dielectric_matrices(run.field, screening_points(run.field), run.plan.epsilon,
                                        coulomb, place.team, checkpoint, progress, &profile);
  }
  for (const auto& [step, value] : profile.seconds()) seconds["epsilon_" + step] = value;
  if (profile.pairs() > 0)
    progress.log("static polarizability: " + std::to_string(profile.pairs()) + " pairs of bands, " +
                 std::to_string(profile.real_pairs()) + " of them in real arithmetic");
  ScreeningChecks screening_checks(run.epsilon);
  if (deck.stop_after_epsilon) {
    run_self_test(deck, coulomb, place.team, progress, screening_checks, run);
    checkpoint.finish();
    run.seconds.merge(seconds);
    return run;
  }
  if (outer) {
    run.screening_field = std::move(run.field);
    run.field = std::move(*outer);
  }
  {
    const PhaseClock clock(&seconds["sigma"]);
    run.sigma = self_energy(run.field, run.epsilon, run.plan.sigma, coulomb, place.team, checkpoint,
                            progress, &run.statistics, [&](const std::vector<SelfEnergyAtK>& sums) {
                              if (deck.self_test) screening_checks.start();
                              report_gap(run, sums, vxc, deck.sigma.remainder, progress);
                            });
  }
  {
    const PhaseClock clock(&seconds["self_test"]);
    run_self_test(deck, coulomb, place.team, progress, screening_checks, run);
  }
  if (deck.sigma.method == SigmaMethod::kCohsex && deck.sigma.exact_ch)
    for (SelfEnergyAtK& sum : run.sigma) sum.ch_ry[0] = sum.ch_exact_ry;
  run.quasiparticles = quasiparticles(run.field, run.sigma, vxc.diagonal_ev(), run.plan.sigma,
                                      run.plan.derivative, deck.sigma.remainder);
  {
    const PhaseClock clock(&seconds["sigma_further"]);
    solve_further(deck, vxc, coulomb, place.team, checkpoint, progress, run);
  }
  if (deck.sigma.spectrum.wanted()) {
    run.spectra = spectra(run.field, run.sigma, vxc.diagonal_ev(), run.plan.sigma,
                          run.plan.spectrum_offset, deck.sigma.spectrum, deck.sigma.remainder);
    if (deck.sigma.solution == Solution::kGraphical)
      use_graphical_solution(run.spectra, run.quasiparticles);
  }
  if (!deck.sigma.path.corners.empty() && place.team.ranks().leads()) {
    const PhaseClock clock(&seconds["band_path"]);
    bands_along_path(deck.sigma.path, path, progress, run);
  }
  checkpoint.finish();
  for (const auto& [step, value] : run.statistics.seconds) seconds["sigma_" + step] = value;
  run.seconds.merge(seconds);
  return run;
}

}  // namespace quasi::gw
