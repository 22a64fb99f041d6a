#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "workers/gw/model/sigma_options.hpp"
#include "workers/gw/physics/contour.hpp"
#include "workers/gw/solver/self_energy/plasmon_pole_model.hpp"
#include "workers/gw/solver/step_context.hpp"

// Begin here to read about Σ (docs/theory/gw.md 6 to 8). This file has the diagonal Σ: one part of
// its sum over q and inner bands on one device (sigma.cpp), and all parts on all devices
// (sigma_parts.cpp). Read on in this order:
//
//   sigma_sum.hpp           W of one q, symmetry of the zone, and steps that all sums share
//   zone_sum/               pair products at one q, and the terms that a block of bands adds
//   plasmon_pole_model.hpp  poles of W
//   sigma_subspace.hpp      W at many frequencies, and W that several devices share
//   sigma_matrix.hpp        the full matrix Σ_lm(E)
//   quasiparticle.hpp, graphical.hpp, dyson.hpp  quasiparticle energies from Σ
//   outer_loop.hpp, loops/  self-consistency in energies or states
//   sigma_stage.hpp         the steps of a job after the diagonal Σ
namespace quasi::gw {

/// Diagonal self-energy of the outer states at one k and spin (docs/theory/gw.md 6), Ry. Values are
/// raw; quasiparticles() and spectra() average over multiplets.
struct SelfEnergyAtK {
  int k_index = 0;
  int spin = 0;
  std::vector<double> x_ry;              ///< bare exchange, [n_l]
  std::vector<std::vector<Cplx>> sx_ry;  ///< SX − X; residues for kContour; [n_offsets][n_l]
  std::vector<std::vector<Cplx>> ch_ry;  ///< CH; integral along iu for kContour; [n_offsets][n_l]
  std::vector<Cplx> slope;               ///< dΣ/dE, [n_l]; empty: not wanted
  std::vector<Cplx> ch_static_ry;        ///< static CH by the band sum, [n_l]; with exact_static_ch
  std::vector<Cplx> ch_exact_ry;         ///< static CH, completed; with exact_static_ch
  /// The known closed sum less the same sum over bands and vectors (docs/theory/gw.md 9.4), which
  /// finish_self_energy() adds to CH; with closed_sum_x_ry, [n_l].
  std::vector<Cplx> closed_sum_ry;
  std::vector<std::vector<Cplx>> axis_ry;  ///< kImaginaryAxis: Σ_c(μ + iω), [n_points][n_l]
  std::vector<double> subspace_error_ry;   ///< bound of the error of the subspace (FormsOfBlock),
                                           ///< [n_l]; empty without a subspace of Σ
};

/// Counts of the screening that Σ is calculated with, and times.
struct SigmaStatistics {
  std::int64_t elements = 0;                           ///< of the pole models of all q
  std::int64_t skipped = 0;                            ///< negligible elements
  std::int64_t invalid = 0;                            ///< elements with ω̃² < 0
  std::int64_t subspace_vectors = 0, plane_waves = 0;  ///< summed over q, where a subspace is used
  std::map<std::string, double> seconds;  ///< by step, added up over the devices of this process
};

/// A part of the double sum over irreducible q and inner bands. Terms that do not depend on the
/// inner band (exchange, completed CH, statistics) belong to the part that begins with band 0. If
/// the poles are cut into slices, one of these parts has slice 0, and the terms belong to it alone.
struct SigmaPart {
  std::size_t q_begin = 0, q_end = 0;
  std::int64_t band_begin = 0, band_end = 0;
  int slice = 0;  ///< number of the slice of the poles that is summed
};

/// Calculates Σ of all outer k by sums over irreducible q and their stars, on one device, with
/// whole matrices.
/// @param epsilon     ε⁻¹ in the order of screening_points()
/// @param statistics  if given, gets the counts
std::vector<SelfEnergyAtK> self_energy(const MeanField& field,
                                       const std::vector<DielectricMatrix>& epsilon,
                                       const SigmaOptions& options, const DeviceContext& context,
                                       SigmaStatistics* statistics = nullptr);

/// Makes self-energies of the right shape with all elements 0, by outer k, then spin.
std::vector<SelfEnergyAtK> empty_self_energy(const MeanField& field, const SigmaOptions& options);

/// Terms that one part adds to Σ, with the counts of its screening.
struct PartOfSelfEnergy {
  std::vector<SelfEnergyAtK> sums;
  SigmaStatistics statistics;
};
struct ScreeningOnDevice;
/// Calculates one part of Σ on one device. finish_self_energy() completes the sum of all parts.
/// @param screening  screening of the last q on this device; a part of the same q takes it over
PartOfSelfEnergy self_energy_part(const MeanField& field,
                                  const std::vector<DielectricMatrix>& epsilon,
                                  const SigmaOptions& options, const SigmaPart& part,
                                  const DeviceContext& context, ScreeningOnDevice& screening);
/// Completes the sum of all parts: CH of COHSEX, and the continuation from the imaginary axis.
void finish_self_energy(const MeanField& field, const SigmaOptions& options,
                        std::vector<SelfEnergyAtK>& sums);

/// Receives an estimate of Σ after each part. With one q the estimate is the sum over the finished
/// bands. With several q it is q → 0 and the mean of the finished other q in place of all of them.
/// Calls come from any thread, one at a time.
using RunningSums = std::function<void(const std::vector<SelfEnergyAtK>&)>;

/// Calculates Σ by parts of (q, block of inner bands) on all devices. The parts do not depend on
/// the number of devices and are added in order. Finished parts go into the checkpoint.
/// @param statistics  if given, gets the counts and times
/// @param running     if given, gets an estimate of Σ after each part
std::vector<SelfEnergyAtK> self_energy(const MeanField& field,
                                       const std::vector<DielectricMatrix>& epsilon,
                                       const SigmaOptions& options, const StepContext& context,
                                       SigmaStatistics* statistics,
                                       const RunningSums& running = {});

/// Bands [begin, end) of one spin at one k of the irreducible list.
struct BandsAtK {
  int k_index = 0;
  int spin = 0;
  int begin = 0, end = 0;

  int size() const { return end - begin; }
};

/// Calculates ⟨n|V|m⟩ of a local potential between bands of one k; Ry, [n][m].
std::vector<Cplx> potential_matrix(const MeanField& field, const PlaneWaveField& potential,
                                   const BandsAtK& bands, GwKernels& kernels);

}  // namespace quasi::gw
