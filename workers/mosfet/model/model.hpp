#pragma once

#include "workers/backend/host_device.hpp"

/// Words of the model that input, solver and kernels share.
namespace quasi::mosfet {

/// One pair of equivalent valleys. The degeneracy is two: Φ belongs to one valley of the pair.
struct ValleyPair {
  double mx_m0 = 0;
  double my_m0 = 0;
  double mz_m0 = 0;
  double offset_ev = 0;  ///< added to every level of the pair, e.g. by strain
};

/// Which pairs a scattering process joins.
enum class ProcessKind {
  kElastic,    ///< same pair, no energy: acoustic phonons, equipartition
  kG,          ///< same pair, the opposite valley: one final valley
  kF,          ///< another pair: two final valleys each
  kRoughness,  ///< same valley, no energy: steps of the two interfaces
};

/// True if a process of this kind changes no energy: each ordered pair of states then has weight ½.
QUASI_HD constexpr bool is_elastic(ProcessKind kind) {
  return kind == ProcessKind::kElastic || kind == ProcessKind::kRoughness;
}

/// True if a process of this kind joins states of the pairs ν and ν'.
QUASI_HD constexpr bool joins(ProcessKind kind, int valley, int other) {
  return (kind == ProcessKind::kF) != (valley == other);
}

enum class ScatteringScheme { kNone, kBalanced, kPaper };

/// How ∂_φ(a³Φ) is upwinded: on the half circle the sign of a³ is that of ε'; else split the flux.
enum class PhiFlux { kUpwind, kSplit };

/// φ = 0 … π with mirror symmetry, or the whole circle.
enum class AngleRange { kHalf, kFull };

}  // namespace quasi::mosfet
