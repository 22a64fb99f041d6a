#include "workers/mosfet/solver/beam/neutral_contacts.hpp"

#include "workers/mosfet/kernels/beam/beam_transport.hpp"
#include "workers/mosfet/physics/beam/face_energies.hpp"

namespace quasi::mosfet {

NeutralContacts::NeutralContacts(const DeviceModel& model, const Structure& structure,
                                 const Contacts& contacts, const BiasPoint& bias)
    : model_(model), fermi_ev_{0.0, -bias.vds_v} {
  const Structure column = column_structure(structure, 0);
  doping_nm2_ = {contacts.source.sheet_total_nm2(column, 0),
                 contacts.drain.sheet_total_nm2(column, 0)};
}

SheetDensity NeutralContacts::equilibrium(const BeamLevels& levels, int side,
                                          double shift_ev) const {
  const int column = side == 0 ? 0 : levels.nx - 1;
  SheetDensity sum{0.0, 0.0};
  for (int state = 0; state < levels.n_states(); ++state) {
    const SheetDensity one =
        sheet_density(model_, levels.valley_of(state),
                      fermi_ev_[side] + shift_ev - levels.edge_of(state)[column]);
    sum.density_nm2 += 2.0 * one.density_nm2;
    sum.slope_nm2_ev += 2.0 * one.slope_nm2_ev;
  }
  return sum;
}

double NeutralContacts::equilibrium_on_grid(const BeamGrid& grid, const BeamLevels& levels,
                                            int side, double shift_ev) const {
  const int column = side == 0 ? 0 : levels.nx - 1;
  const std::vector<double> g = make_beam_inflow(grid, fermi_ev_[side] + shift_ev).drain;
  const BeamFactors factors = make_beam_factors(levels);
  std::vector<double> faces(static_cast<std::size_t>(levels.nx) + 1);
  double sum = 0.0;
  for (int state = 0; state < levels.n_states(); ++state) {
    face_energies(levels.edge_of(state), levels.nx, faces.data());
    for (int k = 0; k < grid.n_h; ++k)
      sum += 2.0 * factors.density[static_cast<std::size_t>(state)] * grid.boltzmann(k) * g[k] *
             beam_states(grid, levels.edge_of(state)[column], &faces[column], k);
  }
  return sum;
}

std::array<double, 2> NeutralContacts::wanted_nm2(const BeamGrid& grid, const BeamLevels& levels,
                                                  const std::array<double, 2>& moved_ev) const {
  std::array<double, 2> wanted{};
  // The error of the grid belongs to the wanted density too, so that equilibrium needs no shift.
  for (const int side : {0, 1})
    wanted[side] = doping_nm2_[side] * equilibrium_on_grid(grid, levels, side, moved_ev[side]) /
                   equilibrium(levels, side, moved_ev[side]).density_nm2;
  return wanted;
}

std::array<double, 2> NeutralContacts::changes_ev(const BeamGrid& grid, const BeamLevels& levels,
                                                  const std::vector<double>& sheet_nm2) const {
  std::array<double, 2> changes{};
  const std::array<double, 2> wanted = wanted_nm2(grid, levels);
  for (const int side : {0, 1}) {
    const SheetDensity exact = equilibrium(levels, side, 0.0);
    double present = 0.0;
    for (int state = 0; state < levels.n_states(); ++state)
      present +=
          2.0 *
          sheet_nm2[static_cast<std::size_t>(state) * levels.nx + (side == 0 ? 0 : levels.nx - 1)];
    changes[side] = (wanted[side] - present) / exact.slope_nm2_ev;
  }
  return changes;
}

std::array<double, 2> NeutralContacts::inflow_scales(const BeamLevels& levels,
                                                     const std::array<double, 2>& shifts_ev) const {
  std::array<double, 2> scales{};
  for (const int side : {0, 1})
    scales[side] = equilibrium(levels, side, shifts_ev[side]).density_nm2 /
                   equilibrium(levels, side, 0.0).density_nm2;
  return scales;
}

}  // namespace quasi::mosfet
