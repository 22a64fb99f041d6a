#include "workers/gw/solver/pseudoband_errors/statistical_errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "workers/backend/study/study_runner.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

/// Student's factor of a two-sided interval of 95 %, by degrees of freedom from 2.
constexpr std::array kStudent{4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004,
                              2.262157, 2.228139, 2.200985, 2.178813, 2.160369, 2.144787, 2.131450};

/// The gap of the quasiparticle energies. Without V_xc it is the change of the gap by Σ.
std::optional<double> gap_of(const MeanField& field, const std::vector<Quasiparticle>& list) {
  if (const auto gap = gaps(field, list).fundamental_ev) return gap;
  const Quasiparticle *top = nullptr, *bottom = nullptr;
  for (const Quasiparticle& qp : list) {
    const bool occupied =
        qp.band <= field.n_occupied_of_spin[static_cast<std::size_t>(qp.spin - 1)];
    const Quasiparticle*& edge = occupied ? top : bottom;
    if (edge == nullptr || (qp.mean_field_ev > edge->mean_field_ev) == occupied) edge = &qp;
  }
  if (top == nullptr || bottom == nullptr) return std::nullopt;
  return bottom->sigma_ev - top->sigma_ev;
}

}  // namespace

JackknifeEstimate jackknife(double pooled, const std::vector<double>& without) {
  const auto blocks = static_cast<double>(without.size());
  const double mean = std::accumulate(without.begin(), without.end(), 0.0) / blocks;
  double sum = 0.0;
  for (const double value : without) sum += (value - mean) * (value - mean);
  return {.value = blocks * pooled - (blocks - 1.0) * mean,
          .half_width = kStudent.at(without.size() - 3) * std::sqrt((blocks - 1.0) / blocks * sum)};
}

namespace {

/// Estimates the errors of `own` by the energies of the jobs without one block each.
PseudobandErrors jackknife_errors(const Calculation& own,
                                  const std::vector<std::vector<Quasiparticle>>& without) {
  PseudobandErrors errors{.blocks = static_cast<int>(without.size())};
  for (std::size_t i = 0; i < own.quasiparticles.size(); ++i) {
    std::vector<double> energies;
    for (const auto& list : without) energies.push_back(energy_ev(list[i]));
    const double pooled = energy_ev(own.quasiparticles[i]);
    const JackknifeEstimate found = jackknife(pooled, energies);
    errors.estimate_ev.push_back(found.value);
    errors.half_width_ev.push_back(found.half_width);
    errors.bias_ev.push_back(std::abs(found.value - pooled));
  }
  const auto pooled = gap_of(own.field, own.quasiparticles);
  if (!pooled) return errors;
  std::vector<double> gaps_without;
  for (const auto& list : without) gaps_without.push_back(gap_of(own.field, list).value());
  const JackknifeEstimate found = jackknife(*pooled, gaps_without);
  errors.gap_ev = found.value;
  errors.gap_half_width_ev = found.half_width;
  errors.gap_bias_ev = std::abs(found.value - *pooled);
  return errors;
}

double largest_half_width_ev(const PseudobandErrors& errors) {
  double largest = errors.gap_half_width_ev.value_or(0.0);
  for (const double value : errors.half_width_ev) largest = std::max(largest, value);
  return largest;
}

/// Sets the bound of the window width from the energies with windows at their nodes.
void set_window_width(const std::vector<Quasiparticle>& at_nodes, Calculation& run) {
  for (std::size_t i = 0; i < run.quasiparticles.size(); ++i)
    run.pseudoband_errors->window_width_ev.push_back(
        std::abs(energy_ev(run.quasiparticles[i]) - energy_ev(at_nodes[i])));
}

}  // namespace

