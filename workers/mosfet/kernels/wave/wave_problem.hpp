#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workers/backend/complex.hpp"
#include "workers/backend/host_device.hpp"
#include "workers/backend/unset_vector.hpp"

namespace quasi::mosfet {

/// A small-signal quantity is the complex amplitude of e^{iωt}.
using WaveValue = Complex<double>;
/// Three right sides are solved together. They belong to 1 V at source, drain and gate.
constexpr int kWaveColumns = 3;
/// Arrays of contacts hold source and drain in this order.
constexpr int kWaveContacts = 2;
/// The band edge at face n may follow those of the kFaceNodes nodes from n − kFacesAhead to n +
/// 2.
constexpr int kFaceNodes = 6, kFacesAhead = 3;
/// The electrons that a contact column needs for neutrality may follow the band edges of this
/// number of nodes, because they follow the two faces of the column.
constexpr int kContactNodes = 3;
/// A cell follows three band edges: those of the face before it, of its node and of the face behind
/// it.
constexpr int kCellEdges = 3;
/// A cell has derivatives of four quantities by its band edges: the rates of g⁺ and g⁻, and the
/// storage of g⁺ and g⁻.
constexpr int kCellSlopes = 4 * kCellEdges;

/// Holds the sizes of a small-signal problem: states, nodes along x, cells of H and of κ
/// (docs/theory/mosfet.md 17.1), nodes along z, levels, and states of one pair of valleys.
struct WaveShape {
  int n_states = 0, nx = 0, n_h = 0, n_kappa = 0;
  int nz = 0, n_levels = 0, subbands = 0;
  bool neutral = false;  ///< E_F of both contacts are unknowns (docs/theory/mosfet.md 17.8)

  /// Returns the number of lines (H, κ) of one state.
  QUASI_HD std::int64_t lines() const { return static_cast<std::int64_t>(n_h) * n_kappa; }
  /// Returns the number of cells of H of all states and nodes along x.
  QUASI_HD std::int64_t rows() const { return static_cast<std::int64_t>(n_states) * nx * n_h; }
  /// Returns the number of cells (H, κ) of all states and nodes along x.
  QUASI_HD std::int64_t cells() const { return n_states * static_cast<std::int64_t>(nx) * lines(); }
  /// Returns the number of nodes of the potential.
  QUASI_HD std::int64_t nodes() const { return static_cast<std::int64_t>(nx) * nz; }
  /// Returns the number of ordered pairs of levels.
  QUASI_HD std::int64_t pairs() const { return static_cast<std::int64_t>(n_levels) * n_levels; }
  /// Returns the length of a vector of unknowns. It holds the means of δg over κ and both
  /// branches [n_states][nx][n_h] and δV [nx][nz], V. With neutral inflow the shifts of E_F at
  /// source and drain follow, V.
  QUASI_HD std::int64_t size() const { return rows() + nodes() + (neutral ? kWaveContacts : 0); }
};

/// Describes a scattering process with one distance in H. It joins either the states of one pair of
/// valleys or those of two different pairs.
struct WaveBranch {
  int other_pair = 0;  ///< 1 if it joins states of different pairs, else 0
  int shift = 0;       ///< cells of H from the low to the high end
  double strength = 0, rise = 1;
};

/// Begin here: this class holds the equations of section 17.8 of docs/theory/mosfet.md, linearised
/// at one steady state, as tables of numbers. Occupations are Maxwellian. Scattering is isotropic,
/// without roughness and impurities. All derivatives by a band edge are per eV, and those by the
/// potential are per V. WaveKernels solves the equations at any frequency.
struct WaveProblem {
  WaveShape shape;
  bool third = false;  ///< upwind parabolas where faces are open (BeamOrder::kThird)

  // Streaming, in the layouts of BeamGeometry and BeamOperator.
  std::vector<double> volume, area, full;
  std::vector<double> speed;  ///< c_ν/Δx [n_states], 1/(fs √eV)
  std::vector<double> g;      ///< g of the steady state [2][cells]
  std::vector<double> loss;   ///< loss rates λ [rows], 1/fs; empty without scattering
  /// Derivatives of V ∂_t g of streaming and of the steady scattering, and of the storage, of
  /// each branch by each band edge of its cell [kCellSlopes][cells]. Order: rate of g⁺, rate of
  /// g⁻, storage of g⁺, storage of g⁻, each by face before, node, face behind.
  UnsetVector<double> cell_slopes;

  // Cells of H.
  std::vector<double> states;            ///< D, volumes of both branches summed over κ [rows], eV
  std::vector<double> electrons;         ///< D times mean occupations ḡ [rows], eV
  std::vector<double> states_slopes;     ///< ∂D by face, node, face [kCellEdges][rows]
  std::vector<double> electrons_slopes;  ///< ∂(Dḡ) at fixed g [kCellEdges][rows]
  std::vector<double> states_factor;     ///< 4√(m_x m_y) [n_states]
  std::vector<double> density_weight;    ///< C_ν e^{(E_F−H)/kT} [n_states][n_h], 1/(nm² eV)
  std::vector<double> overlap;           ///< W [pairs][nx], 1/nm
  std::vector<WaveBranch> branches;      ///< empty without scattering
  std::vector<double> inverse_full;      ///< 1/Ω_k [n_h], 1/eV

  // Levels.
  std::vector<int> level_of;          ///< level of a state [n_states]
  std::vector<double> level_slope;    ///< ∂ε/∂V [n_levels][nx][nz]
  std::vector<double> face_slope;     ///< ∂ε_face/∂ε_node [n_states][nx+1][kFaceNodes]
  std::vector<double> overlap_slope;  ///< ∂W/∂V [pairs][nx][nz]

  // Poisson's equation (PoissonStencil).
  std::vector<char> fixed;            ///< nodes of given potential [nx][nz]
  std::vector<double> stencil;        ///< weights of V − V_neighbour: z below, above, x before,
                                      ///< behind [nx][nz][4]
  std::vector<double> psi_square;     ///< |ψ|² [n_levels][nx][nz], 1/nm
  std::vector<double> density_slope;  ///< ∂N/∂V at fixed ϱ [nx][nz][nz], 1/(nm³ V)
  std::vector<double> charge;         ///< e/ε0 times the control volume of a node [nx], V nm⁴
  std::vector<double> inverse;        ///< inverse of Gummel's matrix, symmetric [nodes][nodes]

  // Contacts.
  /// Change of V ∂_t g next to a contact by its E_F alone, per V [2][n_states][lines], 1/fs.
  std::vector<double> entering;
  /// ∂(Σ 2ϱ)/∂ε of a neutral contact column by the nodes from the contact inward,
  /// 1/(nm² eV) [2][n_states][kContactNodes].
  std::vector<double> wanted_slope;
  std::array<double, kWaveContacts> excess_scale{};  ///< kT/Σ 2ϱ of a neutral column, eV nm²
  std::array<double, kWaveContacts> excess_drive{};  ///< FieldResponse::excess_drive(), eV/V
  std::vector<double> current_weight;  ///< 2 C_ν c_ν e^{(E_F−H)/kT} [n_states][n_h]
  std::vector<double> current_slope;   ///< ∂I/∂ε_face of the faces next to the contacts
                                       ///< [2][n_states], 1/(nm fs eV)

  std::vector<double> lift;     ///< δV of given potentials for 1 V [kWaveColumns][nodes]
  std::vector<double> weights;  ///< weights of the unknowns in the norm of GMRES [shape.size()]
};

}  // namespace quasi::mosfet
