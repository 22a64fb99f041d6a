#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/mosfet/model/model.hpp"
#include "workers/mosfet/model/structure.hpp"
#include "workers/mosfet/physics/scattering_link.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {

/// One scattering process in the form that the kernels need.
struct ScatteringProcess {
  ProcessKind kind = ProcessKind::kElastic;
  /// Coupling c_μ Z (½ for an elastic process), divided by ħ²; for roughness ½/(2πħ³).
  double coupling = 0;
  double occupation = 0;  ///< N_μ
  double energy_ev = 0;
};

/// Data that all bias points of a run share. The units are nm, eV, fs, V.
///
/// The pdf lives on [n_valleys][subbands][nx][nw][angles], angle fastest. Half range: angles =
/// nphi/2+1, φ = 0 … π with quadrature weights Δφ(1,2,…,2,1). Full range: angles = nphi.
struct TransportProblem {
  Structure structure;
  std::vector<char> fixed;  ///< [nx][nz] nodes of given potential, equal at every bias
  int nw = 0, nphi = 0, angles = 0;
  AngleRange range = AngleRange::kHalf;
  PhiFlux phi_flux = PhiFlux::kUpwind;
  double dw_ev = 0, dphi = 0;
  double alpha_per_ev = 0, kt_ev = 0, weno_epsilon = 1e-12;
  std::vector<double> cos_phi, sin_phi, weight;  ///< [angles]; zeros exact, symmetries bitwise
  std::vector<int> mirror;                       ///< [angles] index of φ + π
  std::vector<double> speed_nm_fs;               ///< v_ν(w) [n_valleys][nw]
  std::vector<double> turning_nm_ev_fs;          ///< 1/√(2 m_x w(1+αw)) [n_valleys][nw]
  std::vector<double> root_mass;                 ///< √(m_x m_y) [n_valleys], eV fs² nm⁻²
  ScatteringScheme scheme = ScatteringScheme::kBalanced;
  std::vector<ScatteringProcess> processes;
  std::vector<double> roughness_spectrum;  ///< Ŝ_ν(w,w') [n_valleys][nw][nw], nm⁴; empty: smooth
  /// Rate of relaxation to the angular mean [n_valleys][nx][nw]; empty: none.
  std::vector<double> elastic_rate_fs;
  bool pauli = false;  ///< occupied final states block scattering in proportion to their filling
  double tol_v = 1e-6;
  double cfl = 0.7;
  /// True if the inflow is rescaled so that the contact columns hold their charge.
  bool neutral_inflow = false;
  bool frozen_field = false;  ///< keep V, ε, ψ as set, and advance transport alone
  double lead_fs = 0;  ///< τ_d: electrons move in ε + τ_d ∂ε/∂t, which damps the plasma; 0: in ε

  EnergyGrid grid() const { return {dw_ev, alpha_per_ev, kt_ev, nw}; }
  /// Returns F = Φ̃/(1+2αw) of a full cell, in units of the scaled pdf.
  double full_filling(int valley, double pdf_scale) const {
    return mosfet::full_filling(root_mass[static_cast<std::size_t>(valley)], pdf_scale);
  }
  int n_states() const { return structure.n_valleys() * structure.subbands; }
  std::int64_t rows() const { return static_cast<std::int64_t>(n_states()) * structure.nx * nw; }
  std::int64_t pdf_size() const { return rows() * angles; }
  std::int64_t level_count() const {
    return static_cast<std::int64_t>(structure.n_families()) * structure.subbands * structure.nx;
  }
};

/// Fixed data of one bias point: the given potential, the inflow and the scale of the pdf.
struct PointBoundary {
  std::vector<double> fixed_v;        ///< [nx][nz], read where `fixed`
  std::vector<double> inflow_source;  ///< Φ_in/Φ* [n_valleys][subbands][nw]
  std::vector<double> inflow_drain;
  /// Densities for neutral inflow, in units of Φ*: Σϱ of the neutral contact column, and the part
  /// of it that enters.
  struct Neutral {
    double sheet = 0, entering = 0;
  };
  std::array<Neutral, 2> neutral;  ///< source, drain
  double pdf_scale = 1.0;  ///< Φ*, nm⁻² eV⁻¹ rad⁻¹; every stored pdf is divided by it
};

/// All data of one bias point that change in time. A restored state continues with the same bits if
/// the frozen matrix is refreshed at the same step number.
struct PointState {
  std::vector<double> pdf;          ///< Φ/Φ* [n_valleys][subbands][nx][nw][angles]
  std::vector<double> potential_v;  ///< [nx][nz]
  std::vector<double> energy_ev;    ///< [n_families][subbands][nx], without valley offsets
  std::vector<double> psi;          ///< [n_families][subbands][nx][nz]
  std::vector<double> trend_v;      ///< V¹ − Vⁿ of the last step [nx][nz]: predictor
  std::vector<double> curvature_v;  ///< V² − ½(Vⁿ + V¹) of the last step [nx][nz]: predictor
  /// The term τ_d ∂ε/∂t of the last step [n_families][subbands][nx]; zeros if τ_d = 0.
  std::vector<double> lead_ev;
  /// Integral ∫I dt since it was last cleared [nx+1] half nodes, e/nm.
  std::vector<double> current_integral;
  double last_dt_fs = 0;  ///< 0: no predictor yet
  double time_fs = 0;
  std::int64_t step = 0;
};

