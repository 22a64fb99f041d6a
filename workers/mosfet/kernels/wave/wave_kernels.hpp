#pragma once

#include <array>
#include <complex>
#include <memory>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/mosfet/kernels/wave/wave_problem.hpp"

namespace quasi::mosfet {

/// Holds the response to 1 V at one terminal.
struct WaveResponse {
  std::vector<std::complex<double>> potential_v;  ///< δV of all nodes [nx][nz]
  /// Electrons through the faces next to source and drain, both valleys, 1/(nm fs).
  std::array<std::complex<double>, kWaveContacts> current{};
};
/// Holds the responses to 1 V at source, drain and gate, one after the other.
struct WaveResponses {
  std::array<WaveResponse, kWaveColumns> of;
  int products = 0;  ///< number of solutions of all lines, each for all three
};

/// Solves the equations of one linearised steady state (docs/theory/mosfet.md 17.8) on one device.
/// All tables and vectors stay on the device. Equal calls on one device have equal bits, in any
/// order of the frequencies. An object serves one thread at a time.
class WaveKernels {
 public:
  virtual ~WaveKernels() = default;
  /// Computes the responses at the angular frequency ω. Transport and field are solved together
  /// for δV and δg. Transport is then solved alone for this δV, so that currents add to zero.
  /// @param omega_per_fs  ω, 1/fs
  /// @throws NotConverged if GMRES does not reach its tolerance
  virtual WaveResponses respond(double omega_per_fs) = 0;
};

/// Makes the kernels of a problem on a device and copies its tables there.
/// @throws BackendAbsent for a CUDA device in a build without CUDA, DeviceOutOfMemory if the tables
/// do not fit
std::unique_ptr<WaveKernels> make_wave_kernels(const WaveProblem& problem, const Device& device);
/// Makes the kernels of a problem on a CUDA device and copies its tables there.
/// @throws BackendAbsent in a build without CUDA, DeviceOutOfMemory if the tables do not fit
std::unique_ptr<WaveKernels> make_wave_kernels_cuda(const WaveProblem& problem,
                                                    const Device& device);

/// Returns the bytes that the kernels of a problem hold in total when GMRES takes `directions`
/// directions in a cycle.
double wave_bytes(const WaveShape& shape, int directions);

}  // namespace quasi::mosfet
