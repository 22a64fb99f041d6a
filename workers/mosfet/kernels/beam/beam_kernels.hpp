#pragma once

#include <memory>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/mosfet/kernels/beam/beam_transport.hpp"

namespace quasi::mosfet {

/// Transport problem of one bias point at fixed levels.
struct BeamProblem {
  BeamGrid grid;
  BeamLevels levels;
  std::vector<ScatteringProcess> processes;
  std::vector<double> overlap;  ///< W [families·subbands][families·subbands][nx], 1/nm
  std::vector<int> level_of;    ///< level of a state, its index in `overlap` [n_states]
  std::vector<double> filling;  ///< f̄ of every cell of H, around which blocking is linearised
                                ///< [n_states][nx][n_h]; empty: no blocking
  /// Roughness and relaxation as BeamCellTables has them.
  std::vector<double> roughness, relaxation_fs;
  BeamInflow inflow;
  BeamOrder order = BeamOrder::kThird;

  std::size_t rows() const {
    return static_cast<std::size_t>(levels.n_states()) * grid.nx * grid.n_h;
  }
};

/// Begin here: the heavy part of the beam scheme on one device, for one bias point. It computes
/// volumes, areas and rates, and solves transport at fixed levels (docs/theory/mosfet.md 17.1 to
/// 17.5).
///
/// Use: load() a problem, solve() it, then read its results. The results of equal calls have equal
/// bits on one device. Not thread-safe.
class BeamKernels {
 public:
  virtual ~BeamKernels() = default;

  /// Computes volumes, areas and rates of a problem.
  virtual void load(const BeamProblem& problem) = 0;
  /// Returns the norm in which solve() measures its residual.
  virtual BeamNorm norm() const { return BeamNorm::kOccupation; }
  /// Solves for the steady state (solve_beam()) in the norm of norm(). @param start  first ḡ
  /// [n_states][nx][n_h]; empty: that of the inflow without gain
  virtual BeamMean solve(double tolerance, int max_sweeps, const std::vector<double>& start) = 0;
  /// Returns ϱ of the solution, one valley [n_states][nx], nm⁻².
  virtual std::vector<double> sheet_density() = 0;
  /// Returns the fluxes of the solution.
  virtual BeamFluxes fluxes() = 0;
  /// Returns g of the solution in the layout of BeamOperator.
  virtual std::vector<double> distribution() = 0;
};

/// Makes the kernels for a device. @throws BackendAbsent for a CUDA device in a build without CUDA.
std::unique_ptr<BeamKernels> make_beam_kernels(const Device& device);
/// Makes the kernels for a CUDA device. @throws BackendAbsent in a build without CUDA.
std::unique_ptr<BeamKernels> make_beam_kernels_cuda(const Device& device);

/// Returns the bytes that the kernels of one bias point hold. @param cells  number of cells of one
/// branch @param rows  number of cells of H of all states and columns @param elastic_tables  number
/// of values of each row in the tables of roughness and relaxation
double beam_bytes(double cells, double rows, double elastic_tables);

}  // namespace quasi::mosfet
