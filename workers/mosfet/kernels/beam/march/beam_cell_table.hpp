#pragma once

#include <vector>

#include "workers/mosfet/model/beam/beam_grid.hpp"

namespace quasi::mosfet {

/// Volumes beam_volume() and areas beam_area() of all cells as functions of the band edge. With
/// Maxwell's statistics both depend on the distance of the edge from the cell's lower end and on j
/// alone, so that one table for each j serves all k. Cubics through four points of the table give
/// partly open cells to 1e-6 and volumes far above the edge to 1e-8. Closed cells and areas of
/// fully open cells are exact. Next to the four distances where a cell opens or has opened
/// completely, both have roots and are integrated (docs/theory/mosfet.md 17.10).
class BeamCellTable {
 public:
  /// Makes the tables. With Fermi statistics they stay empty, and all cells are integrated.
  explicit BeamCellTable(const BeamGrid& grid);

  /// Returns beam_volume() of the cell with the number j in κ.
  double volume(const BeamCell& cell, int j, double edge_ev) const {
    const Column* column = column_of(j);
    const double above_ev = cell.h_low_ev - edge_ev;
    if (column == nullptr || is_near_root(*column, above_ev))
      return beam_volume(cell, grid_.shape, grid_.alpha_per_ev, edge_ev);
    if (above_ev <= column->roots_ev[0]) return 0.0;
    if (above_ev >= column->far_ev) return interpolated(column->far_volume, above_ev, far_step_ev_);
    return interpolated(column->volume, above_ev - column->roots_ev[0], step_ev_);
  }
  /// Returns beam_area() of the cell with the number j in κ.
  double area(const BeamCell& cell, int j, double edge_ev) const {
    const Column* column = column_of(j);
    const double above_ev = cell.h_low_ev - edge_ev;
    if (column == nullptr || is_near_root(*column, above_ev) || above_ev >= column->roots_ev[3])
      return beam_area(cell, grid_.shape, grid_.alpha_per_ev, edge_ev);
    if (above_ev <= column->roots_ev[0]) return 0.0;
    return interpolated(column->area, above_ev - column->roots_ev[0], step_ev_);
  }

 private:
  /// Tables of one j.
  struct Column {
    /// Distances at which the lower and the upper end of the cell in κ open, at the upper and the
    /// lower end in H; increasing.
    double roots_ev[4];
    double far_ev;                     ///< least distance that `far_volume` serves
    std::vector<double> volume, area;  ///< at the distances roots_ev[0] + m · step
    std::vector<double> far_volume;    ///< at the distances m · far_step
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
