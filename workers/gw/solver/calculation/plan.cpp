#include "workers/gw/solver/calculation/plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/mean_field/displaced/inner_states.hpp"
#include "workers/gw/solver/perturbation/displaced_files/file_displacement.hpp"
#include "workers/gw/solver/perturbation/wave_vector/wave_vector_elements.hpp"
#include "workers/gw/solver/screening/long_wave_tensor.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

bool same_points(const Vec3& a, const Vec3& b, double tolerance) {
  const Vec3 d = a - b;
  return std::abs(d[0]) + std::abs(d[1]) + std::abs(d[2]) < tolerance;
}

/// Checks that the list of q of a BerkeleyGW input holds the irreducible points of WFN, with Γ
/// replaced by a small q₀.
void check_listed_points(const EpsilonRequest& wanted, const MeanField& field) {
  if (wanted.occupied_bands > 0 && wanted.occupied_bands != field.n_occupied)
    throw InvalidInput("band_occupation counts " + std::to_string(wanted.occupied_bands) +
                       " occupied bands, but WFN has " + std::to_string(field.n_occupied));
  if (wanted.qpoints.empty()) return;
  for (const Vec3& point : screening_points(field)) {
    bool found = false;
    // A list that time reversal has reduced names one of q and −q.
    for (const Vec3& q : wanted.qpoints)
      found = found || same_points(q, point, 1e-5) ||
              (field.added_k > 0 && same_points(-1.0 * q, point, 1e-5));
    if (!found) {
      char text[80];
      std::snprintf(text, sizeof text, "(%.6f, %.6f, %.6f)", point[0], point[1], point[2]);
      throw InvalidInput(
          std::string("the list of q-points lacks ") + text +
          ", which Σ needs: list the irreducible points of WFN, Γ replaced by q₀ of WFNq");
    }
  }
}

/// Returns true if bands n and n + 1 are degenerate at some k.
bool splits_multiplet(const MeanField& field, int n) {
  for (int spin = 0; spin < field.n_spins(); ++spin)
    for (int ik = 0; ik < field.waves.n_k(); ++ik)
      if (std::abs(field.waves.energy(spin, ik, n) - field.waves.energy(spin, ik, n - 1)) <
          kDegenerate_ry)
        return true;
  return false;
}

/// Returns a number of bands that splits no multiplet, with a note if it was changed. @param wanted
/// 0: all @param whole   true if the last band of `field` is known to end a multiplet
int band_count(const MeanField& field, int wanted, bool whole, const std::string& key, Plan* plan) {
  // The last band of a file may belong to a multiplet that the file cuts. If every smaller count
  // cuts one for certain, all bands are used.
  const bool top_unknown = wanted == 0 && !whole;
  const int asked = wanted > 0 ? wanted : field.waves.n_bands;
  int used = band_count_without_split(field.waves, asked, field.n_occupied + 1, key);
  for (int n = field.waves.n_bands - 1; top_unknown && n > field.n_occupied; --n) {
    if (splits_multiplet(field, n)) continue;
    used = n;
    break;
  }
  if (used != asked && wanted > 0)
    plan->notes.push_back(key + " = " + std::to_string(asked) + " splits a multiplet; " +
                          std::to_string(used) + " bands are used");
  if (wanted == field.waves.n_bands && !whole && used == wanted)
    plan->notes.push_back(key + " = " + std::to_string(wanted) +
                          " takes all bands of the wavefunctions; the last multiplet may be cut. "
                          "Leave the key out to drop it");
  if (top_unknown)
    plan->notes.push_back(key + ": " + std::to_string(used) + " of " +
                          std::to_string(field.waves.n_bands) +
                          " bands are used; the rest may cut a multiplet");
  return used;
}

/// True if the last band is known to end a multiplet. Pseudobands end no multiplet at all.
bool top_is_whole(const Deck& deck) {
  return deck.mean_field.empirical || deck.pseudobands.wanted();
}

/// Products of two states have no plane waves beyond four times the cut-off of the states.
/// @throws InvalidInput if the cut-off of ε⁻¹ exceeds it
void check_epsilon_cutoff(double cutoff_ry, const MeanField& field, Plan* plan) {
  const double states_ry = field.waves.wavefunction_cutoff_ry;
  if (cutoff_ry > 4.0 * states_ry * (1.0 + 1e-9))
    throw InvalidInput("epsilon.cutoff_ry = " + shown(cutoff_ry) + " exceeds " +
                       shown(4.0 * states_ry) +
                       " Ry, four times the cut-off of the wavefunctions: products of two states "
                       "have no plane waves there; lower it");
  if (cutoff_ry > states_ry * (1.0 + 1e-9))
    plan->notes.push_back("epsilon.cutoff_ry = " + shown(cutoff_ry) +
                          " exceeds the cut-off of the wavefunctions, " + shown(states_ry) +
                          " Ry; states of that cut-off describe ε⁻¹ there poorly");
}

