#pragma once

#include <array>
#include <complex>
#include <memory>
#include <vector>

#include "workers/mosfet/solver/beam/small_signal/small_signal.hpp"

namespace quasi::mosfet {

/// Holds the spectral densities of the currents of the terminals at one frequency.
struct NoiseSpectrum {
  using Matrix = TerminalMatrix;
  double frequency_hz = 0;
  /// One-sided densities S_ij of the currents I_i and I_j of Admittance, A²/(Hz m).
  Matrix s{};
  /// Y from the adjoint solutions, S/m. It serves checks against BeamSmallSignal in first order.
  Matrix y{};
};

/// Holds the choices of a BeamFieldNoise.
struct NoiseMethod {
  bool field_responds = true;  ///< false: the potential is fixed
  Device device = {};          ///< solves the equations with tables; the CPU by default
  /// Sums on the host even where tables exist, as a check of the tables.
  bool sums_on_host = false;
};

/// Begin here: this class computes the current noise of a steady state of the beam scheme in first
/// order along x, with the field's feedback (docs/theory/mosfet.md 17.9). Every move of an electron
/// is a Poisson process:
///
///   S_ij = 2q² Σ_moves rate Δ_i Δ_j*,   Δ_i = Ψ_i(to) − Ψ_i(from) + δ_i.
///
/// Fermi statistics multiply each rate by a factor 1 − f. I_i is the current into terminal i.
/// Ψ_i(cell) is the response of I_i to an electron that is placed in that cell. δ_i is the
/// current of the moving electron itself, where its move crosses the face next to the contact. Ψ
/// solves the transposed equations of the small-signal response. With neutral inflow the shifts of
/// E_F at the contacts do not fluctuate.
///
/// The derivatives are tables that are made once (WaveProblem), and the equations are solved on a
/// device. Blocking, roughness and impurities have no tables. Their transposed derivatives are sums
/// on the host (FieldTranspose).
class BeamFieldNoise {
 public:
  /// Linearises the equations at `state`. `device` must outlive the object.
  /// @throws NotConverged if transport does not converge, DeviceOutOfMemory if the tables do not
  /// fit
  BeamFieldNoise(const BeamDevice& device, const BiasPoint& bias, const BeamSteadyState& state,
                 const NoiseMethod& method = {});
  ~BeamFieldNoise();
  BeamFieldNoise(const BeamFieldNoise&) = delete;
  BeamFieldNoise& operator=(const BeamFieldNoise&) = delete;

  /// Computes the spectra at one frequency. @throws NotConverged if GMRES does not reach its
  /// tolerance
  NoiseSpectrum at(double frequency_hz) const;
  /// Returns the current from drain to source in first order, A/m.
  double current_a_per_m() const;

 private:
  class Linearised;
  class HostSums;
  class Tables;
  std::unique_ptr<Linearised> linearised_;
};

}  // namespace quasi::mosfet
