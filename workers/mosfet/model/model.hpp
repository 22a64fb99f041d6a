#pragma once

#include "workers/backend/host_device.hpp"

/// Types of the model that input, solver and kernels share.
namespace quasi::mosfet {

/// One pair of equivalent valleys. It has two valleys, and Φ belongs to one of them.
struct ValleyPair {
  double mx_m0 = 0;
  double my_m0 = 0;
  double mz_m0 = 0;
  double offset_ev = 0;  ///< added to every level of the pair, e.g. by strain
  /// Masses along the axes of the ellipse in the plane; 0: m_x and m_y. They differ from m_x and
  /// m_y if a shear has made the ellipse parallel to the axes.
  double long_axis_m0 = 0, short_axis_m0 = 0;
};

/// Kinds of scattering processes. A kind decides which pairs of valleys a process joins.
enum class ProcessKind {
  kElastic,    ///< same pair, energy conserved: acoustic phonons in equipartition
  kG,          ///< same pair, the opposite valley: one final valley
  kF,          ///< another pair: two final valleys each
  kRoughness,  ///< same valley, energy conserved: steps of the two interfaces
};

/// Returns true if a process of this kind conserves energy. Each ordered pair of states then has
/// weight ½.
QUASI_HD constexpr bool is_elastic(ProcessKind kind) {
  return kind == ProcessKind::kElastic || kind == ProcessKind::kRoughness;
}

/// Returns true if a process of this kind joins states of the pairs ν and ν'.
QUASI_HD constexpr bool joins(ProcessKind kind, int valley, int other) {
  return (kind == ProcessKind::kF) != (valley == other);
}

enum class ScatteringScheme { kNone, kBalanced, kPaper };

/// Upwind rule of ∂_φ(a³Φ). On the half circle the sign of a³ is that of ε' (kUpwind). On the full
/// circle the flux is split (kSplit).
enum class PhiFlux { kUpwind, kSplit };

/// Range of φ: 0 … π with mirror symmetry, or the whole circle.
enum class AngleRange { kHalf, kFull };

}  // namespace quasi::mosfet
