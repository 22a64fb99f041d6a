#pragma once

#include <filesystem>

#include "workers/gw/model/eigensolver_options.hpp"
#include "workers/gw/model/empirical_crystal.hpp"

namespace quasi::gw {

/// Method of the limit q → 0 if the mean field comes from files (docs/theory/gw.md 4.1).
enum class LongWave {
  kStates,    ///< occupied states at k + q₀ from WFNq
  kDense,     ///< occupied states at k + q₀ by diagonalising H of VSC and VKB
  kVelocity,  ///< k·p, with the velocity of H of VSC and VKB
};

/// Begin here: names the source of the mean field. It is a set of files of BerkeleyGW, a folder of
/// Quantum ESPRESSO or a built-in crystal. mean_field.hpp holds its data. epsilon_options.hpp,
/// sigma_options.hpp and outer_loop_options.hpp describe the steps that follow.
struct MeanFieldOptions {
  bool empirical = false;  ///< true: `crystal`; false: the files below, each empty if it is not
                           ///< given. All but wfnq and wfn_outer may be one folder PREFIX.save,
                           ///< and these two may be folders of their own.
  std::filesystem::path wfn, wfnq, wfn_outer, rho, vxc, vsc, vkb;
  /// Inner states of Σ where they are those of a displaced crystal, and its VSC and VKB for bands
  /// that WFN_inner does not hold; empty: not given.
  std::filesystem::path wfn_inner, vsc_inner, vkb_inner;
  /// True: the V_xc that Σ replaces is that of the density with the core charge of the
  /// pseudopotentials. It belongs to a folder PREFIX.save.
  bool vxc_core_charge = false;
  EmpiricalCrystal crystal;
  /// True: the built-in crystal has the V_xc of its density in the local-density approximation
  /// (local_density.hpp). False: it has no V_xc.
  bool local_density = false;
  LongWave long_wave = LongWave::kStates;
  Vec3 q0{0.001, 0.0, 0.0};  ///< reduced; the shift of kDense and the direction of kVelocity
  /// Largest error of the projectors between the plane waves of VKB, relative to their maximum.
  double max_projector_residual = 1e-4;
  /// Memory for the states of WFN, and for those of WFNq; 0: half of what the host can give.
  double state_memory_mib = 0.0;
  EigensolverOptions eigensolver;  ///< for states that WFN and WFNq do not hold
};

}  // namespace quasi::gw