PseudobandErrors statistical_errors(const Deck& deck, const MeanField& given,
                                    const Workplace& place, const Calculation& own,
                                    Progress& progress) {
  StudyRunner runner(place.checkpoint_directory, place.team.ranks(), progress);
  std::vector<std::vector<Quasiparticle>> without;
  for (int block = 0; block < deck.pseudobands.blocks; ++block) {
    Deck reduced = deck;
    reduced.self_test = false;
    reduced.pseudobands.left_out = block;
    Workplace at = place;
    at.checkpoint_directory =
        runner.begin("pseudobands without block " + std::to_string(block + 1));
    without.push_back(solve_mean_field(reduced, given, at, progress).quasiparticles);
  }
  return jackknife_errors(own, without);
}

void add_block_errors(const Deck& deck, BlockEnergies& energies, Progress& progress,
                      Calculation& run) {
  std::vector<std::vector<Quasiparticle>> without;
  for (int block = 0; block < deck.pseudobands.blocks; ++block) {
    progress.log("pseudobands without block " + std::to_string(block + 1));
    without.push_back(energies.without(block));
  }
  run.pseudoband_errors = jackknife_errors(run, without);
  // A job that will be repeated with more vectors needs no bound of the window width, unless the
  // width of the windows is to be chosen.
  const double target_ev = deck.pseudobands.target_error_ev;
  if (deck.pseudobands.windows != WindowForm::kSplines ||
      (target_ev > 0.0 && !deck.pseudobands.chooses_ratio &&
       largest_half_width_ev(*run.pseudoband_errors) > target_ev))
    return;
  progress.log("pseudobands with the energies of windows at their nodes");
  set_window_width(energies.at_nodes(), run);
}

namespace {

/// Largest number of vectors that a plan may take, in vectors of its pilot. A pilot whose vectors
/// the target has chosen counts as one of at least kLeastPilot vectors.
constexpr double kLargestGrowth = 64.0;
constexpr int kLeastPilot = 32;
/// Largest number of times that a job is repeated with more vectors.
constexpr int kMostRepeats = 3;
/// Vectors are planned for a half-width below the target by the root of this number, because the
/// pilot's half-width of a few blocks is uncertain by 40 %.
constexpr double kMargin = 1.5;

/// Calculates a deck and the statistical errors of its energies.
Calculation solved(const Deck& deck, const MeanField& given, const Workplace& place,
                   Progress& progress) {
  Calculation run = solve_mean_field(deck, given, place, progress);
  if (!run.pseudobands->keeps_all() && !run.pseudoband_errors)
    run.pseudoband_errors = statistical_errors(deck, given, place, run, progress);
  return run;
}

void note(std::string text, Calculation& run, Progress& progress) {
  progress.log(text);
  run.plan.notes.push_back(std::move(text));
}

/// Notes whether the half-widths are within the target.
void note_target(const Deck& deck, int vectors, Calculation& run, Progress& progress) {
  const double target = deck.pseudobands.target_error_ev;
  const std::string of_target = "pseudobands.target_error_ev = " + shown(target);
  if (!run.pseudoband_errors) {
    note(of_target + " is reached, because all bands are kept", run, progress);
    return;
  }
  const double reached = largest_half_width_ev(*run.pseudoband_errors);
  note(of_target + (reached <= target ? " is reached: " : " is not reached: ") +
           "the largest half-width of the 95 % intervals is " + shown(reached) + " eV with " +
           std::to_string(vectors) + " vectors a window" +
           (reached <= target ? "" : "; raise pseudobands.vectors"),
       run, progress);
}

}  // namespace

void add_window_width(const Deck& deck, const MeanField& given, const Workplace& place,
                      Progress& progress, Calculation& run) {
  if (!run.pseudoband_errors || !run.pseudoband_errors->window_width_ev.empty() ||
      deck.pseudobands.windows != WindowForm::kSplines)
    return;
  Deck unmoved = deck;
  unmoved.self_test = false;
  unmoved.pseudobands.moved_nodes = false;
  Workplace at = place;
  if (!place.checkpoint_directory.empty())
    at.checkpoint_directory = place.checkpoint_directory / "window_width";
  StudyRunner runner(at.checkpoint_directory, place.team.ranks(), progress);
  at.checkpoint_directory = runner.begin("pseudobands with the energies of windows at their nodes");
  set_window_width(solve_mean_field(unmoved, given, at, progress).quasiparticles, run);
}

