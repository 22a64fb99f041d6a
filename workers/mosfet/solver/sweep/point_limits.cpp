#include "workers/mosfet/solver/sweep/point_limits.hpp"

#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kTopError = 1e-2, kUndershootWarning = -2e-3, kNegativeError = 1e-3;
constexpr double kOverfilledWarning = 1.001, kOverfilledError = 1.25;
constexpr double kLeastInflow = 0.2;

}  // namespace

void check_point(const BiasPoint& bias, const PointProgress& at, double time_fs,
                 double largest_w_ev) {
  const double source_charge = at.terminals[at.terminals.size() - kTerminalWidth + 1];
  if (!(std::isfinite(at.min_pdf) && std::isfinite(source_charge)))
    throw NotConverged(name_of(bias) + ": the solution became infinite or undefined at t = " +
                       shown(time_fs) + " fs; lower run.cfl");
  if (at.top_share >= kTopError)
    throw InvalidInput(name_of(bias) + ": the highest energy cell holds " + brief(at.top_share) +
                       " of the largest occupation (limit 1e-2); raise mesh.wmax_ev above " +
                       brief(largest_w_ev) + " and mesh.nw with it");
  check_inflow_scale(bias, at.inflow_scale, " at t = " + shown(time_fs) + " fs");
  if (at.filling.lowest < -kNegativeError || at.filling.highest > kOverfilledError)
    throw NotConverged(
        name_of(bias) + ": the mean occupation of a cell reached " +
        (at.filling.lowest < -kNegativeError ? shown(at.filling.lowest) + " (limit -1e-3)"
                                             : shown(at.filling.highest) + " (limit 1.25)") +
        "; " + shown(at.filling.outside) + " cells lie outside 0 … 1 at t = " + shown(time_fs) +
        " fs; refine mesh.nw and mesh.nx or lower run.cfl");
}

void check_inflow_scale(const BiasPoint& bias, const std::array<double, 2>& scale,
                        const std::string& when) {
  for (const int side : {0, 1})
    if (!(scale[side] > kLeastInflow && scale[side] < 1.0 / kLeastInflow))
      throw NotConverged(name_of(bias) + ": neutrality would need " + shown(scale[side]) +
                         " times the inflow of the " + (side == 0 ? "source" : "drain") + when +
                         " (limits 0.2 and 5); use contact.inflow = \"fixed\"");
}

std::vector<std::string> warnings_of(const BiasPoint& bias, const PointProgress& at) {
  std::vector<std::string> warnings;
  const std::string name = name_of(bias);
  if (at.min_pdf < kUndershootWarning)
    warnings.push_back(name + ": the pdf undershoots to " + brief(at.min_pdf) +
                       " of its maximum; refine the mesh");
  if (at.filling.highest > kOverfilledWarning)
    warnings.push_back(name + ": the discretisation fills a cell to " + shown(at.filling.highest) +
                       " of its states; refine mesh.nw and mesh.nx");
  return warnings;
}

}  // namespace quasi::mosfet
