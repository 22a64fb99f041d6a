#pragma once

#include <vector>

#include "workers/mosfet/kernels/beam/beam_geometry.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/solver/transport/elastic_rates.hpp"

namespace quasi::mosfet {

/// Roughness and impurities of a device on the grid of the beam scheme (docs/theory/mosfet.md
/// 17.4). Rates are those of the scheme `weno` at the kinetic energy w = H − ε of a cell, the mean
/// over the open part of the cell.
class ElasticTables {
 public:
  /// Computes Ŝ of every pair of valleys and the donors of every column, if the model has them.
  ElasticTables(const DeviceModel& model, const Structure& structure);

  /// Returns true if the model has neither roughness nor impurities.
  bool empty() const { return spectrum_.empty() && impurities_.donors_nm3.empty(); }

  /// Returns |F|²Ŝ(w,w') as BeamCellTables has it; empty for smooth interfaces. @param psi  wave
  /// functions of the levels [n_families][subbands][nx][nz]
  std::vector<double> roughness(const TransportProblem& problem, const BeamGrid& grid,
                                const BeamLevels& levels, const std::vector<double>& psi) const;
  /// Returns the rate of momentum relaxation by impurities, 1/fs [n_states][nx][n_h]; empty: none.
  std::vector<double> relaxation_fs(const BeamGrid& grid, const BeamLevels& levels) const;

 private:
  /// Holds the position of an energy in the table of Ŝ.
  struct TablePoint {
    int below = 0;
    double share = 0;  ///< weight of the point above
  };
  static TablePoint point_at(double w_ev);
  double spectrum_at(int valley, const TablePoint& a, const TablePoint& b) const;

  std::vector<std::vector<double>> spectrum_;  ///< Ŝ of each pair [points][points], nm⁴
  Impurities impurities_;
};

}  // namespace quasi::mosfet