/// Record of one time step of one point.
struct StepRecord {
  double time_fs = 0;  ///< at the end of the step
  double dt_fs = 0;
  double current_source = 0, current_mid = 0,
         current_drain = 0;  ///< e/(fs nm), RK mean of the step
  double charge_nm = 0;      ///< Σ_x 2ϱ Δx after the step
  int chord_iterations = 0;  ///< in all three stages
  double residual = 0;       ///< last ‖P‖∞/‖(e/ε0)N_D‖∞ of the step
};

/// Range of the angular means f̄ of the occupation after a batch of steps; it should be [0, 1].
struct Filling {
  double lowest = 0, highest = 0;
  double outside = 0;  ///< cells with f̄ < 0 or f̄ > 1
};

/// Result of a batch of steps of one point.
struct Advance {
  std::vector<StepRecord> steps;
  double min_pdf = 0;    ///< smallest Φ after the batch, relative to the largest
  double top_share = 0;  ///< max_{ν,p,x} Φ̃(w_max) / max Φ̃
  Filling filling;       ///< with Pauli blocking only
  std::array<double, 2> inflow_scale{1.0, 1.0};  ///< source, drain: of the last stage
  bool chord_failed = false;  ///< a stage missed its tolerance in 30 iterations; the caller rolls
                              ///< back
};

/// Sums over the pdf of one point, per state and column.
struct Moments {
  std::vector<double> sheet_nm2;      ///< ϱ [n_valleys][subbands][nx], one valley
  std::vector<double> flux_nm_fs;     ///< ∫∫ v cos φ Φ, 1/(nm fs)
  std::vector<double> energy_ev_nm2;  ///< ∫∫ w Φ
  std::vector<double> pdf_w;          ///< Φ̃ [n_valleys][subbands][nx][nw], 1/(nm² eV)
};

class NewtonMethod;

/// Time of one kernel, measured by profile().
struct KernelTime {
  std::string name;
  double milliseconds = 0;  ///< median of one call
  int calls_per_step = 0;
};

/// Begin here: the heavy part of the simulation on one device. It computes transport, scattering,
/// and Schrödinger–Poisson with given ϱ, for several bias points of one device at once
/// (docs/theory/mosfet.md 5, 8, 9). The folders `transport`, `scattering` and `electrostatics` hold
/// the three parts, and `beam` holds the steady scheme.
///
/// Use: load(), set_boundary() and set_state() for each point, then refresh() and advance()
/// alternately. The matrix of the chord iteration is frozen between refreshes. The time of a
/// refresh changes results by at most tol_v, but it changes bits, so refresh at fixed step numbers.
/// Not thread-safe.
class MosfetKernels {
 public:
  virtual ~MosfetKernels() = default;

  /// Loads a problem and makes room for `n_points` bias points.
  virtual void load(const TransportProblem& problem, int n_points) = 0;
  /// Sets given potential, inflow and scale of one point.
  virtual void set_boundary(int point, const PointBoundary& boundary) = 0;
  /// Sets new values [nx][nz] of the given V, valid from the next step on.
  virtual void set_fixed_potential(int point, const std::vector<double>& fixed_v) = 0;
  /// Sets the state of one point.
  virtual void set_state(int point, const PointState& state) = 0;
  /// Returns the state of one point.
  virtual PointState state(int point) = 0;
  /// Returns the sums over the pdf of one point.
  virtual Moments moments(int point) = 0;

  /// Returns V [nx][nz] of a point, without its pdf.
  virtual std::vector<double> potential(int point) = 0;
  /// Returns ∫I dt since the last call for this point, and sets it to zero.
  virtual std::vector<double> take_current_integral(int point) = 0;

  /// Recomputes the frozen Newton matrix of one point from its present state.
  virtual void refresh(int point) = 0;
  /// Makes at most `n` TVD-RK3 steps [shu1988] of every point. The last step is shortened to end at
  /// the point's `stop_fs`. A point that has reached it is left alone and records nothing; a
  /// negative `stop_fs` marks an idle point. `shrink` multiplies the CFL number (a retry passes ½).
  virtual std::vector<Advance> advance(int n, const std::vector<double>& stop_fs,
                                       double shrink) = 0;
  /// Keeps a copy of one state on the device, to which roll_back() returns.
  virtual void save(int point) = 0;
  /// Returns to the copy that save() made.
  virtual void roll_back(int point) = 0;

  /// Times every kernel of a step alone, on the present state of a point, which does not change.
  virtual std::vector<KernelTime> profile(int point, int repeats) = 0;
};

/// Makes the kernels for a device. @throws BackendAbsent for a CUDA device in a build without CUDA.
std::unique_ptr<MosfetKernels> make_mosfet_kernels(const Device& device);
/// Makes the kernels for the CPU. @param newton  replaces the frozen Newton matrix of the field
/// iteration; null: the frozen matrix
std::unique_ptr<MosfetKernels> make_mosfet_kernels_cpu(
    std::shared_ptr<const NewtonMethod> newton = nullptr);
/// Makes the kernels for a CUDA device. @throws BackendAbsent in a build without CUDA.
std::unique_ptr<MosfetKernels> make_mosfet_kernels_cuda(const Device& device);

}  // namespace quasi::mosfet
