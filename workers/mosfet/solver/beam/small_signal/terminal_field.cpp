#include "workers/mosfet/solver/beam/small_signal/terminal_field.hpp"

#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/transport/observables.hpp"

namespace quasi::mosfet {

std::vector<double> terminal_lift(const Structure& structure, const PotentialBoundary& boundary,
                                  Terminal terminal) {
  std::vector<double> lift(boundary.fixed.size(), 0.0);
  for (std::size_t at = 0; at < lift.size(); ++at) {
    if (boundary.fixed[at] == 0) continue;
    const int i = static_cast<int>(at) / structure.nz;
    const Terminal owner = i == 0                  ? Terminal::kSource
                           : i == structure.nx - 1 ? Terminal::kDrain
                                                   : Terminal::kGate;
    lift[at] = owner == terminal ? 1.0 : 0.0;
  }
  return lift;
}

std::vector<double> terminal_charge_slopes(const Structure& structure, Terminal terminal) {
  const auto nx = static_cast<std::size_t>(structure.nx),
             nz = static_cast<std::size_t>(structure.nz);
  const bool source = terminal == Terminal::kSource;
  std::vector<double> slopes(nx * nz, 0.0);
  for (std::size_t j = 0; j < nz; ++j) {
    const double across =
        structure.face_x(static_cast<int>(j)) / structure.dx_nm / kChargeOverEpsilon0_v_nm;
    slopes[(source ? 0 : nx - 1) * nz + j] = across;
    slopes[(source ? 1 : nx - 2) * nz + j] = -across;
  }
  return slopes;
}

std::array<double, kTerminals> terminal_charges(const TransportProblem& problem,
                                                const std::vector<double>& potential_v) {
  std::array<double, kTerminals> charge{0.0, 0.0, terminal_charge(problem, potential_v).gate};
  for (const Terminal terminal : {Terminal::kSource, Terminal::kDrain}) {
    const std::vector<double> slopes = terminal_charge_slopes(problem.structure, terminal);
    for (std::size_t at = 0; at < slopes.size(); ++at)
      charge[static_cast<std::size_t>(terminal)] += slopes[at] * potential_v[at];
  }
  return charge;
}

}  // namespace quasi::mosfet
