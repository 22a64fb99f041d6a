#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "workers/mosfet/kernels/beam/beam_transport.hpp"
#include "workers/mosfet/solver/beam/beam_point.hpp"
#include "workers/mosfet/solver/beam/neutral_contacts.hpp"
#include "workers/mosfet/solver/beam/small_signal/cell_slopes.hpp"

namespace quasi::mosfet {

/// Holds the derivatives of the equations along a direction δV of the potential at fixed
/// occupations g. They have the units below, per unit of δV.
struct FieldDerivative {
  std::vector<double> rate;     ///< δ(V ∂_t g) of streaming and scattering, layout of g, eV/fs
  std::vector<double> storage;  ///< δV g and the sweep through the cells of H, layout of g, eV
  std::vector<double> poisson;  ///< δP of Poisson's equation [nx][nz], V nm
  /// Electrons through the faces next to source and drain, 1/(nm fs).
  std::array<double, 2> current{};
  /// Electrons of the contact columns above neutrality, as the shifts of E_F that would hold them
  /// in equilibrium, eV. Zero for fixed inflow.
  std::array<double, 2> excess_ev{};
};

/// Linearises the equations of a steady state of the beam scheme in the potential
/// (docs/theory/mosfet.md 17.8). Volumes and areas follow the levels by their slopes in ε, which
/// are central differences. A cell that is closed or fully open stays so.
class FieldResponse {
 public:
  /// Solves the transport equations in the levels of `state`, and linearises around the solution.
  /// `device` must outlive the object.
  /// @param processor  a CUDA device does most of the solution, and the host only the last
  /// iterations
  /// @throws NotConverged if transport does not converge
  FieldResponse(const BeamDevice& device, const BiasPoint& bias, const BeamSteadyState& state,
                BeamOrder order = BeamOrder::kThird, const Device& processor = {});

  /// Computes the derivatives along `direction` [nx][nz]. Levels, wave functions and overlaps
  /// follow by central differences of 1e-4 V. Transport follows them by a hundredth of these
  /// differences, because a cell whose volume is smaller than its change would make the derivatives
  /// nonlinear.
  FieldDerivative along(const std::vector<double>& direction) const;
  /// Returns δP of Poisson's equation for occupations δg at fixed levels, V nm [nx][nz].
  /// @param g  δg in the layout of BeamOperator
  std::vector<double> poisson_of(const std::vector<double>& g) const;
  /// Returns the electrons of δg through the faces next to source and drain, 1/(nm fs).
  /// @param g  δg in the layout of BeamOperator
  std::array<double, 2> current_of(const std::vector<double>& g) const;
  /// Returns the electrons of δg in the contact columns at source and drain, as the shifts of E_F
  /// that would hold them in equilibrium, eV. They are zero for fixed inflow.
  /// @param g  δg in the layout of BeamOperator
  std::array<double, 2> excess_of(const std::vector<double>& g) const;
  /// Returns the change of V ∂_t g by electrons that enter at the source or the drain, per V at
  /// this contact, eV/(V fs), in the layout of g.
  std::vector<double> inflow_drive(bool source) const;
  /// Returns the change of the excess electrons of a contact column over those of neutrality, per V
  /// at this contact and at fixed levels. It has the form of excess_of(), eV/V. It comes from the
  /// error of the grid of H, which is part of the neutral density and moves with E_F. It vanishes
  /// for Maxwell statistics and for fixed inflow.
  double excess_drive(bool source) const;
  /// Holds the electrons Σ 2ϱ that a contact column needs for neutrality at the levels of the
  /// steady state, nm⁻². It also holds their derivatives by the band edges of each state at the
  /// first nodes from the contact inward [n_states][nodes], nm⁻²/eV.
  struct WantedElectrons {
    double sum_nm2 = 1.0;
    std::vector<double> slope;
  };
  /// Returns the neutral electrons of the source or the drain column. The derivatives vanish for
  /// fixed inflow.
  /// @param nodes  number of nodes from the contact inward
  WantedElectrons wanted_electrons(bool source, int nodes) const;
  /// Returns the factorised Newton matrix of a Gummel step, in which ϱ follows the levels. It maps
  /// δV in V to δP in V nm.
  ColumnMatrix gummel_matrix() const;

