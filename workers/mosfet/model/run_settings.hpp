#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "workers/mosfet/model/model.hpp"

namespace quasi::mosfet {

/// Discretisation of the Boltzmann equation.
enum class StreamingScheme {
  kWeno,  ///< variables (x, w, φ), WENO-5, advances in time
  kBeam,  ///< grid in position, total energy and transverse wave number (x, H, κ)
};

enum class RunMode { kEquilibrium, kTransient, kSteady, kMobility };

/// Equation by which the electrons move.
enum class TransportModel {
  kBoltzmann,
  kBallistic,       ///< the Boltzmann equation without scattering
  kDriftDiffusion,  ///< quasi-Fermi level with the low-field mobility of the deck's scattering
};

/// Nodes along x and z, subbands, and cells of phase space.
struct Mesh {
  int nx = 65, nz = 65, subbands = 6, nw = 300, nphi = 48;
  double wmax_ev = 0.9;
  double dh_ev = 0.00625;  ///< cell of total energy of the scheme kBeam
  int n_kappa = 24;        ///< cells of transverse momentum of the scheme kBeam
  double window_ev = 0.6;  ///< range of energies of the scheme kBeam above the highest of the
                           ///< lowest levels
  bool snap = false;
  AngleRange range = AngleRange::kHalf;
  PhiFlux phi_flux = PhiFlux::kUpwind;
};

/// Settings for the advance of a run and for its end.
struct RunSettings {
  RunMode mode = RunMode::kSteady;
  StreamingScheme scheme = StreamingScheme::kWeno;
  TransportModel transport = TransportModel::kBoltzmann;
  double t_end_fs = 2000.0, cfl = 0.7, steady_tol = 1e-3, window_fs = 50.0;
  double steady_floor_a_per_m = 1e-3;  ///< absolute floor of the steadiness tests
  double weno_epsilon = 1e-12;
  double tol_v = 1e-6;
  int refresh_steps = 400;
  /// Share of critical damping that the term τ_d ∂ε/∂t adds in steady mode; 0: none.
  double plasma_damping = 1.0;
  bool coarse_start = true;  ///< steady mode: first reach the steady state of a chain on a coarser
                             ///< mesh, if one exists
  std::string start_from;    ///< file of a finished run beside the deck; empty: none
  bool tunnelling = false;   ///< adds the current that tunnels from source to drain
  bool mesh_study = false;  ///< repeat with half of every axis and report the error that it implies
};

/// Linear response of every steady point of the scheme kBeam.
struct SmallSignalSettings {
  std::vector<double> frequencies_hz;  ///< increasing; empty: none is computed
  bool noise = false;                  ///< spectra of the currents, too
};

/// Tables and fields that a run writes.
struct OutputSettings {
  double every_fs = 10.0;
  std::vector<std::string> fields;
  std::vector<double> pdf_at_fs;   ///< times of snapshots of the pdf; transient mode
  double threshold_a_per_m = 0.1;  ///< constant-current definition of V_th
  bool vtk = false;                ///< fields of each point in files of VTK, too
  /// Returns true if the deck asks for this field.
  bool has(const std::string& field) const {
    return std::find(fields.begin(), fields.end(), field) != fields.end();
  }
};

}  // namespace quasi::mosfet
