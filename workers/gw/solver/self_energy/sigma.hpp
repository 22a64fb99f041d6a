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
  std::vector<std::vector<Cplx>> axis_ry;  ///< kImaginaryAxis: Σ_c(μ + iω), [n_points][n_l]
  std::vector<double> subspace_error_ry;   ///< bound of what the subspace costs (FormsOfBlock),
                                           ///< [n_l]; where one is used
};

struct SigmaStatistics {
  std::int64_t elements = 0, skipped = 0, invalid = 0;
  std::int64_t subspace_vectors = 0, plane_waves = 0;  ///< summed over q, where a subspace is used
  std::map<std::string, double> seconds;  ///< by step, added up over devices; of this process
};

/// A part of the double sum over irreducible q and inner bands. Terms that do not depend on the
/// inner band (exchange, completed CH, statistics) belong to the part that begins with band 0.
struct SigmaPart {
  std::size_t q_begin = 0, q_end = 0;
  std::int64_t band_begin = 0, band_end = 0;
};

/// Σ of all outer k by sums over irreducible q and their stars, on one device.
/// @param epsilon  ε⁻¹ in the order of screening_points()
std::vector<SelfEnergyAtK> self_energy(const MeanField& field,
                                       const std::vector<DielectricMatrix>& epsilon,
                                       const SigmaOptions& options,
                                       const CoulombInteraction& coulomb, GwKernels& kernels,
                                       Progress& progress, SigmaStatistics* statistics);

/// Self-energies of the right shape with all elements 0.
std::vector<SelfEnergyAtK> empty_self_energy(const MeanField& field, const SigmaOptions& options);
struct ScreeningOnDevice;
/// Σ of one part; finish_self_energy() completes the sum of all parts.
/// @param kept  holds the screening of the last q on these kernels, which the next part of that q
/// takes over; null: nothing is kept
std::vector<SelfEnergyAtK> self_energy_part(const MeanField& field,
                                            const std::vector<DielectricMatrix>& epsilon,
                                            const SigmaOptions& options, const SigmaPart& part,
                                            const CoulombInteraction& coulomb, GwKernels& kernels,
                                            Progress& progress, SigmaStatistics* statistics,
                                            ScreeningOnDevice* kept = nullptr);
void finish_self_energy(const MeanField& field, const SigmaOptions& options,
                        std::vector<SelfEnergyAtK>& sums);

/// Receives an estimate of Σ after each part. With one q it is the sum over the bands so far, else
/// q → 0 and the mean of the finished other q in place of all of them. Calls come from any thread,
/// one at a time.
using RunningSums = std::function<void(const std::vector<SelfEnergyAtK>&)>;

/// Σ by parts of (q, block of inner bands) on all devices. The parts do not depend on the number of
/// devices and are added in order; finished parts go into the checkpoint.
/// @param running  if given, gets an estimate of Σ after each part
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
