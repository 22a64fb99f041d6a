#pragma once

#include <array>
#include <vector>

#include "workers/mosfet/kernels/beam/beam_geometry.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {

/// Fermi levels of the inflow with which the two contact columns of a bias point hold the charge of
/// their doping (docs/theory/mosfet.md 17.6). The arrays have the source first, then the drain.
class NeutralContacts {
 public:
  NeutralContacts(const DeviceModel& model, const Structure& structure, const Contacts& contacts,
                  const BiasPoint& bias);

  /// Returns Σ 2ϱ of the neutral contact columns at given levels, nm⁻², with the error of the grid.
  /// @param moved_ev  change of E_F of the contacts
  std::array<double, 2> wanted_nm2(const BeamGrid& grid, const BeamLevels& levels,
                                   const std::array<double, 2>& moved_ev = {}) const;
  /// Returns the changes of E_F that make columns in equilibrium neutral, eV. @param sheet_nm2  ϱ
  /// of a solution, one valley [n_states][nx]
  std::array<double, 2> changes_ev(const BeamGrid& grid, const BeamLevels& levels,
                                   const std::vector<double>& sheet_nm2) const;
  /// Returns the factors by which shifts of E_F multiply the electrons that enter.
  std::array<double, 2> inflow_scales(const BeamLevels& levels,
                                      const std::array<double, 2>& shifts_ev) const;

 private:
  /// Returns Σ 2ϱ of a contact column in equilibrium, nm⁻², and its derivative by E_F.
  SheetDensity equilibrium(const BeamLevels& levels, int side, double shift_ev) const;
  /// Returns Σ 2ϱ of that equilibrium on the grid of the beam scheme.
  double equilibrium_on_grid(const BeamGrid& grid, const BeamLevels& levels, int side,
                             double shift_ev) const;

  const DeviceModel& model_;
  std::array<double, 2> doping_nm2_{};  ///< Σ 2ϱ of the neutral contact columns
  std::array<double, 2> fermi_ev_{};    ///< E_F of the contacts
};

}  // namespace quasi::mosfet
