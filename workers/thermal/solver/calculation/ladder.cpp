#include "workers/thermal/solver/calculation/ladder.hpp"

#include <algorithm>
#include <cstdlib>

#include "workers/backend/error.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/thermal/input/control/namelist_section.hpp"
#include "workers/thermal/solver/renormalisation/static_bubble.hpp"

namespace quasi::thermal {
namespace {

/// Appends the tensors of one case to the level of the same name, which is made if it is missing.
class LevelList {
 public:
  LevelList(LadderPhonons phonons, std::vector<LadderLevel>& levels)
      : phonons_(phonons), levels_(levels) {}

  void add(bool four_phonons, bool iterated, bool coherences, const Mat3& kappa) {
    for (LadderLevel& level : levels_)
      if (level.phonons == phonons_ && level.four_phonons == four_phonons &&
          level.iterated == iterated && level.coherences == coherences) {
        level.kappa_w_per_mk.push_back(kappa);
        return;
      }
    levels_.push_back({phonons_, four_phonons, iterated, coherences, {kappa}});
  }
  void add(bool four_phonons, const LevelConductivity& kappa) {
    add(four_phonons, false, false, kappa.kappa_rta_w_per_mk);
    if (kappa.kappa_w_per_mk) add(four_phonons, true, false, *kappa.kappa_w_per_mk);
  }

 private:
  LadderPhonons phonons_;
  std::vector<LadderLevel>& levels_;
};

void add_levels(LadderPhonons phonons, const SolvedCase& solved, Ladder& ladder) {
  LevelList levels(phonons, ladder.levels);
  const bool four_phonons = solved.four_phonon != nullptr;
  for (std::size_t t = 0; t < solved.run.by_temperature.size(); ++t) {
    const TemperatureResult& result = solved.run.by_temperature[t];
    if (four_phonons) levels.add(false, solved.three_phonons_alone[t]);
    levels.add(four_phonons, level_of(result));
    if (!solved.derived || solved.derived->coherence.empty()) continue;
    Mat3 total = result.converged ? result.kappa_w_per_mk : result.kappa_rta_w_per_mk;
    const Mat3& coherence = solved.derived->coherence[t].kappa_w_per_mk;
    for (int i = 0; i < 3; ++i) total[i] = total[i] + coherence[i];
    levels.add(four_phonons, result.converged, true, total);
  }
}

/// Returns the checkpoint directory of one case, which the leading rank makes. @throws StorageError
std::filesystem::path checkpoint_directory(const CaseSite& site, const std::string& name) {
  if (site.checkpoint_directory.empty()) return {};
  const std::filesystem::path directory = site.checkpoint_directory / name;
  std::error_code failure;
  if (site.ranks.leads()) std::filesystem::create_directories(directory, failure);
  if (failure)
    throw StorageError("cannot create '" + directory.string() + "': " + failure.message());
  return directory;
}

/// Solves one case of the ladder and hands it on.
class CaseSolver {
 public:
  CaseSolver(const CaseOptions& options, const CaseSite& site, const TakeLadderCase& take,
             Progress& progress)
      : options_(options), site_(site), take_(take), progress_(progress) {
    options_.three_phonons_alone = true;
  }

  /// @return ω of the modes
  std::vector<double> solve(const std::string& name, const LatticeModel& model,
                            const std::vector<double>& temperatures_k, LadderPhonons phonons,
                            Ladder& ladder) {
    progress_.log("phonons of the case '" + name + "'");
    options_.transport.temperatures_k = temperatures_k;
    options_.four_phonon.temperatures_k = temperatures_k;
    const SolvedCase solved =
        solve_case(model, options_, {site_.devices, site_.ranks, checkpoint_directory(site_, name)},
                   progress_);
    add_levels(phonons, solved, ladder);
    take_({name, model, temperatures_k, solved});
    return solved.run.modes.omega_rad_ps;
  }

  /// Solves the cases of one temperature.
  /// @param work  a copy of `model`, whose second order is replaced
  LadderStep step(const LatticeModel& model, const SelfConsistentPhonons& phonons,
                  double temperature_k, LatticeModel& work, Ladder& ladder) {
    const HarmonicOptions& harmonic = options_.transport.harmonic;
    LadderStep step;
    step.temperature_k = temperature_k;
    const Stopwatch clock;
    step.constants = phonons.solve(temperature_k);
    share(step.constants.correction);
    ladder.renormalise_seconds += clock.seconds();
    progress_.log("self-consistent phonons at T = " + number_text(temperature_k) +
                  " K: " + std::to_string(step.constants.iterations) + " iterations");
    work.second_order =
        with_correction(model.second_order, step.constants.correction, harmonic.constants);
    step.omega_rad_ps = solve_at(temperature_k, work, LadderPhonons::kRenormalised, ladder);
    if (!options_.renormalisation.bubble) return step;
    const Stopwatch bubble_clock;
    step.bubble = bubble_pairs(work, options_, temperature_k, site_.devices.front());
    share(step.bubble);
    work.second_order = with_correction(work.second_order, step.bubble, harmonic.constants);
    ladder.bubble_seconds += bubble_clock.seconds();
    step.bubble_omega_rad_ps = solve_at(temperature_k, work, LadderPhonons::kBubble, ladder);
    return step;
  }

