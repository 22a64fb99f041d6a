#include "workers/mosfet/solver/beam/stored_start.hpp"

#include <algorithm>
#include <cmath>

#include "workers/mosfet/solver/beam/quasi_fermi.hpp"

namespace quasi::mosfet {
namespace {

/// A position between two neighbouring nodes.
struct Between {
  std::size_t low;
  double share;  ///< of the upper node
};

Between locate(const std::vector<double>& nodes, double at) {
  const auto upper = std::upper_bound(nodes.begin() + 1, nodes.end() - 1, at);
  const auto low = static_cast<std::size_t>(upper - nodes.begin()) - 1;
  const double share = (at - nodes[low]) / (nodes[low + 1] - nodes[low]);
  return {low, std::clamp(share, 0.0, 1.0)};
}

/// Returns the quasi-Fermi levels of all stored subbands without the offsets of valleys,
/// [valleys][subbands][nx], as BeamStart has them.
std::vector<double> fermi_levels(const StoredPoint& point, const DeviceModel& model,
                                 const Structure& s) {
  const std::size_t nx = point.x_nm.size();
  std::vector<double> fermi_ev(point.energy_ev.size());
  for (std::size_t at = 0; at < fermi_ev.size(); ++at) {
    const ValleyPair& valley = s.valleys[at / nx / point.subbands];
    fermi_ev[at] = point.energy_ev[at] - valley.offset_ev +
                   quasi_fermi_gap_ev(model, valley, point.sheet_nm2[at]);
  }
  return fermi_ev;
}

std::vector<double> potential_on(const Structure& s, const StoredPoint& point) {
  const std::size_t nz = point.z_nm.size();
  std::vector<double> potential_v;
  for (const double x : s.x_nm)
    for (const double z : s.z_nm) {
      const Between i = locate(point.x_nm, x), j = locate(point.z_nm, z);
      const double* v = &point.potential_v[i.low * nz + j.low];
      potential_v.push_back(
          std::lerp(std::lerp(v[0], v[1], j.share), std::lerp(v[nz], v[nz + 1], j.share), i.share));
    }
  return potential_v;
}

}  // namespace

std::optional<BeamStart> stored_start(const std::vector<StoredPoint>& points, const BiasPoint& bias,
                                      const DeviceModel& model, const Structure& structure) {
  const StoredPoint* point = find_stored(points, bias);
  if (point == nullptr) return {};
  BeamStart start{.bias = bias,
                  .fermi_ev = {},
                  .potential_v = potential_on(structure, *point),
                  .shifts_ev = {}};
  // A shift of E_F scales an inflow of Maxwell's statistics by its exponential.
  for (std::size_t end = 0; end < start.shifts_ev.size(); ++end)
    start.shifts_ev[end] = model.kt_ev() * std::log(point->inflow_scale[end]);
  const std::vector<double> stored = fermi_levels(*point, model, structure);
  for (std::size_t v = 0; v < point->valleys; ++v)
    for (std::size_t p = 0; p < static_cast<std::size_t>(structure.subbands); ++p) {
      const std::size_t subband = v * point->subbands + std::min(p, point->subbands - 1);
      const double* level = &stored[subband * point->x_nm.size()];
      for (const double x : structure.x_nm) {
        const Between i = locate(point->x_nm, x);
        start.fermi_ev.push_back(std::lerp(level[i.low], level[i.low + 1], i.share));
      }
    }
  return start;
}

}  // namespace quasi::mosfet
