#include "workers/mosfet/input/stored_points.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/io/table_reader.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/input/make_structure.hpp"

namespace quasi::mosfet {
namespace {

/// Reads one point of a result.
class PointReader {
 public:
  PointReader(const H5Reader& file, const std::string& point, const std::string& what)
      : file_(file), group_("/points/" + point + "/"), what_(what) {}

  StoredPoint read() const {
    StoredPoint point;
    point.bias = {number("vgs_v"), number("vds_v")};
    point.x_nm = nodes("x");
    point.z_nm = nodes("z");
    const auto nx = static_cast<std::int64_t>(point.x_nm.size()),
               nz = static_cast<std::int64_t>(point.z_nm.size());
    point.potential_v = array("potential", {nx, nz});
    const std::vector<std::int64_t> shape = shape_of("subband_energy");
    if (shape.size() != 3) fail("'" + group_ + "subband_energy' is not by valley, subband and x");
    point.valleys = static_cast<std::size_t>(shape[0]);
    point.subbands = static_cast<std::size_t>(shape[1]);
    point.energy_ev = array("subband_energy", {shape[0], shape[1], nx});
    point.sheet_nm2 = array("sheet_density", {shape[0], shape[1], nx});
    if (file_.has(group_ + "numbers/inflow_scale_source"))  // runs with neutral inflow have it
      point.inflow_scale = {number("numbers/inflow_scale_source"),
                            number("numbers/inflow_scale_drain")};
    if (!(std::min(point.inflow_scale[0], point.inflow_scale[1]) > 0.0))
      fail("'" + group_ + "numbers/inflow_scale_source' and '_drain' are not positive");
    return point;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw InvalidInput(what_ + ": " + problem +
                       "; name result.h5 of a steady run of the same device whose output.fields "
                       "has potential, density and subbands");
  }
  std::vector<std::int64_t> shape_of(const std::string& name) const {
    if (!file_.has(group_ + name)) fail("there is no '" + group_ + name + "'");
    return file_.shape(group_ + name);
  }
  double number(const std::string& name) const {
    shape_of(name);
    return file_.number(group_ + name);
  }
  std::vector<double> array(const std::string& name, const std::vector<std::int64_t>& shape) const {
    if (shape_of(name) != shape) fail("'" + group_ + name + "' does not fit the nodes x and z");
    return file_.doubles(group_ + name);
  }
  std::vector<double> nodes(const std::string& name) const {
    if (shape_of(name).size() != 1) fail("'" + group_ + name + "' is no list");
    std::vector<double> values = file_.doubles(group_ + name);
    const bool rises =
        std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
    if (values.size() < 2 || !rises) fail("'" + group_ + name + "' does not rise");
    return values;
  }

  const H5Reader& file_;
  std::string group_, what_;
};

/// Checks that a stored point belongs to the device of a deck.
void check_device(const StoredPoint& point, const Structure& s, const std::string& what) {
  constexpr double kSame_nm = 1e-6;
  const auto length = [](const std::vector<double>& nodes) { return nodes.back() - nodes.front(); };
  const double x = length(point.x_nm), z = length(point.z_nm);
  if (std::fabs(x - length(s.x_nm)) > kSame_nm || std::fabs(z - length(s.z_nm)) > kSame_nm)
    throw InvalidInput(what + ": the stored device measures " + shown(x) + " by " + shown(z) +
                       " nm and the deck's " + shown(length(s.x_nm)) + " by " +
                       shown(length(s.z_nm)) + " nm; name a result of the same device");
  if (point.valleys != s.valleys.size())
    throw InvalidInput(what + ": the stored run has " + std::to_string(point.valleys) +
                       " valley pairs and the deck " + std::to_string(s.valleys.size()) +
                       "; name a result of the same device");
}

/// Reads all points of a result. @param what  the key and its value, for messages
std::vector<StoredPoint> points_of(const std::filesystem::path& file, const std::string& what) {
  if (!std::filesystem::is_regular_file(file))
    throw InvalidInput(what + ": there is no such file beside the deck; copy result.h5 of the " +
                       "former run there, or take it with 'quasi submit --take'");
  const H5Reader result(file);
  if (!result.has("/points"))
    throw InvalidInput(what + ": it has no bias points; name result.h5 of a mosfet run");
  std::vector<StoredPoint> points;
  for (const std::string& point : result.children("/points"))
    points.push_back(PointReader(result, point, what).read());
  return points;
}

}  // namespace

void read_stored_points(const std::filesystem::path& directory, const std::string& where,
                        Deck* deck) {
  const std::string& name = deck->run.start_from;
  if (name.empty()) return;
  const std::string what = where + ": run.start_from = \"" + name + "\"";
  deck->stored_points = points_of(directory / name, what);
  const Structure structure = make_structure(*deck);
  for (const StoredPoint& point : deck->stored_points) check_device(point, structure, what);
  const auto known = std::count_if(
      deck->points.begin(), deck->points.end(),
      [&](const BiasPoint& bias) { return find_stored(deck->stored_points, bias) != nullptr; });
  deck->notes.push_back(std::to_string(known) + " of " + std::to_string(deck->points.size()) +
                        " bias points start from " + name);
}

const StoredPoint* find_stored(const std::vector<StoredPoint>& points, const BiasPoint& bias) {
  constexpr double kSame_v = 1e-9;
  for (const StoredPoint& point : points)
    if (std::fabs(point.bias.vgs_v - bias.vgs_v) < kSame_v &&
        std::fabs(point.bias.vds_v - bias.vds_v) < kSame_v)
      return &point;
  return nullptr;
}

}  // namespace quasi::mosfet
