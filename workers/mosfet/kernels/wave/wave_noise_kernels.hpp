#pragma once

#include <array>
#include <complex>
#include <memory>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/mosfet/kernels/wave/wave_kernels.hpp"

namespace quasi::mosfet {

/// Holds what the noise of a steady state needs beside its WaveProblem. Currents are observed at
/// the terminals of source and drain, in this order.
struct WaveObservation {
  /// Derivatives of the terminals' charges by the potential [kWaveContacts][nodes], e/(V nm).
  std::vector<double> charge_slope;
  std::vector<double> inflow[kWaveContacts];  ///< g that enters [n_h]
  /// f/g of every cell of H with Fermi statistics, and 0 with Maxwell statistics [n_h]. The
  /// occupation of a cell fluctuates by g (1 − f).
  std::vector<double> filling;
  double dx_nm = 0;
  bool field_responds = true;  ///< false: the potential is fixed
};

/// Holds the noise of the currents of source and drain at one frequency, both valleys.
struct WaveNoise {
  using Value = std::complex<double>;
  /// 2 Σ_moves rate Δ_i Δ_j*, 1/(nm fs).
  std::array<std::array<Value, kWaveContacts>, kWaveContacts> density{};
  /// Response of each current to 1 V at source, drain and gate, 1/(nm fs V).
  std::array<std::array<Value, kWaveColumns>, kWaveContacts> admittance{};
  int products = 0;  ///< number of solutions of all lines
};

/// Solves the transposed equations of one linearised steady state of first order along x
/// (docs/theory/mosfet.md 17.9) on one device, and sums the noise of all moves of electrons there.
/// Equal calls on one device have equal bits. An object serves one thread at a time.
class WaveNoiseKernels {
 public:
  virtual ~WaveNoiseKernels() = default;
  /// Computes the noise at the angular frequency ω. Ψ and Φ are solved for together. Ψ is then
  /// solved for alone with this Φ.
  /// @param omega_per_fs  ω, 1/fs
  /// @throws NotConverged if GMRES does not reach its tolerance
  virtual WaveNoise at(double omega_per_fs) = 0;
};

/// Makes the kernels of a problem on a device and copies its tables there.
/// @param problem  of first order along x. Neutral inflow counts as fixed inflow.
/// @throws BackendAbsent for a CUDA device in a build without CUDA, DeviceOutOfMemory if the tables
/// do not fit
std::unique_ptr<WaveNoiseKernels> make_wave_noise_kernels(const WaveProblem& problem,
                                                          const WaveObservation& observation,
                                                          const Device& device);
/// Makes the kernels of a problem on a CUDA device and copies its tables there.
/// @throws BackendAbsent in a build without CUDA, DeviceOutOfMemory if the tables do not fit
std::unique_ptr<WaveNoiseKernels> make_wave_noise_kernels_cuda(const WaveProblem& problem,
                                                               const WaveObservation& observation,
                                                               const Device& device);

/// Returns the bytes that the kernels of a problem hold in total when GMRES takes `directions`
/// directions in a cycle.
double wave_noise_bytes(const WaveShape& shape, int directions);

}  // namespace quasi::mosfet