 private:
  /// Gives every rank the values of the leading one. Bits of devices of other models differ,
  /// and all ranks must scatter the same phonons.
  void share(std::vector<PairCorrection>& pairs) const {
    std::vector<double> values;
    for (const PairCorrection& pair : pairs)
      values.insert(values.end(), pair.value_ev_a2.begin(), pair.value_ev_a2.end());
    site_.ranks.broadcast(values, 0);
    for (std::size_t e = 0; e < values.size(); ++e) pairs[e / 9].value_ev_a2[e % 9] = values[e];
  }
  /// @return ω of the modes @throws InvalidInput naming the temperature
  std::vector<double> solve_at(double temperature_k, const LatticeModel& model,
                               LadderPhonons phonons, Ladder& ladder) {
    try {
      return solve(ladder_case_name(phonons, temperature_k), model, {temperature_k}, phonons,
                   ladder);
    } catch (const InvalidInput& failure) {
      throw InvalidInput(std::string("phonons renormalised ") +
                         (phonons == LadderPhonons::kBubble ? "with the bubble " : "") +
                         "at T = " + number_text(temperature_k) + " K: " + failure.what());
    }
  }

  CaseOptions options_;
  const CaseSite& site_;
  const TakeLadderCase& take_;
  Progress& progress_;
};

/// Computes the bare modes, which may be imaginary. @return whether κ of bare phonons can be solved
bool add_bare_modes(const LatticeModel& model, const HarmonicOptions& harmonic, Ladder& ladder,
                    Progress& progress) {
  HarmonicOptions permissive = harmonic;
  permissive.allow_imaginary = true;
  const Modes modes =
      solve_harmonic(model.crystal, model.second_order, model.symmetry, permissive, progress);
  ladder.bare_omega_rad_ps = modes.omega_rad_ps;
  if (modes.most_negative_omega_rad_ps >= 0.0 || harmonic.allow_imaginary) return true;
  ladder.warnings.push_back("the bare modes are imaginary, the worst with ω = " +
                            number_text(modes.most_negative_omega_rad_ps) +
                            "i rad/ps: the levels of bare phonons are left out");
  return false;
}

/// Warns of a mesh that is too coarse for the pairs of displacements of the fourth order. On a mesh
/// of n divisions, displacements n cells apart are equal.
void check_mesh(const SparseForceConstants& fourth, const Index3& mesh, Ladder& ladder) {
  Index3 needed{1, 1, 1};
  for (std::int64_t b = 0; b < fourth.n_blocks(); ++b) {
    const int* cell = &fourth.cell[static_cast<std::size_t>(9 * b)];
    for (int d = 0; d < 3; ++d)
      needed[d] = std::max(needed[d], 2 * std::abs(cell[3 + d] - cell[6 + d]));
  }
  const auto text = [](const Index3& n) {
    return std::to_string(n[0]) + " " + std::to_string(n[1]) + " " + std::to_string(n[2]);
  };
  if (mesh[0] < needed[0] || mesh[1] < needed[1] || mesh[2] < needed[2])
    ladder.warnings.push_back("'renormalise_mesh' = " + text(mesh) +
                              " is coarse for the pairs of atoms of the fourth order, whose "
                              "displacements are then those of periodic images; use at least " +
                              text(needed));
}

}  // namespace

std::string ladder_case_name(LadderPhonons phonons, double temperature_k) {
  return (phonons == LadderPhonons::kBubble ? "bubble_" : "renormalised_") +
         number_text(temperature_k) + "K";
}

std::vector<PairCorrection> bubble_pairs(const LatticeModel& model, const CaseOptions& options,
                                         double temperature_k, const Device& device) {
  SymmetryOptions sampling = options.symmetry;
  sampling.mesh = options.renormalisation.mesh;
  const Symmetry symmetry = find_symmetry(model.crystal, sampling);
  return static_bubble(model, symmetry, options.transport.harmonic, temperature_k, device)
      .correction;
}

SelfConsistentOptions self_consistent_options(const RenormalisationOptions& options) {
  return {.mesh = QMesh{{options.mesh[0], options.mesh[1], options.mesh[2]}},
          .tolerance = options.tolerance,
          .max_iterations = options.max_iterations};
}

Ladder solve_ladder(const LatticeModel& model, const SparseForceConstants& fourth,
                    const CaseOptions& options, const CaseSite& site, const TakeLadderCase& take,
                    Progress& progress) {
  Ladder ladder;
  const HarmonicOptions& harmonic = options.transport.harmonic;
  check_mesh(fourth, options.renormalisation.mesh, ladder);
  CaseSolver solver(options, site, take, progress);
  ladder.bare_solved = add_bare_modes(model, harmonic, ladder, progress);
  if (ladder.bare_solved)
    solver.solve("bare", model, options.transport.temperatures_k, LadderPhonons::kBare, ladder);
  LatticeModel renormalised = model;
  const Stopwatch clock;
  const SelfConsistentPhonons phonons(model.crystal, model.second_order, fourth, harmonic,
                                      self_consistent_options(options.renormalisation),
                                      site.devices.front());
  ladder.renormalise_seconds += clock.seconds();
  for (const double temperature_k : options.transport.temperatures_k)
    ladder.steps.push_back(solver.step(model, phonons, temperature_k, renormalised, ladder));
  return ladder;
}

}  // namespace quasi::thermal
