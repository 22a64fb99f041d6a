#include "workers/mosfet/input/mesh_rule.hpp"

#include <cmath>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/mosfet/input/table_reader.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kCellTolerance = 1e-6;

// Returns true if every partial sum of `lengths` falls on a node of a mesh with `nodes` nodes.
bool fits(const std::vector<double>& lengths, int nodes) {
  double total = 0.0;
  for (const double length : lengths) total += length;
  double at = 0.0;
  for (const double length : lengths) {
    at += length;
    const double cells = at / total * (nodes - 1);
    if (std::fabs(cells - std::round(cells)) > kCellTolerance) return false;
  }
  return true;
}

// Returns the nearest admissible size in one direction from `nodes`, or 0 if the allowed range has
// none.
int nearest(const std::vector<double>& lengths, int nodes, int direction) {
  for (int n = nodes + direction; n >= 9 && n <= 4097; n += direction)
    if (fits(lengths, n)) return n;
  return 0;
}

void hold(const char* key, int nodes, const char* what, const std::vector<double>& lengths,
          const std::string& where) {
  if (fits(lengths, nodes)) return;
  const int below = nearest(lengths, nodes, -1), above = nearest(lengths, nodes, +1);
  std::string message = where + ": mesh." + key + " = " + std::to_string(nodes) + ": " + what +
                        " fall between nodes; nearest admissible: ";
  if (below > 0) message += std::to_string(below);
  if (above > 0) message += (below > 0 ? " and " : "") + std::to_string(above);
  if (below == 0 && above == 0) message += "none below 4097";
  throw InvalidInput(message + "; or set mesh.snap = true to round the geometry");
}

void snap(std::vector<double*> lengths, int nodes, const char* axis, Deck* deck) {
  double total = 0.0;
  for (const double* length : lengths) total += *length;
  const double cell = total / (nodes - 1);
  double at = 0.0, node_before = 0.0;
  for (double* length : lengths) {
    at += *length;
    const double node = std::round(at / cell);
    const double rounded = (node - node_before) * cell;
    if (rounded <= 0.0)
      throw InvalidInput(std::string("mesh.snap: a layer along ") + axis +
                         " is thinner than half a cell; refine the mesh");
    if (std::fabs(rounded - *length) > kCellTolerance * cell)
      deck->notes.push_back(std::string("mesh.snap: a length along ") + axis +
                            " was rounded from " + shown(*length) + " to " + shown(rounded) +
                            " nm");
    *length = rounded;
    node_before = node;
  }
}

}  // namespace

void apply_mesh_rule(Deck* deck, const std::string& where) {
  auto& g = deck->geometry;
  if (deck->mesh.snap) {
    snap({&g.source_nm, &g.channel_nm, &g.drain_nm}, deck->mesh.nx, "x", deck);
    snap({&g.oxide_top_nm, &g.silicon_nm, &g.oxide_bottom_nm}, deck->mesh.nz, "z", deck);
    return;
  }
  hold("nx", deck->mesh.nx, "the gate edges", {g.source_nm, g.channel_nm, g.drain_nm}, where);
  hold("nz", deck->mesh.nz, "the silicon/oxide interfaces",
       {g.oxide_top_nm, g.silicon_nm, g.oxide_bottom_nm}, where);
}

}  // namespace quasi::mosfet
