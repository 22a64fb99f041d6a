#include "workers/mosfet/solver/beam/beam_start.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/ranks/packed_values.hpp"

namespace quasi::mosfet {

std::optional<BeamStart> predicted_start(const std::vector<BeamStart>& before,
                                         const BiasPoint& bias) {
  if (before.empty() || !(before.back().bias.vds_v * bias.vds_v > 0.0)) return {};
  const BeamStart& last = before.back();
  BeamStart start = last;
  start.bias = bias;
  const double step_v = bias.vds_v - last.bias.vds_v;
  const BeamStart* first = before.size() > 1 ? &before[before.size() - 2] : nullptr;
  const double share = first != nullptr ? step_v / (last.bias.vds_v - first->bias.vds_v) : INFINITY;
  // An extrapolation over much more than the distance of the two points means little.
  constexpr double kLargestShare = 2.0;
  if (!(share > 0.0 && share <= kLargestShare)) {
    for (double& level : start.fermi_ev) level *= bias.vds_v / last.bias.vds_v;
    return start;
  }
  const double most_ev = std::fabs(step_v);
  for (std::size_t at = 0; at < start.fermi_ev.size(); ++at)
    start.fermi_ev[at] +=
        std::clamp(share * (last.fermi_ev[at] - first->fermi_ev[at]), -most_ev, most_ev);
  for (std::size_t at = 0; at < start.potential_v.size(); ++at)
    start.potential_v[at] += share * (last.potential_v[at] - first->potential_v[at]);
  for (std::size_t end = 0; end < start.shifts_ev.size(); ++end)
    start.shifts_ev[end] += share * (last.shifts_ev[end] - first->shifts_ev[end]);
  return start;
}

std::vector<double> pack(const std::vector<BeamStart>& before) {
  PackedValues out;
  out.add(static_cast<double>(before.size()));
  for (const BeamStart& point : before) {
    for (const double value :
         {point.bias.vgs_v, point.bias.vds_v, point.shifts_ev[0], point.shifts_ev[1]})
      out.add(value);
    out.add(point.fermi_ev);
    out.add(point.potential_v);
  }
  return out.take();
}

std::vector<BeamStart> unpack_starts(const Piece& piece) {
  std::vector<BeamStart> before;
  if (piece.data == nullptr) return before;
  UnpackedValues in(piece.data, piece.count);
  for (std::size_t left = in.size(); left > 0; --left) {
    BeamStart point;
    for (double* value :
         {&point.bias.vgs_v, &point.bias.vds_v, &point.shifts_ev[0], &point.shifts_ev[1]})
      *value = in.number();
    point.fermi_ev = in.list();
    point.potential_v = in.list();
    before.push_back(std::move(point));
  }
  return before;
}

}  // namespace quasi::mosfet
