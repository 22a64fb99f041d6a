#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/backend/progress.hpp"
#include "workers/thermal/kernels/three_phonon/process_3ph.hpp"
#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/model/modes.hpp"
#include "workers/thermal/model/precision.hpp"
#include "workers/thermal/model/strategy.hpp"
#include "workers/thermal/physics/broadening.hpp"
#include "workers/thermal/physics/q_mesh.hpp"

namespace quasi::thermal {

/// Everything the three-phonon sums need; owned by the caller, who keeps it alive while kernels use
/// it.
struct ThreePhononProblem {
  QMesh mesh;
  int n_atoms = 0;
  const Modes* modes = nullptr;
  SparseForceConstants fc3;        ///< as read, eV/Å³
  std::vector<double> mass_amu;    ///< [atom]
  std::vector<std::int32_t> rows;  ///< points q whose modes get rates (irreducible ones)
  std::vector<Index3> first_zone;  ///< [n_q] mesh coordinates of the shortest image of q
  Broadening broadening = Broadening::kSymmetric;
  double scale_broad = 1.0;
  double cut = 2.0;         ///< window |Δω| ≤ cut·σ
  double delta_norm = 1.0;  ///< δ is multiplied by this (1/erf(cut) with window_norm)
  double omega_max_rad_ps = 1e100;
  double rate_constant = 0.0;  ///< C3 of PhysicalConstants
  double hbar_over_kb_k_ps = 0.0;
  Strategy strategy = Strategy::kFactorised;
  Precision precision = Precision::kDouble;  ///< of the factorised strategy
  std::int64_t memory_budget_bytes = 0;      ///< for lists and work arrays; 0: by device

  int n_branches() const { return 3 * n_atoms; }
  std::int64_t n_rows() const { return static_cast<std::int64_t>(rows.size()) * n_branches(); }
};

/// Rates of the rows, row = (index in `rows`)·n_branches + branch. Emission carries its ½.
struct ThreePhononRates {
  std::int64_t n_temperatures = 0;
  std::vector<double> absorption_per_ps;         ///< [nT][n_rows] ΣΓ+
  std::vector<double> emission_per_ps;           ///< [nT][n_rows] ½ΣΓ−
  std::vector<double> normal_absorption_per_ps;  ///< [nT][n_rows] share of each that needs no G
  std::vector<double> normal_emission_per_ps;
  std::vector<double> weighted_absorption_ps4;    ///< [nT][n_rows] ΣW+/Nq
  std::vector<double> weighted_emission_ps4;      ///< [nT][n_rows] ½ΣW−/Nq
  std::vector<double> phase_space_absorption_ps;  ///< [n_rows] Σδ(Δω), no Bose factor
  std::vector<double> phase_space_emission_ps;    ///< [n_rows] Σδ(Δω), no ½
  std::vector<double> absorption_error_per_ps;  ///< [nT][n_rows] standard errors where rates are a
                                                ///< sample's; else empty
  std::vector<double> emission_error_per_ps;
  double evaluations = 0.0;  ///< matrix elements of a sample, all rows

  /// Standard error of absorption and emission together; 0 where nothing is sampled.
  double error_per_ps(std::size_t t, std::int64_t row) const {
    if (absorption_error_per_ps.empty()) return 0.0;
    const std::size_t at =
        t * (absorption_error_per_ps.size() / static_cast<std::size_t>(n_temperatures)) +
        static_cast<std::size_t>(row);
    return std::hypot(absorption_error_per_ps[at], emission_error_per_ps[at]);
  }

  std::int64_t n_absorption = 0;  ///< processes over all rows
  std::int64_t n_emission = 0;
  double seconds_enumerate = 0.0;  ///< where a strategy has a phase of its own for it
  double seconds_evaluate = 0.0;
};

/// Which Bose factor weighs a process in the collision operator. Equal on the energy shell.
enum class OccupationForm {
  kDifferences,  ///< n' − n'' and 1 + n' + n'' (docs/theory/thermal.md 6): what the rates are
                 ///< summed with
  kSymmetric,    ///< s's''/s with s = √(n(n+1)): makes the operator symmetric off the shell too
};

/// Sums over three-phonon processes, wherever they are made. `load` moves the problem to where they
/// are; later calls use it. Not thread-safe: one solve, one instance.
class ThreePhononSums {
 public:
  virtual ~ThreePhononSums() = default;

  virtual void load(const ThreePhononProblem& problem) = 0;

  /// Rates at every temperature in one pass over the processes. With `keep_processes` the list
  /// (λ', λ'', weight) stays on the device for apply_collision.
  /// @throws OutOfMemory, before starting, when the kept list cannot fit.
  virtual ThreePhononRates rates(const std::vector<double>& temperatures_k, bool keep_processes,
                                 Progress& progress) = 0;

  /// In-scattering of a vector field F on all modes, at the rows:
  ///   out = Σ_+ Γ+ (F'' − F') + ½ Σ_− Γ− (F'' + F').
  /// @param f    [n_modes][3]
  /// @return     [n_rows][3]
  virtual std::vector<double> apply_collision(double temperature_k, OccupationForm form,
                                              const std::vector<double>& f) = 0;

  /// Out-scattering rates of the kept list with the given Bose factor: Σ Γ+ + ½ Σ Γ−, [n_rows].
  virtual std::vector<double> row_rates(double temperature_k, OccupationForm form) = 0;
};

/// The heavy steps of three-phonon scattering, on one device.
class ThreePhononKernels : public ThreePhononSums {
 public:
  /// How many processes some rows have: absorption and emission, [2] for each row of `rows`.
  virtual std::vector<std::int64_t> count(const std::vector<std::int64_t>& rows) = 0;

  /// The processes of rows first ≤ row < last, without weights, in the order in which they are
  /// summed.
  /// @param offsets  [last − first + 1] where each row begins
  virtual std::vector<Process3> list(std::int64_t first, std::int64_t last,
                                     std::vector<std::int64_t>& offsets) = 0;
};

/// @throws BackendAbsent when the device's back end is not in this build.
std::unique_ptr<ThreePhononKernels> make_three_phonon_kernels(const Device& device);
std::unique_ptr<ThreePhononKernels> make_three_phonon_kernels_cuda(const Device& device);

}  // namespace quasi::thermal
