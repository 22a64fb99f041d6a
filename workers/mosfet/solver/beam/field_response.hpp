#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "workers/mosfet/kernels/beam/beam_transport.hpp"
#include "workers/mosfet/solver/beam/beam_point.hpp"
#include "workers/mosfet/solver/beam/neutral_contacts.hpp"

namespace quasi::mosfet {

/// Derivatives at fixed occupations g along a direction δV of the potential, per unit of δV.
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
  /// Solves transport at the levels of `state` and linearises there. @throws NotConverged
  FieldResponse(const BeamDevice& device, const BiasPoint& bias, const BeamSteadyState& state);

  /// Computes the derivatives along `direction` [nx][nz], by central differences of 1e-4 V.
  FieldDerivative along(const std::vector<double>& direction) const;
  /// Returns δP of Poisson's equation for occupations δg at fixed levels [nx][nz].
  std::vector<double> poisson_of(const std::vector<double>& g) const;
  /// Returns the electrons of δg through the faces next to source and drain, 1/(nm fs).
  std::array<double, 2> current_of(const std::vector<double>& g) const;
  /// Returns the electrons of δg in the contact columns, as shifts of E_F in equilibrium, eV.
  std::array<double, 2> excess_of(const std::vector<double>& g) const;
  /// Returns the change of V ∂_t g by electrons that enter, per V at the source and at the drain.
  std::vector<double> inflow_drive(bool source) const;
  /// Returns the factorised Newton matrix of a Gummel step, in which ϱ follows the levels.
  ColumnMatrix gummel_matrix() const;

  const BeamOperator& transport() const { return base_->transport; }
  const BeamScattering& scattering() const { return base_->scattering; }
  const PotentialBoundary& boundary() const { return boundary_; }
  bool has_neutral_inflow() const { return neutral_.has_value(); }

 private:
  /// Transport at given levels.
  struct Frame {
    Frame(const FieldResponse& owner, const Subbands& subbands, BeamGeometry geometry);
    BeamLevels levels;
    BeamGeometry geometry;
    BeamScattering scattering;
    BeamOperator transport;
  };
  /// Slopes in ε of the volumes and areas of all cells, in the layouts of BeamGeometry. `face` and
  /// `node` are those of the volume at one energy; `count` are volumes with the shape ω = 1.
  struct Slopes {
    std::vector<double> face, node, count_face, count_node, area;
  };
  /// Changes of ε along a direction [n_states][nx] and [n_states][nx+1], eV.
  struct LevelShift {
    std::vector<double> node, face;
  };

  BeamLevels levels_of(const Subbands& subbands) const;
  std::vector<double> density_of(const Subbands& subbands, const std::vector<double>& sheet) const;
  /// Returns electrons of the contact columns as shifts of E_F in equilibrium, eV.
  std::array<double, 2> as_shifts_ev(const std::array<double, 2>& electrons_nm2) const;
  void find_slopes();
  LevelShift shift_between(const BeamLevels& low, const BeamLevels& high) const;
  BeamGeometry shifted(const LevelShift& shift, double factor) const;
  std::vector<double> storage_of(const LevelShift& shift) const;

  const BeamDevice& device_;
  PotentialBoundary boundary_;
  std::vector<int> level_of_;
  std::optional<NeutralContacts> neutral_;  ///< empty: fixed inflow
  BeamGrid grid_;
  BeamInflow inflow_;
  std::array<double, 2> wanted_nm2_{1.0, 1.0};  ///< Σ 2ϱ of the neutral contact columns
  std::vector<double> potential_v_;
  Subbands subbands_;
  std::unique_ptr<Frame> base_;
  std::vector<double> g_;
  Slopes slopes_;
};

}  // namespace quasi::mosfet
