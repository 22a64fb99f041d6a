#include "workers/mosfet/kernels/beam/beam_geometry.hpp"

#include <algorithm>
#include <cmath>

#include "workers/mosfet/kernels/beam/march/beam_cell_table.hpp"
#include "workers/mosfet/physics/beam/face_energies.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {
namespace {

// Returns the place of the edges of cells, in cells from a multiple of ΔH, that is as far from both
// levels as possible: the middle of the longer arc between them.
double edge_phase(double dh_ev, double source_ev, double drain_ev) {
  const auto phase = [](double cells) { return cells - std::floor(cells); };
  const double source = phase(source_ev / dh_ev), drain = phase(drain_ev / dh_ev);
  const double middle = 0.5 * (source + drain);
  // Where both arcs are equal, rounding must not choose between them.
  constexpr double kHalf = 0.5 - 1e-6;
  return phase(std::fabs(source - drain) >= kHalf ? middle : middle + 0.5);
}

}  // namespace

BeamGrid make_beam_grid(const BeamMesh& mesh, const BeamLevels& levels, double dx_nm,
                        double alpha_per_ev, const BeamShape& shape) {
  const auto [lowest, highest] = std::minmax_element(levels.edge_ev.begin(), levels.edge_ev.end());
  double top = shape.fermi_ev, source = *highest, drain = *highest;
  for (int state = 0; state < levels.n_states(); ++state) {
    const double* edge = levels.edge_of(state);
    source = std::min(source, edge[0]);
    drain = std::min(drain, edge[levels.nx - 1]);
    if (state % levels.subbands == 0)
      top = std::max(top, *std::max_element(edge, edge + levels.nx));
  }
  BeamGrid grid{.nx = levels.nx,
                .n_kappa = mesh.n_kappa,
                .dx_nm = dx_nm,
                .h_min_ev = 0.0,
                .dh_ev = mesh.dh_ev,
                .alpha_per_ev = alpha_per_ev,
                .shape = shape};
  // The edges follow from the contact levels alone. The other levels move the ends of the grid by
  // whole cells.
  const double phase = edge_phase(grid.dh_ev, source, drain);
  grid.h_min_ev =
      (std::floor((*lowest - mesh.margin_ev) / grid.dh_ev - phase) + phase) * grid.dh_ev;
  grid.n_h = static_cast<int>(std::ceil((top + mesh.window_ev - grid.h_min_ev) / grid.dh_ev));
  const double h_max = grid.h_low_ev(grid.n_h);
  grid.dkappa = std::sqrt(beam_gamma(h_max - grid.h_min_ev, alpha_per_ev)) / grid.n_kappa;
  return grid;
}

BeamFactors make_beam_factors(const BeamLevels& levels) {
  BeamFactors factors;
  for (int state = 0; state < levels.n_states(); ++state) {
    const ValleyPair& valley = levels.valley_of(state);
    const double root_mass = std::sqrt(valley.mx_m0 * valley.my_m0) * kElectronMass_ev_fs2_nm2;
    factors.density.push_back(2.0 * root_mass /
                              (units::kPi * units::kPi * kHbar_ev_fs * kHbar_ev_fs));
    factors.speed.push_back(1.0 / std::sqrt(2.0 * valley.mx_m0 * kElectronMass_ev_fs2_nm2));
    factors.states.push_back(4.0 * root_mass);
  }
  return factors;
}