namespace {

/// Narrows the windows of a target that has chosen them, if the bound of their width exceeds it.
/// The bound falls as F². @return true if it has
bool narrow_windows(const Calculation& run, Progress& progress, PseudobandOptions& planned) {
  constexpr double kShare = 0.8, kSmallest = 0.02;
  const std::vector<double>& widths = run.pseudoband_errors->window_width_ev;
  if (!planned.chooses_ratio || widths.empty()) return false;
  const double largest_ev = *std::max_element(widths.begin(), widths.end());
  if (largest_ev <= planned.target_error_ev || planned.ratio <= kSmallest) return false;
  const double ratio =
      std::max(kSmallest, planned.ratio * std::sqrt(kShare * planned.target_error_ev / largest_ev));
  progress.log("pseudobands: windows of ratio " + shown(planned.ratio) + " give a bound of " +
               shown(largest_ev) + " eV; " + shown(ratio) + " is planned for " +
               shown(planned.target_error_ev) + " eV");
  planned.ratio = ratio;
  return true;
}

/// Calculates a deck with its statistical errors, repeated with the vectors and windows that a
/// target takes. On return `planned` has those of the last job.
Calculation solve_to_target(const Deck& deck, const MeanField& given, const Workplace& place,
                            Progress& progress, Deck& planned) {
  const double target_ev = deck.pseudobands.target_error_ev;
  const int blocks = deck.pseudobands.blocks;
  int& vectors = planned.pseudobands.vectors;
  const int pilot =
      deck.pseudobands.chooses_vectors ? std::max(vectors, kLeastPilot) : deck.pseudobands.vectors;
  Calculation run = solved(planned, given, place, progress);
  if (target_ev <= 0.0) return run;
  for (int repeat = 0; repeat < kMostRepeats && run.pseudoband_errors; ++repeat) {
    const double reached_ev = largest_half_width_ev(*run.pseudoband_errors);
    const bool narrower = narrow_windows(run, progress, planned.pseudobands);
    if (reached_ev <= target_ev && !narrower) break;
    const double per_block =
        reached_ev <= target_ev
            ? vectors / blocks
            : std::ceil(kMargin * std::pow(reached_ev / target_ev, 2) * vectors / blocks);
    if (per_block * blocks > kLargestGrowth * pilot) {
      note("pseudobands.target_error_ev = " + shown(target_ev) + " is not reached: the largest " +
               "half-width of the 95 % intervals is " + shown(reached_ev) + " eV with " +
               std::to_string(vectors) + " vectors a window, and the target would take " +
               shown(per_block * blocks) + ", more than " + shown(kLargestGrowth * pilot) +
               "; raise pseudobands.vectors or the target",
           run, progress);
      return run;
    }
    const auto more = static_cast<int>(per_block) * blocks;
    if (more > vectors)
      progress.log("pseudobands: " + std::to_string(vectors) +
                   " vectors a window give half-widths up to " + shown(reached_ev) + " eV; " +
                   std::to_string(more) + " vectors are planned for " + shown(target_ev) + " eV");
    vectors = more;
    planned.pseudobands.chooses_vectors = false;
    run = solved(planned, given, place, progress);
  }
  note_target(deck, vectors, run, progress);
  return run;
}

}  // namespace

Calculation solve_with_errors(const Deck& deck, MeanField given, const Workplace& place,
                              Progress& progress) {
  if (solves_once(deck)) return solve_mean_field(deck, std::move(given), place, progress);
  Deck planned = deck;
  Calculation run = solve_to_target(deck, given, place, progress, planned);
  add_window_width(planned, given, place, progress, run);
  return run;
}

}  // namespace quasi::gw