void plan_epsilon(const Deck& deck, const MeanField& screening, Plan* plan) {
  if (!deck.epsilon.stored.gamma.empty()) plan->stored = describe_epsilon(deck.epsilon.stored);
  check_listed_points(deck.epsilon, screening);
  plan->epsilon.epsilon_cutoff_ry =
      plan->stored ? plan->stored->epsilon_cutoff_ry : deck.epsilon.epsilon_cutoff_ry;
  if (!plan->stored) check_epsilon_cutoff(plan->epsilon.epsilon_cutoff_ry, screening, plan);
  plan->epsilon.bands = plan->stored ? plan->stored->bands
                                     : band_count(screening, deck.epsilon.bands, top_is_whole(deck),
                                                  "epsilon.bands", plan);
  plan->epsilon.subspace = deck.epsilon.subspace;
  plan->epsilon.column_slices = plan->sigma.column_slices = deck.epsilon.column_slices;
  const Crystal& crystal = screening.crystal();
  // A supercell lists no symmetry, although the undeformed crystal is cubic.
  const bool cubic = deck.mean_field.empirical &&
                     deck.mean_field.crystal.deformation == EmpiricalCrystal{}.deformation;
  if (!plan->stored && !screening.by_velocity && deck.coulomb.truncation == Truncation::kNone &&
      deck.coulomb.wing_rule == WingRule::kShortest && !cubic &&
      !is_isotropic(crystal, crystal.symmetries))
    plan->notes.push_back(
        "q → 0 is taken in the direction of q₀ alone, though the crystal's symmetry leaves ε a "
        "tensor; meanfield.long_wave = \"kp\" finds it in every direction");
}

void plan_cutoffs(const Deck& deck, const MeanField& field, Plan* plan) {
  const SigmaRequest& wanted = deck.sigma;
  SigmaOptions& s = plan->sigma;
  const double epsilon_cutoff_ry = plan->epsilon.epsilon_cutoff_ry;
  s.screened_cutoff_ry =
      wanted.screened_cutoff_ry > 0.0 ? wanted.screened_cutoff_ry : epsilon_cutoff_ry;
  s.bare_cutoff_ry = wanted.bare_cutoff_ry > 0.0
                         ? wanted.bare_cutoff_ry
                         : std::max(field.waves.wavefunction_cutoff_ry, s.screened_cutoff_ry);
  if (s.screened_cutoff_ry > epsilon_cutoff_ry)
    throw InvalidInput("sigma.screened_cutoff_ry = " + std::to_string(s.screened_cutoff_ry) +
                       " exceeds the cut-off of ε⁻¹, " + std::to_string(epsilon_cutoff_ry) +
                       " Ry; lower it");
  if (s.bare_cutoff_ry > field.waves.header.density_cutoff_ry)
    throw InvalidInput("sigma.bare_cutoff_ry = " + std::to_string(s.bare_cutoff_ry) +
                       " exceeds the density cut-off of " +
                       std::to_string(field.waves.header.density_cutoff_ry) + " Ry; lower it");
  if (s.bare_cutoff_ry < s.screened_cutoff_ry * (1.0 - 1e-9) && !deck.study.within &&
      !deck.stop_after_epsilon)
    throw InvalidInput("sigma.bare_cutoff_ry = " + shown(s.bare_cutoff_ry) +
                       " lies below sigma.screened_cutoff_ry = " + shown(s.screened_cutoff_ry) +
                       ": exchange would lack plane waves that W contains; raise the bare "
                       "cut-off, or lower the screened one");
}

std::string text_of(const Vec3& k) {
  return std::string("(") + shown(k[0]) + ", " + shown(k[1]) + ", " + shown(k[2]) + ")";
}

/// Returns the index of a wanted k-point in the list of the mean field. A point that an operation
/// of the crystal or a reciprocal vector maps onto a listed one is replaced by it, with a note.
int index_of_kpoint(const Vec3& k, const MeanField& field, Plan* plan) {
  for (int ik = 0; ik < field.waves.n_k(); ++ik)
    if (same_points(field.waves.k[static_cast<std::size_t>(ik)], k, 1e-5)) return ik;
  for (const ZonePoint& point : field.zone.points()) {
    IVec3 g{};
    if (!nearest_lattice_point(point.k - k, &g, 1e-5)) continue;
    plan->notes.push_back("sigma.kpoints names " + text_of(k) + ", which is calculated at " +
                          text_of(field.waves.k[static_cast<std::size_t>(point.irreducible)]) +
                          ", its image by the crystal's symmetry");
    return point.irreducible;
  }
  throw InvalidInput("sigma.kpoints names " + text_of(k) +
                     ", which is not among the k-points of the mean field, nor an image of one; "
                     "name a point of its grid");
}

