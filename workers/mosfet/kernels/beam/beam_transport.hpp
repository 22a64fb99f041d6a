#pragma once

#include <vector>

#include "workers/mosfet/kernels/beam/beam_operator.hpp"

namespace quasi::mosfet {

/// Returns the inflow of contacts with these Fermi levels, in units of g.
BeamInflow make_beam_inflow(const BeamGrid& grid, double source_fermi_ev, double drain_fermi_ev);
/// Returns the inflow with the Fermi level of the grid's shape at the source.
BeamInflow make_beam_inflow(const BeamGrid& grid, double drain_fermi_ev);

/// Norm in which a residual of ḡ is measured.
enum class BeamNorm {
  kOccupation,  ///< ‖ḡ‖₂, in which the few electrons of high cells weigh as much as all others
  /// √Σ n (δḡ/ĝ)² with the electrons n = C_ν D e^{(E_F−H)/kT} ĝ of every cell of H. ĝ is the
  /// unscattered inflow, but at least the smaller inflow of a contact.
  kElectrons,
};

/// Returns the weights √n / ĝ of BeamNorm::kElectrons [n_states][nx][n_h], nm⁻¹.
/// @param density_factor  C_ν [n_states] @param states  D [n_states][nx][n_h]
/// @param unscattered  ḡ of the inflow without gain [n_states][nx][n_h]
std::vector<double> beam_electron_weights(const BeamGrid& grid, const BeamInflow& inflow,
                                          const std::vector<double>& density_factor,
                                          const std::vector<double>& states,
                                          const std::vector<double>& unscattered);

/// Mean occupations of a solution of the transport problem at fixed levels.
struct BeamMean {
  std::vector<double> mean;  ///< ḡ = Σ_{b,j} V g / D [n_states][nx][n_h]
  int sweeps = 0;            ///< number of solutions of all lines
  double residual = 0;       ///< relative residual of the equations of ḡ
  bool converged = false;
};

/// Solution of the transport problem at fixed levels.
struct BeamSolution : BeamMean {
  std::vector<double> g;  ///< in the layout of BeamOperator
};

/// Accuracy of a solution.
struct BeamGoal {
  double tolerance = 1e-12;  ///< of the residual over that of ḡ = 0
  int max_sweeps = 400;
  BeamNorm norm = BeamNorm::kElectrons;
};

/// Solves for the steady state at fixed levels (docs/theory/mosfet.md 17.5). Scattering is
/// isotropic, so that g follows from ḡ by one solution of all lines. GMRES solves
///
///   ḡ = M S (G ḡ + q),
///
/// with the gain G, inflow and sources q, the solution S of all lines and the mean M.
/// @param start  first ḡ; empty: that of the inflow without gain
BeamSolution solve_beam(const BeamOperator& problem, const BeamScattering& scattering,
                        const BeamGoal& goal, const std::vector<double>& start = {});

/// Figures that follow from the fluxes of a solution. They count both valleys of every pair.
struct BeamFluxes {
  std::vector<double> current;       ///< electrons through the faces i − ½ [nx+1], 1/(nm fs)
  std::vector<double> energy_flux;   ///< of total energy, eV/(nm fs) [nx+1]
  std::vector<double> phonon_power;  ///< per process [processes][nx], eV/(nm² fs)
  std::vector<double> sheet_nm2;     ///< ϱ, one valley [n_states][nx]
  /// Electrons of one valley of each state through the faces [n_states][nx+1], 1/(nm fs).
  std::vector<double> state_current;
  /// Spread along x of energy flux plus phonon power, eV/(nm fs).
  double energy_defect = 0;
};
/// Adds the contributions of all states and cells of H to the fluxes. @param currents  as
/// BeamOperator::face_currents() returns them @param power  as BeamScattering::phonon_power()
/// returns it
BeamFluxes sum_beam_fluxes(const BeamGrid& grid, const std::vector<double>& currents,
                           const std::vector<double>& power);
/// Computes the fluxes of a solution.
BeamFluxes beam_fluxes(const BeamGeometry& geometry, const BeamScattering& scattering,
                       const BeamOperator& problem, const std::vector<double>& g);

/// Returns ϱ = C Σ_{b,k,j} V f of one valley [n_states][nx], nm⁻².
std::vector<double> beam_sheet_density(const BeamGeometry& geometry, const std::vector<double>& g);

}  // namespace quasi::mosfet
