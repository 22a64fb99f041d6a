#pragma once

#include <array>
#include <complex>
#include <memory>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/mosfet/kernels/wave/wave_problem.hpp"

namespace quasi::mosfet {

/// Response to 1 V at one terminal.
struct WaveResponse {
  std::vector<std::complex<double>> potential_v;  ///< δV of all nodes [nx][nz]
  /// Electrons through the faces next to source and drain, both valleys, 1/(nm fs).
  std::array<std::complex<double>, kWaveContacts> current{};
};
/// Responses to 1 V at source, drain and gate, one after the other.
struct WaveResponses {
  std::array<WaveResponse, kWaveColumns> of;
  int products = 0;  ///< solutions of all lines of the three together
};

/// Solves the equations of one linearised steady state (docs/theory/mosfet.md 17.8) on one device.
/// Lines, scattering and vectors stay there. Equal calls on one device have equal bits, in any
/// order of the frequencies. Not thread-safe.
class WaveKernels {
 public:
  virtual ~WaveKernels() = default;
  /// Solves transport and field together for δV and δg, and then transport alone for the δV that
  /// was found, so that currents add to zero. @throws NotConverged
  virtual WaveResponses respond(double omega_per_fs) = 0;
};

/// Makes the kernels of a problem on a device and copies its tables there. @throws BackendAbsent
/// for a CUDA device in a build without CUDA, DeviceOutOfMemory if the tables do not fit
std::unique_ptr<WaveKernels> make_wave_kernels(const WaveProblem& problem, const Device& device);
/// Makes the kernels on a CUDA device. @throws BackendAbsent in a build without CUDA
std::unique_ptr<WaveKernels> make_wave_kernels_cuda(const WaveProblem& problem,
                                                    const Device& device);

/// Returns the bytes that the kernels of a problem hold when GMRES takes this many directions.
double wave_bytes(const WaveShape& shape, int directions);

}  // namespace quasi::mosfet