/// Returns the indices of the outer k-points, each once.
std::vector<int> plan_kpoints(const std::vector<Vec3>& wanted, const MeanField& field, Plan* plan) {
  std::vector<int> kpoints;
  for (const Vec3& k : wanted) {
    const int index = index_of_kpoint(k, field, plan);
    if (std::find(kpoints.begin(), kpoints.end(), index) == kpoints.end()) kpoints.push_back(index);
  }
  if (kpoints.empty())
    for (int ik = 0; ik < field.waves.n_k(); ++ik) kpoints.push_back(ik);
  return kpoints;
}

/// Returns true if bands n and n + 1 are degenerate at one of the outer k-points.
bool splits_outer(const MeanField& field, const std::vector<int>& kpoints, int n) {
  if (n <= 0 || n >= field.waves.n_bands) return false;
  for (int spin = 0; spin < field.n_spins(); ++spin)
    for (const int ik : kpoints)
      if (field.waves.energy(spin, ik, n) - field.waves.energy(spin, ik, n - 1) < kDegenerate_ry)
        return true;
  return false;
}

/// Lists the points of the outer states: those of Σ, and k + q of the displacements at q.
std::vector<int> outer_points(const PerturbationRequest& displaced, const MeanField& field,
                              const std::vector<int>& kpoints) {
  std::vector<int> points = kpoints;
  for (const Vec3& q : displaced.wave_vectors)
    for (const int ik : kpoints)
      points.push_back(
          field.zone.rotation_to(field.waves.k[static_cast<std::size_t>(ik)] + q).irreducible);
  return points;
}

/// Sets the window of outer bands, extended at both ends so that it splits no multiplet.
/// @param points  of all outer states
void plan_outer_bands(const SigmaRequest& wanted, const std::vector<int>& points,
                      const MeanField& field, Plan* plan) {
  SigmaOptions& s = plan->sigma;
  s.band_min = wanted.band_min;
  const int wanted_max =
      wanted.band_max > 0 ? wanted.band_max : std::min(field.n_occupied + 2, field.waves.n_bands);
  if (s.band_min > wanted_max)
    throw InvalidInput(
        "sigma.band_min = " + std::to_string(s.band_min) +
        " exceeds sigma.band_max = " + std::to_string(wanted_max) +
        (wanted.band_max > 0
             ? ""
             : ", which is two above the occupied bands unless the deck says otherwise") +
        "; no state is left");
  if (wanted_max > field.waves.n_bands)
    throw InvalidInput("sigma.band_max = " + std::to_string(wanted_max) +
                       " but the wavefunctions hold " + std::to_string(field.waves.n_bands) +
                       " bands; lower it");
  s.band_max = wanted_max;
  while (splits_outer(field, points, s.band_max)) ++s.band_max;
  if (s.band_max != wanted_max)
    plan->notes.push_back("sigma.band_max = " + std::to_string(wanted_max) +
                          " splits a multiplet; states up to band " + std::to_string(s.band_max) +
                          " are calculated");
  while (splits_outer(field, points, s.band_min - 1)) --s.band_min;
  if (s.band_min != wanted.band_min)
    plan->notes.push_back("sigma.band_min = " + std::to_string(wanted.band_min) +
                          " splits a multiplet; states from band " + std::to_string(s.band_min) +
                          " are calculated");
}

/// Returns the offsets that reach from every outer state to all energies of a shared spectrum, with
/// two further points at either end for the interpolation. Sets the energies.
std::vector<double> offsets_of_shared_spectrum(const SpectrumGrid& grid, const MeanField& field,
                                               Plan* plan) {
  const SigmaOptions& s = plan->sigma;
  double lowest = 1e300, highest = -1e300, top = -1e300, bottom = 1e300;
  for (int spin = 0; spin < field.n_spins(); ++spin)
    for (const int ik : s.kpoints) {
      const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
      lowest = std::min(lowest, field.waves.energy(spin, ik, s.band_min - 1));
      highest = std::max(highest, field.waves.energy(spin, ik, s.band_max - 1));
      if (n_v > 0) top = std::max(top, field.waves.energy(spin, ik, n_v - 1));
      bottom = std::min(bottom, field.waves.energy(spin, ik, n_v));
    }
  const double first_ev =
      grid.first_ev +
      (grid.origin == SpectrumOrigin::kMidgap ? 0.5 * (top + bottom) * kRydberg_ev : 0.0);
  for (int i = 0; i < grid.points; ++i) plan->spectrum_ev.push_back(first_ev + i * grid.step_ev);
  const double from_ev = first_ev - highest * kRydberg_ev - 2.0 * grid.step_ev,
               to_ev = plan->spectrum_ev.back() - lowest * kRydberg_ev + 2.0 * grid.step_ev;
  std::vector<double> offsets;
  for (int i = 0; from_ev + (i - 1) * grid.step_ev < to_ev; ++i)
    offsets.push_back((from_ev + i * grid.step_ev) / kRydberg_ev);
  return offsets;
}

