#pragma once

#include <cstdint>
#include <vector>

#include "workers/mosfet/model/beam/beam_grid.hpp"
#include "workers/mosfet/model/model.hpp"

namespace quasi::mosfet {

/// Bands of the electrons and the levels of all subbands, as the beam discretisation needs them.
struct BeamLevels {
  std::vector<ValleyPair> valleys;
  int subbands = 0, nx = 0;
  std::vector<double> edge_ev;  ///< ε_{νp}(x), valley offsets included [n_valleys][subbands][nx]

  int n_states() const { return static_cast<int>(valleys.size()) * subbands; }
  const ValleyPair& valley_of(int state) const {
    return valleys[static_cast<std::size_t>(state / subbands)];
  }
  const double* edge_of(int state) const { return &edge_ev[static_cast<std::size_t>(state) * nx]; }
};

/// Parameters that determine a BeamGrid.
struct BeamMesh {
  double dh_ev = 0.00625;
  int n_kappa = 24;
  double window_ev = 0.6;  ///< above E_F and the highest of the lowest levels
  double margin_ev = 0.1;  ///< below the lowest level, because the iteration moves the levels
};

/// Makes the grid of one bias point. It is shifted so that neither contact level lies within 0.2 ΔH
/// of a cell edge, where volumes and areas have kinks.
BeamGrid make_beam_grid(const BeamMesh& mesh, const BeamLevels& levels, double dx_nm,
                        double alpha_per_ev, const BeamShape& shape);

/// Begin here: volumes and areas of all cells for given levels (docs/theory/mosfet.md 17.1, 17.2).
/// beam_operator.hpp uses them for streaming, beam_scattering.hpp for scattering.
struct BeamGeometry {
  BeamGrid grid;
  int n_states = 0;
  std::vector<double> volume;  ///< V of the control volumes, eV [n_states][nx][n_h][n_kappa]
  std::vector<double> area;    ///< A at the faces i − ½, eV^{3/2} [n_states][nx+1][n_h][n_kappa]
  std::vector<double> full;    ///< A of a fully open cell [n_h][n_kappa]
  /// Prefactors C_ν = 2√(m_x m_y)/(π²ħ²), 1/(nm² eV), and c_ν = 1/√(2m_x), nm/(fs √eV) [n_states].
  std::vector<double> density_factor, speed_factor;
  std::vector<double> states_factor;  ///< 4√(m_x m_y), eV fs² nm⁻² [n_states]

  /// Returns the number of cells (k, j) of one node.
  std::int64_t lines() const { return static_cast<std::int64_t>(grid.n_h) * grid.n_kappa; }
  /// Returns the number of cells of one sign of k_x, which is the length of one branch of g.
  std::int64_t cells() const { return n_states * static_cast<std::int64_t>(grid.nx) * lines(); }
  /// Returns the index of the first cell of a node in `volume`.
  std::int64_t node(int state, int i) const {
    return (static_cast<std::int64_t>(state) * grid.nx + i) * lines();
  }
  /// Returns the index of the first cell of the face i − ½ in `area`.
  std::int64_t face(int state, int i) const {
    return (static_cast<std::int64_t>(state) * (grid.nx + 1) + i) * lines();
  }
};

/// Prefactors of the states of given levels, each [n_states]; see BeamGeometry.
struct BeamFactors {
  std::vector<double> density, speed, states;
};
BeamFactors make_beam_factors(const BeamLevels& levels);

/// Computes volumes and areas of all cells.
BeamGeometry make_beam_geometry(const BeamGrid& grid, const BeamLevels& levels);

/// Holds the volumes V at single band edges. Simpson's rule makes the volume of a node from three
/// of them: its left face, its centre and its right face.
struct BeamEdgeVolumes {
  std::vector<double> node;  ///< V at the nodes, eV [n_states][nx][n_h][n_kappa]
  std::vector<double> face;  ///< V at the faces i − ½, eV [n_states][nx+1][n_h][n_kappa]
};
class BeamCellTable;
/// Computes volumes and areas of all cells from a table. @param edges  receives the volumes at
/// single band edges
BeamGeometry make_beam_geometry(const BeamGrid& grid, const BeamLevels& levels,
                                const BeamCellTable& table, BeamEdgeVolumes* edges);

/// Returns D = Σ_{b,j} V of the cells with number k in H of one column and state, eV. @param
/// node_ev ε of the column @param faces_ev  ε of its two faces
double beam_states(const BeamGrid& grid, double node_ev, const double* faces_ev, int k);

}  // namespace quasi::mosfet
