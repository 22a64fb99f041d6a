#pragma once

#include "workers/backend/host_device.hpp"

namespace quasi::mosfet {

/// Raises the two faces of a node that is a local maximum to the vertex of the parabola through it
/// and its neighbours. The weights make the rule continuous when the maximum passes from one node
/// to the next. At least one face is then at the top. @param nodes  ε of the node and its two
/// neighbours
QUASI_HD inline void raise_to_top(const double* nodes, double* before, double* after) {
  const double a = 0.5 * (nodes[-1] - 2.0 * nodes[0] + nodes[1]);
  const double b = 0.5 * (nodes[1] - nodes[-1]);
  if (!(nodes[0] > nodes[-1] && nodes[0] >= nodes[1])) return;
  const double top = nodes[0] - b * b / (4.0 * a), place = -b / (2.0 * a);
  const auto raised = [top](double face, double weight) {
    weight = weight < 0.0 ? 0.0 : weight > 1.0 ? 1.0 : weight;
    const double value = face + weight * (top - face);
    return value > face ? value : face;
  };
  *before = raised(*before, 1.0 - 2.0 * place);
  *after = raised(*after, 1.0 + 2.0 * place);
}

/// Computes ε at the faces i − ½ of one subband, i = 0 … nx (docs/theory/mosfet.md 17.2). It is
/// cubic between the nodes and clipped to them, the mean next to the contacts, the node at the
/// contacts, and the top of every barrier. @param nodes  [nx], nx ≥ 5 @param faces  [nx+1] out
QUASI_HD inline void face_energies(const double* nodes, int nx, double* faces) {
  faces[0] = nodes[0];
  faces[nx] = nodes[nx - 1];
  faces[1] = 0.5 * (nodes[0] + nodes[1]);
  faces[nx - 1] = 0.5 * (nodes[nx - 2] + nodes[nx - 1]);
  for (int i = 2; i < nx - 1; ++i) {
    const double left = nodes[i - 1], right = nodes[i];
    const double low = left < right ? left : right, high = left < right ? right : left;
    const double cubic = (9.0 * (left + right) - nodes[i - 2] - nodes[i + 1]) / 16.0;
    faces[i] = cubic < low ? low : cubic > high ? high : cubic;
  }
  for (int i = 1; i < nx - 1; ++i) raise_to_top(nodes + i, faces + i, faces + i + 1);
}

}  // namespace quasi::mosfet
