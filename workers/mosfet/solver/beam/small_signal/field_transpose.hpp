#pragma once

#include <vector>

#include "workers/mosfet/solver/beam/small_signal/field_response.hpp"
#include "workers/mosfet/solver/beam/small_signal/roughness_slopes.hpp"

namespace quasi::mosfet {

/// Computes transposes of the derivatives of a FieldResponse of first order along x
/// (docs/theory/mosfet.md 17.9). A function of_…() takes the weights of a sum over cells or
/// nodes. It returns the derivatives of the sum with respect to the potential V [nx][nz], while
/// the occupations g of the cells stay fixed.
///
/// The weight of a cell is w = 2 C_ν Δx e^{(E_F−H)/kT}, so that Σ w V g counts the electrons
/// of both valleys per width. Ψ and Φ are the adjoint solutions for transport and for the field.
class FieldTranspose {
 public:
  /// Computes all states of every column, from which first orders follow. `response` must outlive
  /// the object.
  /// @throws NotConverged if a column has no states
  explicit FieldTranspose(const FieldResponse& response);

  /// Returns the derivatives of Σ w Ψ V ∂_t g, 1/(V fs). @param psi  Ψ in the layout of g
  std::vector<double> of_rate(const std::vector<double>& psi) const;
  /// Returns the derivatives of Σ w Ψ times the storage of a FieldDerivative, 1/V.
  /// @param psi  Ψ in the layout of g
  std::vector<double> of_storage(const std::vector<double>& psi) const;
  /// Returns the derivatives of Σ Φ P with the residual P of Poisson's equation, nm. They are
  /// zero on nodes of given potential.
  /// @param phi  Φ [nx][nz], zero on nodes of given potential
  std::vector<double> of_poisson(const std::vector<double>& phi) const;
  /// Returns the derivatives of the electrons through the face next to the source or the drain,
  /// 1/(V nm fs).
  std::vector<double> of_current(bool source) const;

  /// Returns the weight w of the cells of a state in the cell k of H, for one branch, 1/(nm eV).
  double weight(int state, int k) const;
  /// Returns Σ_z Φ (e/ε0) |ψ|² times the control volume of the nodes, V nm² [n_states][nx].
  /// An electron of a state and column changes Σ Φ P by this number.
  /// @param phi  Φ [nx][nz]
  std::vector<double> potential_of_electrons(const std::vector<double>& phi) const;

 private:
  /// All states of every column [nx][families][interior] and [nx][families][interior][interior].
  struct AllStates {
    std::vector<double> energy_ev, wave;
  };
  static AllStates all_states_of(const FieldResponse& response);
  static ColumnMatrix matrix_at_fixed_sheet(const FieldResponse& response, const AllStates& states);
  /// Returns Ψ w in the layout of g.
  std::vector<double> weighted(const std::vector<double>& psi) const;
  /// Adds the derivatives of Σ w Ψ V ∂_t g of streaming by the areas.
  void add_streaming(const std::vector<double>& weighted, std::vector<double>* area) const;
  /// Adds the derivatives of Σ w Ψ V ∂_t g of scattering by the volumes.
  void add_scattering(const std::vector<double>& psi, std::vector<double>* volume) const;
  /// Adds the derivatives of Σ w Ψ V ∂_t g by the levels, on which rates by impurities depend.
  void add_relaxation(const std::vector<double>& psi, std::vector<double>* level) const;
  std::vector<double> by_potential(const LevelShift& slopes) const;
  std::vector<double> by_overlap(const std::vector<double>& slopes) const;

  const FieldResponse& response_;
  AllStates states_;
  RoughnessSlopes roughness_;
  ColumnMatrix fixed_sheet_;  ///< derivative of P at fixed ϱ; wave functions follow V
};

}  // namespace quasi::mosfet
