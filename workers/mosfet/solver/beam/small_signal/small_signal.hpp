#pragma once

#include <array>
#include <complex>
#include <memory>

#include "workers/mosfet/solver/beam/beam_point.hpp"
#include "workers/mosfet/solver/beam/small_signal/reference_frame.hpp"

namespace quasi::mosfet {

/// Holds the admittances Y_ij = ∂I_i/∂V_j at one frequency, S/m. I_i flows into the device at
/// terminal i, per metre of width, and includes the displacement current. The cells of H follow the
/// reference potential (reference_shares()), so that rows add to zero.
struct Admittance {
  double frequency_hz = 0;
  TerminalMatrix y{};
  /// Sums of the rows of Y at fixed cells of H, S/m. They show the error that the grid of H leaves.
  std::array<std::complex<double>, kTerminals> row_sums{};
  int field_products = 0;  ///< linear responses of the field that were computed

  /// Returns Y_ij, S/m.
  std::complex<double> at(Terminal i, Terminal j) const {
    return y[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  }
  /// Returns C_ij = Im Y_ij/ω, F/m; 0 at frequency zero.
  double capacitance_f_m(Terminal i, Terminal j) const;
  /// Returns |h₂₁| = |Y_DG/Y_GG|, the current gain with the source grounded.
  double current_gain() const;
  /// Returns Mason's unilateral power gain |Y₂₁ − Y₁₂|²/(4(Re Y₁₁ Re Y₂₂ − Re
  /// Y₁₂ Re Y₂₁)) of the device with the source grounded. Port 1 is at the gate and port 2
  /// at the drain.
  double unilateral_gain() const;
};

/// Holds the choices of a BeamSmallSignal.
struct SmallSignalMethod {
  BeamOrder order = BeamOrder::kThird;
  Device device = {};  ///< runs the products with the tables; the CPU by default
  /// Takes differences along each direction even where tables exist, as a check of the tables.
  bool takes_differences = false;
};

/// Begin here: this class computes the small-signal response of a steady state of the beam scheme
/// with the field's feedback (docs/theory/mosfet.md 17.8). Levels, wave functions, overlaps,
/// volumes and areas respond to δV. The distribution responds to all of them, and Poisson's
/// equation closes the loop. GMRES solves for δV, preconditioned with the Newton matrix of a
/// Gummel step. With neutral inflow the unknowns include the shifts of E_F that keep the charge of
/// the contact columns.
///
/// The derivatives are tables that are made once (WaveProblem), and all products run on a device.
/// Blocking, roughness and impurities have no tables. Their derivatives are differences along each
/// direction (FieldResponse::along()), on the host.
///
/// Equal calls give equal bits, in any order of the frequencies. An object serves one thread at a
/// time.
class BeamSmallSignal {
 public:
  /// Linearises the equations at `state`. `device` must outlive the object.
  /// @throws NotConverged if transport does not converge, DeviceOutOfMemory if the tables do not
  /// fit
  BeamSmallSignal(const BeamDevice& device, const BiasPoint& bias, const BeamSteadyState& state,
                  const SmallSignalMethod& method = {});
  ~BeamSmallSignal();
  BeamSmallSignal(const BeamSmallSignal&) = delete;
  BeamSmallSignal& operator=(const BeamSmallSignal&) = delete;

  /// Computes Y at one frequency. @throws NotConverged if GMRES does not reach its tolerance
  Admittance at(double frequency_hz) const;

 private:
  class Linearised;
  class Differences;
  class Tables;
  BiasPoint bias_;
  std::unique_ptr<const Linearised> linearised_;
};

}  // namespace quasi::mosfet
