#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/plan.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

/// Number and scale of the points ω of Σ(μ + iω). More points would only fit rounding errors.
constexpr int kContinuationPoints = 16;
constexpr double kContinuationScale_ry = 1.0;
/// ε⁻¹(ω = 0) is real. Its broadening only prevents a division by zero.
constexpr double kBroadeningAtZero_ev = 1e-4;

/// Returns the largest |E − E_n| at which ε⁻¹ is needed on the real axis, eV. Residues of contour
/// deformation lie between E and the gap. The real-axis method needs the whole spectrum of
/// transitions and plasmons. @param matrix_margin_ry  distance by which the energies of the full
/// matrix exceed those of the states; 0 without a matrix
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

/// Returns a uniform real axis up to `reach_ev` and the imaginary axis of the deck.
ContourGrid contour_grid(const EpsilonRequest& e, ImaginaryRule rule, double reach_ev) {
  ContourGrid grid{.imaginary_ry = imaginary_grid(e.imaginary_points, e.imaginary_scale_ry),
                   .real_ry = {},
                   .rule = rule};
  const int n_real = static_cast<int>(std::floor(reach_ev / e.real_step_ev + 1e-9)) + 1;
  for (int i = 0; i < n_real; ++i) grid.real_ry.push_back(i * e.real_step_ev / kRydberg_ev);
  return grid;
}

/// Returns the grids of a list of frequencies in the order of DielectricMatrix::inverse.
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

/// Adopts the frequencies of stored files.
void take_stored_frequencies(const SigmaRequest& wanted, Plan* plan) {
  EpsilonOptions& e = plan->epsilon;
  SigmaOptions& s = plan->sigma;
  e.frequencies_ry = plan->stored->frequencies_ry;
  e.n_real = plan->stored->n_real;
  if (uses_frequencies(wanted.method)) {
    if (e.n_real < 2 || e.frequencies_ry.size() - static_cast<std::size_t>(e.n_real) < 4)
      throw InvalidInput(
          "this sigma.method needs ε⁻¹ on a real and an imaginary axis; the stored files hold " +
          std::to_string(e.n_real) + " real frequencies of " +
          std::to_string(e.frequencies_ry.size()));
    ContourGrid grid = grid_of_frequencies(e.frequencies_ry, e.n_real, wanted.imaginary_rule);
    grid.continuation_ry = s.contour.continuation_ry;
    s.contour = std::move(grid);
  }
  if (wanted.method != SigmaMethod::kGodbyNeeds) return;
  if (e.frequencies_ry.size() < 2 || !(e.frequencies_ry[1].imag() > 0.0) ||
      e.frequencies_ry[1].real() != 0.0)
    throw InvalidInput(
        "sigma.method = \"gn-gpp\" needs ε⁻¹ at 0 and at one imaginary frequency, which the "
        "stored files lack");
  s.godby_needs_ry = e.frequencies_ry[1].imag();
}

/// Returns the end of the real axis, eV: that of the deck or, with a note, the largest energy that
/// Σ needs.
double real_axis_end_ev(const Deck& deck, const MeanField& field, bool contour, Plan* plan) {
  const double end_ev = deck.epsilon.real_max_ev;
  if (!contour || plan->sigma.method == SigmaMethod::kImaginaryAxis) return end_ev;
  const double margin_ry = deck.sigma.full_matrix ? deck.sigma.matrix.margin_ry : 0.0;
  const double needed_ev = largest_real_frequency_ev(field, plan->sigma, margin_ry);
  if (needed_ev <= end_ev) return end_ev;
  const double step_ev = deck.epsilon.real_step_ev;
  const double extended_ev = std::ceil(needed_ev / step_ev) * step_ev;
  plan->notes.push_back("epsilon.real_max_ev = " + shown(end_ev) +
                        " ends below the energies that Σ needs; the real axis reaches " +
                        shown(extended_ev) + " eV");
  return extended_ev;
}

}  // namespace

void set_frequencies(const Deck& deck, const MeanField& field, Plan* plan) {
  EpsilonOptions& e = plan->epsilon;
  SigmaOptions& s = plan->sigma;
  if (s.method == SigmaMethod::kImaginaryAxis)
    for (int j = 0; j < kContinuationPoints; ++j) {
      const double t = (j + 0.5) / kContinuationPoints;
      s.contour.continuation_ry.push_back(kContinuationScale_ry * t / (1.0 - t));
    }
  if (plan->stored) {
    take_stored_frequencies(deck.sigma, plan);
    return;
  }
  const FrequencySet asked = deck.epsilon.frequencies;
  const bool contour = uses_frequencies(deck.sigma.method) && !deck.stop_after_epsilon;
  const bool needs_pair = deck.sigma.method == SigmaMethod::kGodbyNeeds && !deck.stop_after_epsilon;
  if (needs_pair || asked == FrequencySet::kGodbyNeeds)
    e.frequencies_ry.push_back({0.0, s.godby_needs_ry});
  const double end_ev = real_axis_end_ev(deck, field, contour, plan);
  ContourGrid grid = contour_grid(deck.epsilon, deck.sigma.imaginary_rule, end_ev);
  if (s.method == SigmaMethod::kImaginaryAxis && asked == FrequencySet::kAutomatic)
    grid.real_ry.clear();
  grid.continuation_ry = s.contour.continuation_ry;
  if (contour) s.contour = grid;
  if (contour || asked == FrequencySet::kBoth || asked == FrequencySet::kImaginary ||
      asked == FrequencySet::kReal) {
    if (asked == FrequencySet::kImaginary) grid.real_ry.clear();
    if (asked == FrequencySet::kReal) grid.imaginary_ry.resize(1);
    e.frequencies_ry = grid.frequencies_ry(deck.epsilon.broadening_ev / kRydberg_ev,
                                           kBroadeningAtZero_ev / kRydberg_ev);
    e.n_real = static_cast<int>(grid.real_ry.size());
  }
}

}  // namespace quasi::gw