namespace {

// Makes a geometry whose volumes and areas are not yet set.
BeamGeometry unfilled_geometry(const BeamGrid& grid, const BeamLevels& levels) {
  BeamGeometry g{.grid = grid, .n_states = levels.n_states()};
  const BeamFactors factors = make_beam_factors(levels);
  g.density_factor = factors.density;
  g.speed_factor = factors.speed;
  g.states_factor = factors.states;
  g.volume.resize(static_cast<std::size_t>(g.cells()));
  g.area.resize(static_cast<std::size_t>(g.n_states * (grid.nx + 1) * g.lines()));
  for (int k = 0; k < grid.n_h; ++k)
    for (int j = 0; j < grid.n_kappa; ++j) {
      const BeamCell cell = grid.cell(k, j);
      g.full.push_back(cell.full_ev * (cell.kappa_high - cell.kappa_low));
    }
  return g;
}

/// Integrates volumes and areas of single cells, with the functions of BeamCellTable.
struct IntegratedCells {
  const BeamGrid& grid;
  double volume(const BeamCell& cell, int, double edge_ev) const {
    return beam_volume(cell, grid.shape, grid.alpha_per_ev, edge_ev);
  }
  double area(const BeamCell& cell, int, double edge_ev) const {
    return beam_area(cell, grid.shape, grid.alpha_per_ev, edge_ev);
  }
};

// Fills the volumes and areas of a geometry. `cells` gives those of one cell at one band edge, as
// BeamCellTable does. For every node keep(at_face, at_node, at_next_face, state, i, line) receives
// the volumes at its left face, its centre and its right face.
template <typename Cells, typename Keep>
void fill_geometry(const BeamLevels& levels, const Cells& cells, const Keep& keep,
                   BeamGeometry* geometry) {
  BeamGeometry& g = *geometry;
  const BeamGrid& grid = g.grid;
  const int nx = grid.nx, nj = grid.n_kappa;
  for (int state = 0; state < g.n_states; ++state) {
    std::vector<double> faces(static_cast<std::size_t>(nx) + 1);
    face_energies(levels.edge_of(state), nx, faces.data());
    const double* nodes = levels.edge_of(state);
#pragma omp parallel for schedule(dynamic)
    for (int k = 0; k < grid.n_h; ++k)
      for (int j = 0; j < nj; ++j) {
        const BeamCell cell = grid.cell(k, j);
        const std::int64_t line = static_cast<std::int64_t>(k) * nj + j;
        double face_volume = cells.volume(cell, j, faces[0]);
        for (int i = 0; i <= nx; ++i) {
          g.area[static_cast<std::size_t>(g.face(state, i) + line)] =
              cells.area(cell, j, faces[static_cast<std::size_t>(i)]);
          if (i == nx) break;
          const double before = face_volume, here = cells.volume(cell, j, nodes[i]);
          face_volume = cells.volume(cell, j, faces[static_cast<std::size_t>(i) + 1]);
          g.volume[static_cast<std::size_t>(g.node(state, i) + line)] =
              (before + 4.0 * here + face_volume) / 6.0;
          keep(before, here, face_volume, state, i, line);
        }
      }
  }
}

}  // namespace

BeamGeometry make_beam_geometry(const BeamGrid& grid, const BeamLevels& levels) {
  BeamGeometry g = unfilled_geometry(grid, levels);
  fill_geometry(
      levels, IntegratedCells{grid}, [](double, double, double, int, int, std::int64_t) {}, &g);
  return g;
}

BeamGeometry make_beam_geometry(const BeamGrid& grid, const BeamLevels& levels,
                                const BeamCellTable& table, BeamEdgeVolumes* edges) {
  BeamGeometry g = unfilled_geometry(grid, levels);
  edges->node.resize(g.volume.size());
  edges->face.resize(g.area.size());
  fill_geometry(
      levels, table,
      [&](double before, double here, double after, int state, int i, std::int64_t line) {
        edges->face[static_cast<std::size_t>(g.face(state, i) + line)] = before;
        edges->face[static_cast<std::size_t>(g.face(state, i + 1) + line)] = after;
        edges->node[static_cast<std::size_t>(g.node(state, i) + line)] = here;
      },
      &g);
  return g;
}

double beam_states(const BeamGrid& grid, double node_ev, const double* faces_ev, int k) {
  BeamCell cell = grid.cell(k, 0);
  cell.kappa_high = grid.n_kappa * grid.dkappa;
  const auto volume = [&](double edge_ev) {
    return beam_volume(cell, grid.shape, grid.alpha_per_ev, edge_ev);
  };
  return 2.0 * (volume(faces_ev[0]) + 4.0 * volume(node_ev) + volume(faces_ev[1])) / 6.0;
}

}  // namespace quasi::mosfet
