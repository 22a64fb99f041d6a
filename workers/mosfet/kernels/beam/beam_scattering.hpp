#pragma once

#include <cstdint>
#include <vector>

#include "workers/mosfet/kernels/beam/beam_geometry.hpp"
#include "workers/mosfet/kernels/beam/scattering_sums.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"

namespace quasi::mosfet {

/// One process from a low state to a high state, `shift` cells of H up.
struct BeamLink {
  int low = 0, high = 0, process = 0, shift = 0;
  double strength = 0;  ///< c_μ Z N_μ b_h/ħ²; the column adds its overlap
  int overlap = 0;      ///< index of the two levels in the overlap matrix
  double rise = 1;      ///< e^{(H_h−H_k)/kT}
  bool rough = false;   ///< the coupling is that of the steps of the interfaces, not the overlap
};

/// Holds tables of scattering with one value for every cell of H.
struct BeamCellTables {
  /// f̄ around which blocking is linearised [n_states][nx][n_h]; empty: no blocking.
  std::vector<double> filling;
  /// |F|²Ŝ(w,w') from a state to the subbands of its valley, eV² nm²
  /// [n_states][subbands][nx][n_h]; empty: smooth interfaces.
  std::vector<double> roughness;
  /// Rate of relaxation to the mean over κ and both branches [n_states][nx][n_h]; empty: none.
  std::vector<double> relaxation_fs;
};

/// Lists the links of all processes. @param level_of  level of a state, its index in the overlap
/// matrix [n_states]
std::vector<BeamLink> make_beam_links(const BeamGrid& grid, int n_states, int subbands,
                                      const std::vector<ScatteringProcess>& processes,
                                      const std::vector<int>& level_of);

/// Isotropic scattering on the H grid (docs/theory/mosfet.md 17.4).
///
/// All subbands share the grid, so a process of energy ħω joins the cell k of a low state to the
/// cells h = k + ⌊ħω/ΔH⌋ and h + 1 of a high state with weights that depend on the process alone.
/// The number that goes up a link per time and length is
///
///   T (f̄_low − e^{(H_h−H_k)/kT} f̄_high),   T = C_ν D_low(k) c_μ Z W N_μ b_h S_high(h),
///
/// with D(k) = Σ_{b,j} V, S(h) = 4√(m_x m_y) D(h)/Ω_h and f̄ = Σ V f / D. In terms of g = f
/// e^{(H−E_F)/kT} both directions have the factor e^{(E_F−H_k)/kT}, so that equal ḡ is left alone
/// to the bit.
class BeamScattering {
 public:
  /// @param overlap  W [families·subbands][families·subbands][nx], 1/nm
  /// @param level_of  level of a state, its index in `overlap` [n_states]
  BeamScattering(const BeamGeometry& geometry, const BeamLevels& levels,
                 const std::vector<ScatteringProcess>& processes,
                 const std::vector<double>& overlap, const std::vector<int>& level_of,
                 BeamCellTables cells = {});

  bool scatters() const { return !links_.empty() || !cells_.relaxation_fs.empty(); }
  bool blocks() const { return !cells_.filling.empty(); }
  /// Returns D = Σ_{b,j} V of every cell of H [n_states][nx][n_h], eV.
  const std::vector<double>& states() const { return states_; }
  /// Returns λ [n_states][nx][n_h], 1/fs.
  const std::vector<double>& loss() const { return loss_; }

  /// Returns ḡ = Σ_{b,j} V g / D [n_states][nx][n_h]; zero for closed cells.
  std::vector<double> mean(const std::vector<double>& g) const;
  /// Returns the gain in g per time: Σ over links of their rate times ḡ of the other end, and
  /// relaxation to ḡ [n_states][nx][n_h].
  std::vector<double> gain(const std::vector<double>& mean) const;
  /// Returns the change of λ by a change of ḡ, which blocks or frees final states, to first
  /// order [n_states][nx][n_h], 1/fs. @param mean δḡ [n_states][nx][n_h]
  std::vector<double> blocked_loss(const std::vector<double>& mean) const;
  /// Returns the gain of the transposed equations of δg, which Ψ obeys with the weights
  /// w = C_ν e^{(E_F−H)/kT} of electrons [n_states][nx][n_h], 1/fs: (wD)⁻¹ of the derivatives
  /// of Σ w V Ψ (gain − λ g) by the electrons D ḡ of every cell of H.
  /// @param psi  Σ V Ψ/D @param uneven  Σ V (ḡ − g) Ψ/D, which acts with blocking
  std::vector<double> transposed_gain(const std::vector<double>& psi,
                                      const std::vector<double>& uneven) const;
  /// Returns the gain by links alone, without blocking and relaxation.
  std::vector<double> link_gain(const std::vector<double>& mean) const {
    return sum(ScatteringSums::Weight::kRate, mean);
  }
  /// Returns the rate of relaxation to the mean, 1/fs [n_states][nx][n_h]; empty: none.
  const std::vector<double>& relaxation_fs() const { return cells_.relaxation_fs; }
  /// Returns the gain in g per time that depends on `filling` alone [n_states][nx][n_h]; empty
  /// without blocking.
  const std::vector<double>& source() const { return source_; }

