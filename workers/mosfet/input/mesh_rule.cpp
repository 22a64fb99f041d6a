#include "workers/mosfet/input/mesh_rule.hpp"

#include <cmath>
#include <cstdio>
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

/// A length of the device along an axis, with its key in the deck.
struct Length {
  const char* key;
  double* nm;
};

/// One axis of the mesh: its key, its number of nodes, and the lengths whose ends are nodes.
struct MeshAxis {
  const char* key;
  int nodes;
  const char* edges;
  std::vector<Length> lengths;

  std::vector<double> values_nm() const {
    std::vector<double> values;
    for (const Length& length : lengths) values.push_back(*length.nm);
    return values;
  }
  double cell_nm() const {
    double total = 0.0;
    for (const Length& length : lengths) total += *length.nm;
    return total / (nodes - 1);
  }
};

std::string in_cells(const MeshAxis& axis) {
  std::string text;
  for (const Length& length : axis.lengths)
    text += std::string(text.empty() ? "" : ", ") + "geometry." + length.key + " = " +
            shown(*length.nm) + " nm is " +
            shown(std::round(*length.nm / axis.cell_nm() * 1e3) / 1e3) + " cells";
  return text;
}

/// An axis whose edges fall between nodes, and a size that would do.
struct Misfit {
  std::string message;  ///< "" if the edges are nodes
  std::string remedy;   ///< "mesh.nx = 69", the nearest admissible size; "" if there is none
};

Misfit misfit_of(const MeshAxis& axis) {
  const std::vector<double> lengths = axis.values_nm();
  if (fits(lengths, axis.nodes)) return {};
  const int below = nearest(lengths, axis.nodes, -1), above = nearest(lengths, axis.nodes, +1);
  const std::string key = std::string("mesh.") + axis.key;
  Misfit misfit{.message = key + " = " + std::to_string(axis.nodes) + ": " + axis.edges +
                           " fall between nodes (" + in_cells(axis) + "); nearest admissible: ",
                .remedy = ""};
  if (below > 0) misfit.message += std::to_string(below);
  if (above > 0) misfit.message += (below > 0 ? " and " : "") + std::to_string(above);
  if (below == 0 && above == 0) {
    misfit.message += "none below 4097";
    return misfit;
  }
  const bool take_above = below == 0 || (above > 0 && above - axis.nodes <= axis.nodes - below);
  misfit.remedy = key + " = " + std::to_string(take_above ? above : below);
  return misfit;
}

/// Refuses a mesh whose edges fall between nodes, with all axes in one message.
void require_edges_on_nodes(const std::vector<MeshAxis>& axes, const std::string& where) {
  std::string messages, remedies;
  for (const MeshAxis& axis : axes) {
    const Misfit misfit = misfit_of(axis);
    if (misfit.message.empty()) continue;
    messages += (messages.empty() ? "" : "; ") + misfit.message;
    if (!misfit.remedy.empty()) remedies += (remedies.empty() ? "" : " and ") + misfit.remedy;
  }
  if (messages.empty()) return;
  throw InvalidInput(where + ": " + messages + "; set " + remedies +
                     (remedies.empty() ? "" : ", or ") + "mesh.snap = true to round the geometry");
}

void snap(const MeshAxis& axis, Deck* deck) {
  const double cell = axis.cell_nm();
  double at = 0.0, node_before = 0.0;
  for (const Length& length : axis.lengths) {
    at += *length.nm;
    const double node = std::round(at / cell);
    const double rounded = (node - node_before) * cell;
    const std::string key = std::string("geometry.") + length.key;
    if (rounded <= 0.0)
      throw InvalidInput("mesh.snap: " + key + " = " + shown(*length.nm) +
                         " nm is thinner than half a cell; raise mesh." + axis.key);
    if (std::fabs(rounded - *length.nm) > kCellTolerance * cell) {
      char percent[32];
      std::snprintf(percent, sizeof percent, "%.1f", 100.0 * std::fabs(rounded / *length.nm - 1.0));
      deck->notes.push_back("mesh.snap: " + key + " was rounded from " + shown(*length.nm) +
                            " to " + shown(rounded) + " nm (" + percent + " %) for mesh." +
                            axis.key + " = " + std::to_string(axis.nodes));
    }
    *length.nm = rounded;
    node_before = node;
  }
}

}  // namespace

void apply_mesh_rule(Deck* deck, const std::string& where) {
  auto& g = deck->geometry;
  const std::vector<MeshAxis> axes{
      {"nx",
       deck->mesh.nx,
       "the gate edges",
       {{"source_nm", &g.source_nm}, {"channel_nm", &g.channel_nm}, {"drain_nm", &g.drain_nm}}},
      {"nz",
       deck->mesh.nz,
       "the silicon/oxide interfaces",
       {{"oxide_top_nm", &g.oxide_top_nm},
        {"silicon_nm", &g.silicon_nm},
        {"oxide_bottom_nm", &g.oxide_bottom_nm}}}};
  if (!deck->mesh.snap) return require_edges_on_nodes(axes, where);
  for (const MeshAxis& axis : axes) snap(axis, deck);
}

}  // namespace quasi::mosfet
