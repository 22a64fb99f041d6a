#include "workers/mosfet/kernels/beam/march/beam_cell_table.hpp"

#include <algorithm>
#include <cmath>

namespace quasi::mosfet {
namespace {

constexpr int kPointsPerCell = 128, kFarPointsPerCell = 32;
// The cubics are accurate from this distance to a root on, in points of the table.
constexpr double kPointsFromRoot = 20.0;
// The coarser table begins this far above the last root, in cells of H.
constexpr double kFarCells = 2.0;

}  // namespace

BeamCellTable::BeamCellTable(const BeamGrid& grid) : grid_(grid) {
  if (grid.shape.fermi) return;
  step_ev_ = grid.dh_ev / kPointsPerCell;
  far_step_ev_ = grid.dh_ev / kFarPointsPerCell;
  near_ev_ = kPointsFromRoot * step_ev_;
  columns_.resize(static_cast<std::size_t>(grid.n_kappa));
#pragma omp parallel for schedule(dynamic)
  for (int j = 0; j < grid.n_kappa; ++j) columns_[static_cast<std::size_t>(j)] = make_column(j);
}

BeamCellTable::Column BeamCellTable::make_column(int j) const {
  const BeamCell cell = grid_.cell(0, j);
  const double low = beam_least_energy(cell.kappa_low, grid_.alpha_per_ev),
               high = beam_least_energy(cell.kappa_high, grid_.alpha_per_ev);
  Column column{.roots_ev = {low - grid_.dh_ev, high - grid_.dh_ev, low, high},
                .far_ev = high + kFarCells * grid_.dh_ev,
                .volume = {},
                .area = {},
                .far_volume = {}};
  std::sort(std::begin(column.roots_ev), std::end(column.roots_ev));
  const auto edge_at = [&](double above_ev) { return cell.h_low_ev - above_ev; };
  const int near = static_cast<int>((column.far_ev - column.roots_ev[0]) / step_ev_) + 4;
  for (int m = 0; m < near; ++m) {
    const double edge = edge_at(column.roots_ev[0] + m * step_ev_);
    column.volume.push_back(beam_volume(cell, grid_.shape, grid_.alpha_per_ev, edge));
    column.area.push_back(beam_area(cell, grid_.shape, grid_.alpha_per_ev, edge));
  }
  // Entries below far_ev are never read. They stay 0 and make the index equal to the distance.
  const int first = static_cast<int>(column.far_ev / far_step_ev_) - 2;
  column.far_volume.resize(static_cast<std::size_t>(grid_.n_h + 2) * kFarPointsPerCell, 0.0);
  for (int m = std::max(0, first); m < static_cast<int>(column.far_volume.size()); ++m)
    column.far_volume[static_cast<std::size_t>(m)] =
        beam_volume(cell, grid_.shape, grid_.alpha_per_ev, edge_at(m * far_step_ev_));
  return column;
}

double BeamCellTable::interpolated(const std::vector<double>& table, double place_ev,
                                   double step_ev) {
  const double place = place_ev / step_ev;
  const int m = std::clamp(static_cast<int>(place), 1, static_cast<int>(table.size()) - 3);
  const double t = place - m;
  const double* p = &table[static_cast<std::size_t>(m)];
  return -t * (t - 1.0) * (t - 2.0) / 6.0 * p[-1] + (t + 1.0) * (t - 1.0) * (t - 2.0) / 2.0 * p[0] -
         (t + 1.0) * t * (t - 2.0) / 2.0 * p[1] + (t + 1.0) * t * (t - 1.0) / 6.0 * p[2];
}

}  // namespace quasi::mosfet
