#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/backend/progress.hpp"
#include "workers/thermal/kernels/three_phonon/process_3ph.hpp"
#include "workers/thermal/kernels/three_phonon/tetrahedra/mesh_tetrahedra.hpp"
#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/model/modes.hpp"
#include "workers/thermal/model/precision.hpp"
#include "workers/thermal/physics/broadening.hpp"
#include "workers/thermal/physics/q_mesh.hpp"

namespace quasi::thermal {

// Begin here: the problem, the results and the interface of three-phonon scattering on one device.
// three_phonon_kernels_cpu.cpp and three_phonon_kernels_cuda.cu show the order of the steps.
// Each step has a file of its own: finding processes, factorised matrix elements, sums of rows and
// the collision operator.

/// The input of the three-phonon sums. The caller owns it and keeps it alive while kernels use it.
struct ThreePhononProblem {
  QMesh mesh;
  int n_atoms = 0;
  const Modes* modes = nullptr;
  SparseForceConstants fc3;        ///< as read, eV/Å³
  std::vector<double> mass_amu;    ///< [atom]
  std::vector<std::int32_t> rows;  ///< points q whose modes get rates, the irreducible ones
  std::vector<Index3> first_zone;  ///< [n_q] mesh coordinates of the shortest image of q
  Broadening broadening = Broadening::kSymmetric;
  MeshTetrahedra tetrahedra;  ///< around a mesh point; for kTetrahedra
  double scale_broad = 1.0;   ///< factor of the widths; σ in rad/ps with kFixed
  double cut = 2.0;           ///< window |Δω| ≤ cut·σ
  double delta_norm = 1.0;    ///< δ is multiplied by this (1/erf(cut) with window_norm)
  double omega_max_rad_ps = 1e100;
  double rate_constant = 0.0;  ///< C3 of PhysicalConstants
  double hbar_over_kb_k_ps = 0.0;
  Precision precision = Precision::kDouble;  ///< of the factorised matrix elements
  std::int64_t memory_budget_bytes = 0;      ///< for lists and work arrays; 0: by device

  int n_branches() const { return 3 * n_atoms; }
  std::int64_t n_rows() const { return static_cast<std::int64_t>(rows.size()) * n_branches(); }
  /// The mode of a row: row = (index in `rows`)·n_branches + branch.
  std::int64_t mode_of_row(std::int64_t row) const {
    const int nb = n_branches();
    return static_cast<std::int64_t>(rows[static_cast<std::size_t>(row / nb)]) * nb + row % nb;
  }
};

/// Returns the frequencies of all modes in rad/ps, ProcessRules3::kInactive for inactive modes.
std::vector<double> active_frequencies(const ThreePhononProblem& problem);

/// Returns the rules of a problem over mode data on the device of its kernels.
/// @param omega_rad_ps   [n_modes] active_frequencies
/// @param spread_rad_ps  [n_modes][3]
ProcessRules3 process_rules(const ThreePhononProblem& problem, const double* omega_rad_ps,
                            const double* spread_rad_ps);

/// Rates of the rows, row = (index in `rows`)·n_branches + branch. Emission carries its factor ½.
struct ThreePhononRates {
  /// Rates of the given shape that are all zero.
  static ThreePhononRates zeros(std::int64_t n_temperatures, std::int64_t n_rows);
  /// Sets n_absorption and n_emission. @param counts  [n_rows][2]
  void set_counts(const std::vector<std::int64_t>& counts);

