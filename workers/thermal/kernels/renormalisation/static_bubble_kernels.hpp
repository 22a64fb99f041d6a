#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/complex.hpp"
#include "workers/backend/device/device.hpp"
#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"

namespace quasi::thermal {

/// Phonons and constants of a static bubble (docs/theory/thermal.md 14.1).
struct StaticBubbleProblem {
  QMesh mesh;
  Fc3Transform transform;
  std::vector<double> omega_rad_ps;      ///< [n_q][branch]; 0 for the three translations
  std::vector<double> occupation;        ///< [n_q][branch]
  std::vector<Complex<double>> vectors;  ///< [n_q][branch][3κ+α]
  double scale = 0.0;                    ///< ħ/4N in units in which U² is (eV/(Å³ amu^{3/2}))²
  double inverse_kt_ps = 0.0;            ///< ħ/k_BT; 0 at T = 0, where no mode is occupied
};

/// Sums the static bubble on one device. `load` moves the problem there, which must outlive the
/// object. See docs/theory/thermal.md 14.1 for the equations.
class StaticBubbleKernels {
 public:
  virtual ~StaticBubbleKernels() = default;

  /// @throws OutOfMemory, naming need and remedy, if the arrays do not fit the device.
  virtual void load(const StaticBubbleProblem& problem) = 0;
  /// Computes D^B at some points of the mesh.
  /// @return [points][3κ+α][3κ'+β] in (rad/ps)²
  virtual std::vector<std::complex<double>> matrices(const std::vector<std::int64_t>& points) = 0;
};

/// @throws BackendAbsent if the back end of the device is not in this build.
std::unique_ptr<StaticBubbleKernels> make_static_bubble_kernels(const Device& device);
std::unique_ptr<StaticBubbleKernels> make_static_bubble_kernels_cuda(const Device& device);

}  // namespace quasi::thermal
