#include "workers/mosfet/solver/sweep/mesh_study.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/backend/study/convergence_limit.hpp"
#include "workers/mosfet/input/mesh_rule.hpp"

namespace quasi::mosfet {
namespace {

/// One axis of the mesh.
struct Axis {
  const char* name;
  /// Multiplies the number of cells by a power of two. Returns false if that is not possible.
  std::function<bool(Mesh* mesh, double factor)> refine;
};

// Scales a number of cells. Returns false if the result is not whole or outside the limits.
bool scale(int* cells, double factor, int least, int most) {
  const double scaled = *cells * factor;
  *cells = static_cast<int>(scaled);
  return scaled == *cells && *cells >= least && *cells <= most;
}

bool scale_nodes(int* nodes, double factor, int most) {
  int cells = *nodes - 1;
  const bool is_whole = scale(&cells, factor, 8, most - 1);
  *nodes = cells + 1;
  return is_whole;
}

// Returns the axes of a scheme, with the limits of their keys in the deck.
std::vector<Axis> axes_of(StreamingScheme scheme) {
  const Axis nx{"nx", [](Mesh*m, double factor) { return scale_nodes(&m->nx, factor, 2049); }},
      nz{"nz", [](Mesh*m, double factor) { return scale_nodes(&m->nz, factor, 513); }};
  if (scheme == StreamingScheme::kBeam)
    return {{"dh",
             [](Mesh* m, double factor) {
               m->dh_ev /= factor;
               return m->dh_ev >= 1e-4 && m->dh_ev <= 0.1;
             }},
            {"nkappa", [](Mesh* m, double factor) { return scale(&m->n_kappa, factor, 2, 512); }},
            nx,
            nz};
  return {
      {"nw", [](Mesh* m, double factor) { return scale(&m->nw, factor, 8, 4096); }},
      {"nphi",
       [](Mesh* m, double factor) { return scale(&m->nphi, factor, 8, 256) && m->nphi % 4 == 0; }},
      nx,
      nz};
}

// Returns the lowest frequency and the lowest one above zero, without noise. The figures of
// kSmallSignalFigures follow from them.
SmallSignalSettings lowest_frequencies(const SmallSignalSettings& all) {
  SmallSignalSettings lowest;
  for (const double frequency_hz : all.frequencies_hz) {
    lowest.frequencies_hz.push_back(frequency_hz);
    if (frequency_hz > 0.0) break;
  }
  return lowest;
}

// Returns the deck with a multiple of the cells of one axis, or why the mesh does not allow it.
std::optional<Deck> refined(const Deck& deck, const Axis& axis, double factor, std::string* why) {
  Deck other = deck;
  other.run.mesh_study = false;
  other.small_signal = lowest_frequencies(deck.small_signal);
  other.mesh.snap = false;
  if (!axis.refine(&other.mesh, factor)) {
    *why = "its number of cells would leave the limits of the deck";
    return {};
  }
  try {
    apply_mesh_rule(&other, std::string("mesh study of ") + axis.name);
  } catch (const InvalidInput& refused) {
    *why = refused.what();
    return {};
  }
  return other;
}

/// Number of a point whose mesh error is estimated, and the name of that error.
struct JudgedNumber {
  const char *name, *error_name;
};
constexpr JudgedNumber kCurrent{"current_a_per_m", "mesh_error_a_per_m"};
constexpr JudgedNumber kSmallSignalFigures[] = {
    {"transconductance_s_per_m", "transconductance_mesh_error_s_per_m"},
    {"output_conductance_s_per_m", "output_conductance_mesh_error_s_per_m"},
    {"gate_capacitance_f_per_m", "gate_capacitance_mesh_error_f_per_m"},
    {"cutoff_extrapolated_hz", "cutoff_extrapolated_mesh_error_hz"}};

/// Holds the points of a sweep with other numbers of cells along one axis.
struct AxisSweeps {
  bool halved = true;                  ///< `near` has half of the cells, otherwise twice as many
  std::vector<PointResult> near, far;  ///< far: a quarter of the cells; may be empty
};

// Returns the mesh error of a number of a point along an axis. It is absent if the number is absent
// on a mesh.
std::optional<AxisError> number_error(const AxisSweeps& sweeps, const char* name, std::size_t k,
                                      const PointResult& point) {
  constexpr double kErrorOfTheCoarse = 4.0 / 3.0;  // over its change, if it is of second order
  const auto number = [&](const PointResult& of) -> std::optional<double> {
    const auto found = of.numbers.find(name);
    return found == of.numbers.end() ? std::nullopt : std::optional(found->second);
  };
  const std::optional<double> own = number(point), near = number(sweeps.near[k]);
  if (!own || !near) return {};
  if (!sweeps.halved) return AxisError{kErrorOfTheCoarse * std::fabs(*near - *own), {}};
  return axis_error(*own, *near, sweeps.far.empty() ? std::nullopt : number(sweeps.far[k]));
}

// Adds the errors of an axis to the numbers of a point.
void add_axis_errors(const AxisSweeps& sweeps, const std::string& axis, std::size_t k,
                     PointResult* point) {
  auto& numbers = point->numbers;
  const AxisError found = *number_error(sweeps, kCurrent.name, k, *point);
  numbers["mesh_" + axis + "_current_a_per_m"] = sweeps.near[k].numbers.at(kCurrent.name);
  numbers["mesh_" + axis + "_error_a_per_m"] = found.error;
  if (found.order) numbers["mesh_" + axis + "_order"] = *found.order;
  numbers[kCurrent.error_name] += found.error;
  for (const JudgedNumber& figure : kSmallSignalFigures)
    if (const auto error = number_error(sweeps, figure.name, k, *point))
      numbers[figure.error_name] += error->error;
}

}  // namespace

AxisError axis_error(double current, double half, std::optional<double> quarter) {
  if (!quarter) return {second_order_error(current, half), {}};
  const double last = current - half, before = half - *quarter;
  if (!(last * before > 0.0)) return {std::max(std::fabs(last), std::fabs(before)), {}};
  const double order = std::log2(before / last);
  return {std::fabs(last) / std::expm1(std::log(2.0) * std::clamp(order, 0.5, 2.0)), order};
}

void add_mesh_study(const Deck& deck, const PointsOfDeck& points_of, StudyRunner& runner,
                    Progress& progress, std::vector<PointResult>* points) {
  bool is_complete = true;
  for (const Axis& axis : axes_of(deck.run.scheme)) {
    const std::string name = axis.name;
    std::string why;
    const auto half = refined(deck, axis, 0.5, &why);
    const auto other = half ? half : refined(deck, axis, 2.0, &why);
    if (!half) progress.log("mesh study: " + name + " is doubled, because half is refused: " + why);
    if (!other) {
      progress.log("mesh study: without " + name + " there is no mesh_error_a_per_m: " + why);
      is_complete = false;
      continue;
    }
    const auto quarter = half ? refined(deck, axis, 0.25, &why) : std::nullopt;
    AxisSweeps sweeps{.halved = half.has_value(), .near = {}, .far = {}};
    sweeps.near = points_of(*other, runner.begin((half ? "half of " : "twice ") + name));
    if (quarter) sweeps.far = points_of(*quarter, runner.begin("a quarter of " + name));
    for (std::size_t k = 0; k < points->size(); ++k)
      add_axis_errors(sweeps, name, k, &(*points)[k]);
  }
  if (is_complete) return;
  for (PointResult& point : *points) {
    point.numbers.erase(kCurrent.error_name);
    for (const JudgedNumber& figure : kSmallSignalFigures) point.numbers.erase(figure.error_name);
  }
}

}  // namespace quasi::mosfet