/// Sets the energies, relative to those of the states, at which Σ is evaluated.
void plan_energies(const SigmaRequest& wanted, const MeanField& field, Plan* plan) {
  SigmaOptions& s = plan->sigma;
  plan->derivative = {wanted.derivative, wanted.derivative_step_ev / kRydberg_ev};
  s.offsets_ry =
      s.method == SigmaMethod::kCohsex ? std::vector<double>{0.0} : plan->derivative.offsets_ry();
  s.slope = s.method != SigmaMethod::kCohsex && wanted.derivative == Derivative::kAnalytic;
  plan->spectrum_offset = s.offsets_ry.size();
  if (wanted.spectrum.wanted()) {
    const auto grid = wanted.spectrum.origin == SpectrumOrigin::kState
                          ? wanted.spectrum.offsets_ry()
                          : offsets_of_shared_spectrum(wanted.spectrum, field, plan);
    s.offsets_ry.insert(s.offsets_ry.end(), grid.begin(), grid.end());
  }
}

/// Sets what Σ needs with inner states of a displaced crystal, which lacks the symmetry at rest.
/// @pre the number of bands is planned
void plan_inner_states(const MeanField& field, Plan* plan) {
  if (field.inner == nullptr) return;
  const int held = field.inner->waves.n_bands, wanted = plan->sigma.bands;
  if (held < wanted)
    throw InvalidInput("sigma.bands = " + std::to_string(wanted) +
                       " but meanfield.wfn_inner holds " + std::to_string(held) +
                       " bands; lower it, or give meanfield.vsc_inner and meanfield.vkb_inner so "
                       "that the missing bands are made");
  plan->sigma.reduce_q = false;
  plan->notes.push_back(note_of_inner_states(*field.inner));
}

/// Reads the displaced crystals of a request, and checks that they suffice for its phonon modes and
/// wave vectors.
void check_displaced_files(const PerturbationRequest& request, const MeanField& field) {
  if (request.folders.empty()) return;
  const auto displaced = file_displacements(request.folders, field);
  require_whole_waves(displaced, request.wave_vectors);
  if (request.modes || !request.modes_at_q.empty())
    require_all_displacements(displaced, field.crystal());
}

}  // namespace

Plan make_plan(const Deck& deck, const MeanField& screening, std::int64_t memory_budget_bytes,
               const MeanField* outer, bool on_cpu) {
  Plan plan;
  plan.on_cpu = on_cpu;
  plan.notes = deck.notes;
  if (screening.added_k > 0)
    plan.notes.push_back("time reversal has reduced the k-points of WFN; " +
                         std::to_string(screening.added_k) + " points −k are added to " +
                         std::to_string(screening.waves.n_k() - screening.added_k) +
                         " listed ones");
  const MeanField& field = outer != nullptr ? *outer : screening;
  const PerturbationRequest displaced = request_on_grid(deck.perturbation, field);
  check_displacements(displaced, field.crystal());
  check_displaced_files(displaced, field);
  plan_epsilon(deck, screening, &plan);
  plan.epsilon.memory_budget_bytes = memory_budget_bytes;
  SigmaOptions& s = plan.sigma;
  s.method = deck.sigma.method;
  s.bands = band_count(field, deck.sigma.bands, top_is_whole(deck), "sigma.bands", &plan);
  plan_inner_states(field, &plan);
  if (!deck.pseudobands.wanted()) check_response(deck.perturbation, field, s.bands);
  plan_cutoffs(deck, field, &plan);
  s.kpoints = plan_kpoints(deck.sigma.kpoints, field, &plan);
  plan_outer_bands(deck.sigma, outer_points(displaced, field, s.kpoints), field, &plan);
  s.invalid = deck.sigma.invalid;
  s.rules = deck.sigma.rules;
  s.subspace = deck.sigma.subspace;
  s.exact_static_ch = deck.sigma.remainder || deck.sigma.exact_ch;
  s.only_total = deck.pseudobands.serves_errors() && uses_plasmon_poles(s.method);
  s.memory_budget_bytes = memory_budget_bytes;
  s.godby_needs_ry = deck.sigma.imaginary_frequency_ev / kRydberg_ev;
  plan_energies(deck.sigma, field, &plan);
  set_frequencies(deck, field, &plan);
  estimate_memory(deck, screening, field, &plan);
  // A job that ends with ε⁻¹ computes no Σ, so notes about the choices of Σ would mislead.
  if (deck.stop_after_epsilon)
    std::erase_if(plan.notes, [](const std::string& note) { return note.starts_with("sigma."); });
  return plan;
}

}  // namespace quasi::gw