  std::int64_t n_temperatures = 0;
  std::vector<double> absorption_per_ps;         ///< [nT][n_rows] ΣΓ+
  std::vector<double> emission_per_ps;           ///< [nT][n_rows] ½ΣΓ−
  std::vector<double> normal_absorption_per_ps;  ///< [nT][n_rows] share of normal processes
  std::vector<double> normal_emission_per_ps;
  std::vector<double> weighted_absorption_ps4;    ///< [nT][n_rows] ΣW+/Nq
  std::vector<double> weighted_emission_ps4;      ///< [nT][n_rows] ½ΣW−/Nq
  std::vector<double> phase_space_absorption_ps;  ///< [n_rows] Σδ(Δω), no Bose factor
  std::vector<double> phase_space_emission_ps;    ///< [n_rows] Σδ(Δω), no ½
  std::vector<double> absorption_error_per_ps;    ///< [nT][n_rows] standard errors of sampled
                                                  ///< rates; empty for exact rates
  std::vector<double> emission_error_per_ps;
  double evaluations = 0.0;  ///< matrix elements that sampling computed, over all rows

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
  double seconds_enumerate = 0.0;  ///< finding processes before their matrix elements
  double seconds_evaluate = 0.0;
};

/// The Bose factor of a process in the collision operator (docs/theory/thermal.md 8). Both forms
/// are equal on the energy shell.
enum class OccupationForm {
  kDifferences,  ///< n' − n'' and 1 + n' + n'', as in the rates
  kSymmetric,    ///< s's''/s with s = √(n(n+1)), which makes the operator symmetric off the shell
};

/// Returns where the processes of each row begin in a list of all processes, [n_rows + 1].
/// @param counts  [n_rows][2] absorption and emission, see ThreePhononKernels::count
std::vector<std::int64_t> process_offsets(const std::vector<std::int64_t>& counts);

/// @throws OutOfMemory, naming both sizes, if the list of processes is larger than the budget.
void require_list_fits(std::int64_t n_processes, std::int64_t list_bytes,
                       std::int64_t budget_bytes);

/// Sums over three-phonon processes on one device or on several. `load` moves the problem to the
/// devices, and later calls use it. One object serves one solve and is not thread-safe.
class ThreePhononSums {
 public:
  virtual ~ThreePhononSums() = default;

  virtual void load(const ThreePhononProblem& problem) = 0;

  /// Sums the rates at every temperature in one pass over the processes.
  /// @param keep_processes  the list (λ', λ'', weight) stays on the device for apply_collision
  /// @throws OutOfMemory, before the sums, if the kept list does not fit.
  virtual ThreePhononRates rates(const std::vector<double>& temperatures_k, bool keep_processes,
                                 Progress& progress) = 0;

  /// Computes the in-scattering of a vector field F on all modes (docs/theory/thermal.md 8):
  ///   out = Σ_+ Γ+ (F'' − F') + ½ Σ_− Γ− (F'' + F').
  /// @param f    [n_modes][3]
  /// @return     [n_rows][3]
  virtual std::vector<double> apply_collision(double temperature_k, OccupationForm form,
                                              const std::vector<double>& f) = 0;

  /// Sums the out-scattering rates of the kept list with the given Bose factor.
  /// @return [n_rows] Σ Γ+ + ½ Σ Γ−
  virtual std::vector<double> row_rates(double temperature_k, OccupationForm form) = 0;
};

/// Three-phonon scattering on one device.
class ThreePhononKernels : public ThreePhononSums {
 public:
  /// Counts the processes of some rows. @return [rows][2] absorption and emission
  virtual std::vector<std::int64_t> count(const std::vector<std::int64_t>& rows) = 0;

  /// Lists the processes of rows first ≤ row < last, in the order of the sums. Weights are not
  /// set.
  /// @param offsets  receives where each row begins, [last − first + 1]
  virtual std::vector<Process3> list(std::int64_t first, std::int64_t last,
                                     std::vector<std::int64_t>& offsets) = 0;
};

/// @throws BackendAbsent if the back end of the device is not in this build.
std::unique_ptr<ThreePhononKernels> make_three_phonon_kernels(const Device& device);
std::unique_ptr<ThreePhononKernels> make_three_phonon_kernels_cpu();
std::unique_ptr<ThreePhononKernels> make_three_phonon_kernels_cuda(const Device& device);

}  // namespace quasi::thermal