  /// Returns the power that the electrons of one valley give to the phonons of each process
  /// [processes][nx], eV/(nm² fs).
  std::vector<double> phonon_power(const std::vector<double>& mean) const;
  /// Returns the part of phonon_power() by emission alone, as a scale for the balance at
  /// equilibrium.
  std::vector<double> emission_power(const std::vector<double>& mean) const;
  /// Returns Σ over links of the net number that enters a state [n_states][nx][n_h], 1/(nm² fs).
  std::vector<double> net_number(const std::vector<double>& mean) const;
  /// Returns Σ over links and directions of rate (Ψ_to − Ψ_from)(Χ_to − Χ_from), one
  /// valley, 1/(nm² fs). Electrons leave the points of a cell of H in proportion to V g and arrive
  /// in proportion to V. With Fermi statistics a rate contains 1 − f̄ of the cell of arrival.
  /// @param g, a, b g, Ψ and Χ in the layout of BeamOperator
  double noise(const std::vector<double>& g, const std::vector<double>& a,
               const std::vector<double>& b) const;
  /// Derivatives of Σ w Ψ V (gain − λ g) by matrix elements, in the layouts of the overlaps
  /// and of BeamCellTables::roughness, with the weights w = C_ν e^{(E_F−H)/kT} of electrons.
  struct CouplingSlopes {
    std::vector<double> overlap, roughness;
  };
  /// Returns these derivatives. @param g, psi  in the layout of BeamOperator
  CouplingSlopes coupling_slopes(const std::vector<double>& g,
                                 const std::vector<double>& psi) const;

 private:
  std::int64_t row(int state, int i) const {
    return (static_cast<std::int64_t>(state) * geometry_.grid.nx + i) * geometry_.grid.n_h;
  }
  /// Rates of a link between cell k of the low end and k + shift of the high end in column i, 1/fs.
  struct LinkRates {
    double low = 0, high = 0;  ///< per electron of the low end and of the high end, without
                               ///< blocking
  };
  LinkRates rates(const BeamLink& link, int i, int k) const;
  /// Returns the matrix element of a link in column i: overlap, 1/nm, or that of roughness.
  double coupling(const BeamLink& link, int i, int k) const;
  /// Returns the sums of the processes over `values` of their other ends, times the open states,
  /// which are zero in closed cells [n_states][nx][n_h]. @param values  empty: 1
  std::vector<double> sum(ScatteringSums::Weight weight, const std::vector<double>& values) const;
  /// Returns the transposed sums over `values` of both ends, in closed cells zero.
  std::vector<double> transposed_sum(ScatteringSums::Weight weight,
                                     std::vector<double> values) const;
  /// Returns C_ν D e^{(E_F−H)/kT} of a cell of H, the electrons for ḡ = 1, nm⁻².
  double electrons_at(std::size_t cell) const;
  /// Index of a matrix element of roughness.
  std::size_t rough_index(const BeamLink& link, int i, int k) const {
    return ((static_cast<std::size_t>(link.low) * subbands_ + link.high % subbands_) *
                geometry_.grid.nx +
            i) *
               geometry_.grid.n_h +
           k;
  }
  /// Calls action(link, i, k, low, high, transfer) with the number that goes up for ḡ = 1 and
  /// empty final states.
  template <typename Action>
  void for_each_link(const Action& action) const;
  template <typename Action>
  void for_each_transfer(const std::vector<double>& mean, const Action& action) const;

  const BeamGeometry& geometry_;
  int processes_ = 0, subbands_ = 0;
  std::vector<BeamLink> links_;
  ScatteringSums sums_;
  std::vector<double> overlap_;  ///< [pairs of levels][nx]
  std::vector<double> states_;   ///< D [n_states][nx][n_h]
  std::vector<double> loss_;
  BeamCellTables cells_;
  std::vector<double> source_;
  std::vector<double> inverse_full_;  ///< 1/Ω_k [n_h]
};

}  // namespace quasi::mosfet