  /// Returns the streaming equations of the steady state.
  const BeamOperator& transport() const { return base_->transport; }
  /// Returns the scattering of the steady state.
  const BeamScattering& scattering() const { return base_->scattering; }
  /// Returns the nodes of given potential.
  const PotentialBoundary& boundary() const { return boundary_; }
  /// Returns the structure of the device.
  const Structure& structure() const { return device_.structure; }
  /// Returns the band edges of the steady state.
  const BeamLevels& levels() const { return base_->levels; }
  /// Returns the levels and wave functions of the steady state.
  const Subbands& subbands() const { return subbands_; }
  /// Returns the potential of the steady state, V [nx][nz].
  const std::vector<double>& potential_v() const { return potential_v_; }
  /// Returns the derivatives of volumes and areas.
  const CellSlopes& slopes() const { return *slopes_; }
  /// Returns the derivatives of the band edges at faces.
  const FaceSlopes& face_slopes() const { return *face_slopes_; }
  /// Returns the occupations of the steady state, in the layout of BeamOperator.
  const std::vector<double>& occupations() const { return g_; }
  /// Returns the index of the level of each state in subbands and overlaps [n_states].
  const std::vector<int>& level_of() const { return level_of_; }
  /// Returns the scattering processes of the problem.
  const std::vector<ScatteringProcess>& processes() const { return device_.problem.processes; }
  /// Returns the overlaps of the steady state [pairs of levels][nx], 1/nm.
  const std::vector<double>& overlap() const { return tables_.overlap; }
  /// Returns the device of the constructor.
  const BeamDevice& device() const { return device_; }
  /// Returns |F|²Ŝ of the steady state in the layout of BeamCellTables. It is empty for smooth
  /// interfaces.
  const std::vector<double>& roughness() const { return tables_.roughness; }
  /// Returns the derivatives of the relaxation rates of the cells by the level of their node, 1/(fs
  /// eV) [n_states][nx][n_h]. They are empty without relaxation by impurities.
  const std::vector<double>& relaxation_slope() const { return relaxation_slope_; }
  /// Returns true if the Fermi levels of the inflow keep the contact columns neutral.
  bool has_neutral_inflow() const { return neutral_.has_value(); }

 private:
  /// Holds the functions of the subbands that transport depends on.
  struct LevelTables {
    BeamLevels levels;
    std::vector<double> overlap, roughness;  ///< layouts of BeamScattering, BeamCellTables
  };
  LevelTables tables_of(const Subbands& subbands) const;
  /// Returns the tables of the steady state plus `share` of half of the difference of two others.
  LevelTables tables_between(const LevelTables& low, const LevelTables& high, double share) const;
  /// Transport at given levels, with blocking by the occupations g.
  struct Frame {
    Frame(const FieldResponse& owner, const LevelTables& tables, BeamGeometry cells,
          const std::vector<double>& g);
    BeamLevels levels;
    BeamGeometry geometry;
    BeamScattering scattering;
    BeamOperator transport;
  };
  void solve_base(const BiasPoint& bias, const BeamSteadyState& state, const Device& processor);
  std::vector<double> mean_on(const Device& processor, const std::vector<double>& start) const;
  BeamLevels levels_of(const Subbands& subbands) const;
  BeamCellTables cell_tables(const LevelTables& tables, const BeamGeometry& cells,
                             const std::vector<double>& g) const;
  void find_relaxation();
  std::vector<double> relaxation_at(const BeamLevels& levels) const;
  std::vector<double> density_of(const Subbands& subbands, const std::vector<double>& sheet) const;
  /// Returns electrons of the contact columns as shifts of E_F in equilibrium, eV.
  std::array<double, 2> as_shifts_ev(const std::array<double, 2>& electrons_nm2) const;
  double empty_share(std::size_t k, bool source) const;

  const BeamDevice& device_;
  PotentialBoundary boundary_;
  std::vector<int> level_of_;
  std::optional<NeutralContacts> neutral_;  ///< empty: fixed inflow
  BeamGrid grid_;
  BeamOrder order_;
  std::array<double, 2> fermi_ev_;  ///< E_F of the inflow at source and drain
  BeamInflow inflow_;
  std::array<double, 2> wanted_nm2_{1.0, 1.0};  ///< Σ 2ϱ of the neutral contact columns
  std::vector<double> potential_v_;
  Subbands subbands_;
  LevelTables tables_;  ///< tables of `subbands_`
  /// Relaxation at these levels, 1/fs, and its derivative by the level of its node, 1/(fs eV)
  /// [n_states][nx][n_h]; empty: none.
  std::vector<double> relaxation_fs_, relaxation_slope_;
  std::unique_ptr<Frame> base_;
  std::vector<double> g_;
  std::optional<CellSlopes> slopes_;
  std::optional<FaceSlopes> face_slopes_;
};

}  // namespace quasi::mosfet
