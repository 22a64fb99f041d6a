#include "workers/gw/solver/self_energy/sigma_stage.hpp"

#include <cmath>
#include <cstdio>
#include <memory>

#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/bands/band_character.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"
#include "workers/gw/solver/mean_field/espresso/file_or_save.hpp"
#include "workers/gw/solver/screening/epsilon.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {

namespace {

/// Sets E_qp0 and E_qp1 to the energies of G. After a loop over states the quasiparticle equation
/// reproduces them.
void report_states(const MeanField& field, std::vector<Quasiparticle>& list) {
  for (Quasiparticle& qp : list) {
    qp.qp1_ev = field.waves.energy(qp.spin - 1, qp.k_index, qp.band - 1) * kRydberg_ev;
    qp.qp0_ev = qp.qp1_ev;
  }
}

/// Prefix of names in the checkpoint. It distinguishes the options that enter after the diagonal Σ,
/// which the digest of the job does not contain.
std::string scope_of(const SigmaRequest& wanted, const ExchangeCorrelation& vxc) {
  ProblemDigest d;
  const SigmaMatrixOptions& m = wanted.matrix;
  for (const double value :
       {1.0 * static_cast<int>(wanted.outer.kind), wanted.outer.start_shift_ev,
        wanted.remainder ? 1.0 : 0.0, 1.0 * static_cast<int>(wanted.derivative),
        wanted.derivative_step_ev, 1.0 * static_cast<int>(m.kernel.method),
        1.0 * static_cast<int>(m.kernel.products), m.kernel.tolerance_relative, m.step_ry,
        m.margin_ry})
    d.add(value);
  for (const auto& matrix : vxc.matrix_ev) d.add(matrix);
  for (const auto& list : vxc.diagonal_ev()) d.add(list);
  char text[24];
  std::snprintf(text, sizeof text, "%016llx/", static_cast<unsigned long long>(d.value()));
  return text;
}

void iterate(const SigmaRequest& wanted, const ExchangeCorrelation& vxc, const StepContext& context,
             Calculation& run) {
  const OuterLoopOptions& loop = wanted.outer;
  const std::string scope = scope_of(wanted, vxc);
  const OuterLoopProblem problem{run.field,       run.epsilon,     run.plan.sigma,
                                 context.coulomb, context.team,    context.checkpoint,
                                 scope,           context.progress};
  const auto screening = [&](const MeanField& field) {
    return dielectric_matrices(field, screening_points(field), run.plan.epsilon, context);
  };
  if (replaces_states(loop.kind)) {
    iterate_states(problem, loop, wanted.matrix, vxc.matrix_ev, screening, &run.outer);
    // Parts of Σ between the converged states; their V_xc is no longer that of the file.
    context.checkpoint.enter(scope + "end/");
    run.statistics = {};
    run.sigma = self_energy(run.field, run.epsilon, run.plan.sigma, context, &run.statistics);
    run.quasiparticles = quasiparticles(run.field, run.sigma, {}, run.plan.sigma,
                                        run.plan.derivative, wanted.remainder);
    report_states(run.field, run.quasiparticles);
    return;
  }
  run.quasiparticles = iterate_eigenvalues(problem, {loop, run.plan.derivative, wanted.remainder},
                                           vxc.diagonal_ev(), screening, &run.sigma, &run.outer);
}

}  // namespace

void solve_further(const SigmaRequest& wanted, const ExchangeCorrelation& vxc,
                   const StepContext& context, Calculation& run) {
  if (wanted.outer.kind != OuterLoop::kNone) iterate(wanted, vxc, context, run);
  if (!wanted.full_matrix) return;
  context.checkpoint.enter(scope_of(wanted, vxc) + "full/");
  run.matrices = self_energy_matrix(run.field, run.epsilon, run.plan.sigma, wanted.matrix, context,
                                    &run.matrix_report);
  if (vxc.empty()) {
    if (wanted.solution == Solution::kDyson)
      throw InvalidInput("sigma.solution = \"dyson\" needs V_xc: give meanfield.vxc");
    return;
  }
  run.dyson = solve_dyson(run.field, run.matrices, vxc.matrix_ev, run.plan.sigma);
  if (wanted.solution != Solution::kDyson) return;
  for (std::size_t i = 0; i < run.quasiparticles.size(); ++i) {
    Quasiparticle& qp = run.quasiparticles[i];
    const DysonState& state = run.dyson[i];
    if (!state.energy_ev)
      throw NotConverged("the Dyson equation has no solution for band " + std::to_string(qp.band) +
                         " at k-point " + std::to_string(qp.k_index + 1) +
                         " within the energies of the matrix; raise sigma.matrix_margin_ev");
    qp.qp1_ev = state.energy_ev;
    qp.z = state.z;
  }
}

