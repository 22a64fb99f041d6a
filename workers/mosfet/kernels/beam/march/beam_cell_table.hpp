#pragma once

#include <vector>

#include "workers/mosfet/model/beam/beam_grid.hpp"

namespace quasi::mosfet {

/// Tabulates the volume beam_volume() and the area beam_area() of all cells (H_k, κ_j) as
/// functions of the band edge ε (docs/theory/mosfet.md 17.10). With Maxwell's statistics both
/// depend on H_k − ε and on j alone, where H_k is the lower end of the cell in H. One table for
/// each j therefore serves all k. Cubics through four points of the table have a relative error of
/// 1e-6 in partly open cells, and of 1e-8 in volumes far above the edge. Closed cells and areas of
/// fully open cells are exact. At four values of H_k − ε a cell begins to open, or is completely
/// open. The volume and the area have kinks at these values, where cubics fail. Near them each
/// call integrates both instead.
class BeamCellTable {
 public:
  /// Makes the tables. With Fermi statistics they stay empty, and every call integrates.
  explicit BeamCellTable(const BeamGrid& grid);

  /// Returns beam_volume() of a cell, eV. @param j  number of the cell in κ @param edge_ev  ε
  double volume(const BeamCell& cell, int j, double edge_ev) const {
    const Column* column = column_of(j);
    const double above_ev = cell.h_low_ev - edge_ev;
    if (column == nullptr || is_near_root(*column, above_ev))
      return beam_volume(cell, grid_.shape, grid_.alpha_per_ev, edge_ev);
    if (above_ev <= column->roots_ev[0]) return 0.0;
    if (above_ev >= column->far_ev) return interpolated(column->far_volume, above_ev, far_step_ev_);
    return interpolated(column->volume, above_ev - column->roots_ev[0], step_ev_);
  }
  /// Returns beam_area() of a cell. The parameters are those of volume().
  double area(const BeamCell& cell, int j, double edge_ev) const {
    const Column* column = column_of(j);
    const double above_ev = cell.h_low_ev - edge_ev;
    if (column == nullptr || is_near_root(*column, above_ev) || above_ev >= column->roots_ev[3])
      return beam_area(cell, grid_.shape, grid_.alpha_per_ev, edge_ev);
    if (above_ev <= column->roots_ev[0]) return 0.0;
    return interpolated(column->area, above_ev - column->roots_ev[0], step_ev_);
  }

 private:
  /// Holds the tables of one j. Distances are H_k − ε.
  struct Column {
    /// Distances at which one of the four corners of the cell opens, in ascending order. A corner
    /// has the lower or upper end of the cell in κ, and the lower or upper end in H.
    double roots_ev[4];
    double far_ev;                     ///< least distance at which far_volume is read
    std::vector<double> volume, area;  ///< values at the distances roots_ev[0] + m · step
    std::vector<double> far_volume;    ///< values at the distances m · far_step
  };
  const Column* column_of(int j) const {
    return columns_.empty() ? nullptr : &columns_[static_cast<std::size_t>(j)];
  }
  bool is_near_root(const Column& column, double above_ev) const {
    for (const double root : column.roots_ev)
      if (above_ev > root - near_ev_ && above_ev < root + near_ev_) return true;
    return false;
  }
  static double interpolated(const std::vector<double>& table, double place_ev, double step_ev);
  Column make_column(int j) const;

  BeamGrid grid_;
  double step_ev_ = 0, far_step_ev_ = 0, near_ev_ = 0;
  std::vector<Column> columns_;
};

}  // namespace quasi::mosfet
