#include "workers/mosfet/solver/beam/quasi_fermi.hpp"

#include <algorithm>
#include <cmath>

#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"

namespace quasi::mosfet {

double quasi_fermi_gap_ev(const DeviceModel& model, const ValleyPair& valley, double sheet_nm2) {
  const double kt = model.kt_ev(), wanted = std::log(std::max(sheet_nm2, 1e-250));
  double gap = 0.0;
  for (int step = 0; step < 60; ++step) {
    const SheetDensity now = sheet_density(model, valley, gap);
    const double change = (wanted - std::log(now.density_nm2)) * now.density_nm2 / now.slope_nm2_ev;
    gap += std::clamp(change, -40.0 * kt, 40.0 * kt);
    if (std::fabs(change) < 1e-14) break;
  }
  return gap;
}

}  // namespace quasi::mosfet