PathStates path_states(const MeanFieldOptions& source, const SigmaRequest& wanted,
                       const MeanField& field, GwKernels& kernels) {
  const BandOrder order = wanted.path_order;
  if (order == BandOrder::kEnergy) return {nullptr, "energy, as sigma.band_order asks"};
  if (replaces_states(wanted.outer.kind))
    return {nullptr, "energy: the loop over states leaves none of the mean field to compare with"};
  if (source.empirical)
    return {empirical_states(source.crystal, field.crystal(), kernels),
            "character, by the states of the built-in crystal's Hamiltonian"};
  if (source.vkb.empty())
    return {
        nullptr,
        "energy: without meanfield.vsc and meanfield.vkb no states are known between the k-points"};
  const Projectors projectors = load_projectors(source.vkb);
  require_same_crystal(field.waves.header, "WFN", projectors.header, "VKB");
  auto nonlocal = std::make_shared<const RadialProjectors>(projectors);
  if (nonlocal->residual() > source.max_projector_residual) {
    const std::string what = "the projectors of VKB are known between its plane waves only to " +
                             shown(nonlocal->residual()) + " of their maximum, more than " +
                             shown(source.max_projector_residual) +
                             " (meanfield.max_projector_residual)";
    if (order == BandOrder::kCharacter)
      throw InvalidInput("sigma.band_order = \"character\": " + what + "; choose \"energy\"");
    return {nullptr, "energy: " + what};
  }
  auto potential = std::make_shared<const PlaneWaveField>(load_field(source.vsc, "VSC"));
  require_same_crystal(field.waves.header, "WFN", potential->header, "VSC");
  const StatesAt states = [crystal = field.crystal(), cutoff = field.waves.wavefunction_cutoff_ry,
                           potential, nonlocal, &kernels](const Vec3& k, int spin, int n_bands) {
    return dense_states_at({crystal, cutoff, *potential, *nonlocal}, k, spin, n_bands, kernels);
  };
  const DenseStates first = states(field.waves.k[0], 0, field.n_occupied);
  for (int band = 0; band < field.n_occupied; ++band)
    if (std::abs(first.energy_ry[static_cast<std::size_t>(band)] - field.waves.energy(0, 0, band)) >
        1e-4)
      throw InvalidInput("the Hamiltonian of VSC and VKB has the eigenvalue " +
                         shown(first.energy_ry[static_cast<std::size_t>(band)]) + " Ry for band " +
                         std::to_string(band + 1) + " at the first k-point, WFN has " +
                         shown(field.waves.energy(0, 0, band)) +
                         "; are meanfield.vsc and meanfield.vxc exchanged?");
  return {states, "character, by the states of the Hamiltonian of VSC and VKB"};
}

void bands_along_path(const BandPath& path, const PathStates& states, Progress& progress,
                      Calculation& run) {
  const SigmaOptions& o = run.plan.sigma;
  const auto n = static_cast<std::size_t>(o.band_max - o.band_min + 1),
             n_k = run.field.waves.k.size();
  run.band_order = states.why;
  progress.log("bands along the path are followed by " + states.why);
  for (int spin = 1; spin <= run.field.n_spins(); ++spin) {
    std::vector<std::vector<double>> mean_field(n, std::vector<double>(n_k)),
        quasiparticle = mean_field;
    bool known = true;
    for (const Quasiparticle& qp : run.quasiparticles) {
      if (qp.spin != spin) continue;
      const auto band = static_cast<std::size_t>(qp.band - o.band_min),
                 k = static_cast<std::size_t>(qp.k_index);
      mean_field[band][k] = qp.mean_field_ev;
      known = known && qp.qp1_ev.has_value();
      quasiparticle[band][k] = qp.qp1_ev.value_or(0.0);
    }
    if (!states.states) {
      run.mean_field_bands.push_back(interpolate_bands(run.field, mean_field, path));
      if (known)
        run.quasiparticle_bands.push_back(interpolate_bands(run.field, quasiparticle, path));
      continue;
    }
    std::vector<std::vector<double>> correction;
    if (known) correction = quasiparticle;
    for (std::size_t b = 0; b < correction.size(); ++b)
      for (std::size_t ik = 0; ik < n_k; ++ik) correction[b][ik] -= mean_field[b][ik];
    const BandWindow window{.spin = spin - 1,
                            .band_begin = o.band_min - 1,
                            .n_bands = static_cast<int>(n),
                            .mean_field_ev = std::move(mean_field),
                            .correction_ev = std::move(correction)};
    CharacterBands bands = bands_by_character(run.field, window, path, states.states, progress);
    if (known) {
      run.quasiparticle_bands.push_back(bands.mean_field);
      run.quasiparticle_bands.back().energy_ev = std::move(bands.corrected_ev);
      run.band_share.push_back(std::move(bands.share));
    }
    run.mean_field_bands.push_back(std::move(bands.mean_field));
  }
}

void note_spectra(const SigmaRequest& wanted, Calculation& run) {
  if (run.spectra.front().spectral_per_ev.empty())
    run.plan.notes.push_back(
        "A(ω) is absent from the spectra, because the mean field has no V_xc (meanfield.vxc)");
  else if (wanted.spectrum.step_ev > wanted.spectrum.broadening_ev)
    run.plan.notes.push_back(
        "sigma.spectrum_step_ev = " + shown(wanted.spectrum.step_ev) +
        " exceeds sigma.spectrum_broadening_ev = " + shown(wanted.spectrum.broadening_ev) +
        ", half the width of the narrowest peak of A(ω); lower the step");
}

void note_gaps(Calculation& run) {
  for (const GapAtK& gap : gaps(run.field, run.quasiparticles).direct)
    if (gap.inverted)
      run.plan.notes.push_back(
          "at k = (" + shown(gap.k[0]) + ", " + shown(gap.k[1]) + ", " + shown(gap.k[2]) +
          "), spin " + std::to_string(gap.spin) +
          ", a band that the mean field occupies has a higher quasiparticle energy than an empty "
          "one; Σ was calculated with the occupations of the mean field");
}

}  // namespace quasi::gw
