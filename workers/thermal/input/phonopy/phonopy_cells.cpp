#include "workers/thermal/input/phonopy/phonopy_cells.hpp"

#include <spglib.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/force_constants/text_scanner.hpp"
#include "workers/thermal/input/phonopy/packed_text.hpp"

namespace quasi::thermal {
namespace {

std::string name_of(const std::filesystem::path& file) { return file.filename().string(); }

Vec3 vector_of(const YAML::Node& node, const std::string& what) {
  if (!node.IsSequence() || node.size() != 3)
    throw InvalidInput(what + " must be a list of 3 numbers");
  Vec3 v{};
  for (std::size_t i = 0; i < 3; ++i) {
    v[i] = node[i].as<double>();
    if (!std::isfinite(v[i])) throw InvalidInput(what + " holds a number that is not finite");
  }
  return v;
}

Mat3 matrix_of(const YAML::Node& node, const std::string& what) {
  if (!node.IsSequence() || node.size() != 3)
    throw InvalidInput(what + " must be 3 rows of 3 numbers");
  return {vector_of(node[0], what), vector_of(node[1], what), vector_of(node[2], what)};
}

PhonopyCell cell_of(const YAML::Node& root, const std::string& key, const std::string& file,
                    double length_angstrom) {
  const std::string where = file + ": '" + key + "'";
  const YAML::Node node = root[key];
  if (!node)
    throw InvalidInput(where + " is missing; was the file written by phonopy or phono3py?");
  PhonopyCell cell;
  cell.lattice_angstrom = matrix_of(node["lattice"], where + ".lattice");
  for (Vec3& row : cell.lattice_angstrom) row = length_angstrom * row;
  const YAML::Node points = node["points"] ? node["points"] : node["atoms"];
  if (!points || !points.IsSequence() || points.size() == 0)
    throw InvalidInput(where + ".points must list the atoms");
  for (const YAML::Node& point : points) {
    const std::string at = where + ".points[" + std::to_string(cell.position.size()) + "]";
    if (!point["symbol"] || !point["coordinates"])
      throw InvalidInput(at + " needs 'symbol' and 'coordinates'");
    cell.symbol.push_back(point["symbol"].as<std::string>());
    cell.position.push_back(vector_of(point["coordinates"], at + ".coordinates"));
    if (!point["mass"]) continue;
    const double mass = point["mass"].as<double>();
    if (!(mass > 0.0) || !std::isfinite(mass)) throw InvalidInput(at + ".mass must be positive");
    cell.mass_amu.push_back(mass);
  }
  if (!cell.mass_amu.empty() && cell.mass_amu.size() != cell.position.size())
    throw InvalidInput(where + ".points: give 'mass' to every atom or to none");
  return cell;
}

}  // namespace

PhonopyCells read_phonopy_yaml(const std::filesystem::path& file) {
  const std::string name = name_of(file);
  try {
    const YAML::Node root = YAML::Load(read_packed_text(file));
    if (!root.IsMap()) throw InvalidInput(name + " is not a yaml map");
    const PhonopyUnits units = units_of_yaml(root, name);
    const double length = units.length_angstrom;
    PhonopyCells cells{.primitive = cell_of(root, "primitive_cell", name, length),
                       .supercell = cell_of(root, "supercell", name, length),
                       .phonon_supercell = std::nullopt,
                       .born = {},
                       .units = units};
    if (root["phonon_supercell"])
      cells.phonon_supercell = cell_of(root, "phonon_supercell", name, length);
    const YAML::Node born = root["born_effective_charge"];
    if (born) {
      if (!born.IsSequence() || born.size() != cells.primitive.position.size())
        throw InvalidInput(
            name + ": 'born_effective_charge' must hold one matrix for each of the " +
            std::to_string(cells.primitive.n_atoms()) + " atoms of the primitive cell");
      for (const YAML::Node& matrix : born)
        cells.born.push_back(matrix_of(matrix, name + ": 'born_effective_charge'"));
      cells.epsilon = matrix_of(root["dielectric_constant"], name + ": 'dielectric_constant'");
    }
    return cells;
  } catch (const YAML::Exception& failure) {
    const std::string line =
        failure.mark.is_null() ? "" : " line " + std::to_string(failure.mark.line + 1);
    throw InvalidInput(name + line + ": " + failure.msg);
  }
}

PhonopyCell read_poscar(const std::filesystem::path& file) {
  TextScanner in(file);
  in.skip_line();  // comment
  PhonopyCell cell;
  const double scale = in.real("the scale factor");
  for (Vec3& row : cell.lattice_angstrom)
    for (double& x : row) x = in.real("the lattice");
  const double volume = std::fabs(determinant(cell.lattice_angstrom));
  if (scale == 0.0 || volume < 1e-12) in.fail("the scale and the cell's volume must not vanish");
  const double factor = scale > 0.0 ? scale : std::cbrt(-scale / volume);
  for (Vec3& row : cell.lattice_angstrom) row = factor * row;
  in.skip_line();
  const auto symbols = in.line_words("the element names");
  if (std::isdigit(static_cast<unsigned char>(symbols.front().front())))
    in.fail("this line must name the elements (VASP 5), it holds '" + std::string(symbols.front()) +
            "'");
  std::vector<std::string> names;
  for (const auto& symbol : symbols) names.emplace_back(symbol);
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i < names.size(); ++i)
    counts.push_back(in.integer("the number of atoms of an element", 1, 100000));
  in.skip_line();
  std::string mode(in.line_words("'Direct' or 'Cartesian'").front());
  if (mode.front() == 'S' || mode.front() == 's')
    mode = in.line_words("'Direct' or 'Cartesian'").front();
  const bool cartesian = std::string_view("cCkK").find(mode.front()) != std::string_view::npos;
  const Mat3 to_fractional = inverse(transpose(cell.lattice_angstrom));
  for (std::size_t i = 0; i < names.size(); ++i)
    for (std::int64_t atom = 0; atom < counts[i]; ++atom) {
      Vec3 position{};
      for (double& x : position) x = in.real("a position");
      in.skip_line();  // selective dynamics, if any
      cell.symbol.push_back(names[i]);
      cell.position.push_back(cartesian ? to_fractional * (factor * position) : position);
    }
  return cell;
}

PhonopyCell repeat_cell(const PhonopyCell& cell, const Index3& repeats) {
  PhonopyCell supercell;
  for (int i = 0; i < 3; ++i)
    supercell.lattice_angstrom[i] = static_cast<double>(repeats[i]) * cell.lattice_angstrom[i];
  for (int atom = 0; atom < cell.n_atoms(); ++atom)
    for (int k = 0; k < repeats[2]; ++k)
      for (int j = 0; j < repeats[1]; ++j)
        for (int i = 0; i < repeats[0]; ++i) {
          supercell.symbol.push_back(cell.symbol[atom]);
          supercell.position.push_back({(cell.position[atom][0] + i) / repeats[0],
                                        (cell.position[atom][1] + j) / repeats[1],
                                        (cell.position[atom][2] + k) / repeats[2]});
        }
  return supercell;
}

void read_born(const std::filesystem::path& file, double symmetry_tolerance_angstrom,
               PhonopyCells& cells) {
  const PhonopyCell& cell = cells.primitive;
  const int n_atoms = cell.n_atoms();
  double lattice[3][3];  // spglib: columns are the lattice vectors
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) lattice[i][j] = cell.lattice_angstrom[j][i];
  std::vector<double> positions(static_cast<std::size_t>(3 * n_atoms));
  std::vector<int> types;
  std::vector<std::string> elements;
  for (int atom = 0; atom < n_atoms; ++atom) {
    for (int i = 0; i < 3; ++i) positions[3 * atom + i] = cell.position[atom][i];
    auto found = std::find(elements.begin(), elements.end(), cell.symbol[atom]);
    if (found == elements.end()) found = elements.insert(elements.end(), cell.symbol[atom]);
    types.push_back(static_cast<int>(found - elements.begin()) + 1);
  }
  const std::unique_ptr<SpglibDataset, void (*)(SpglibDataset*)> dataset(
      spg_get_dataset(lattice, reinterpret_cast<double(*)[3]>(positions.data()), types.data(),
                      n_atoms, symmetry_tolerance_angstrom),
      spg_free_dataset);
  if (dataset == nullptr)
    throw InvalidInput(name_of(file) +
                       ": the symmetry of the primitive cell could not be found; raise 'symprec'");

  TextScanner in(file);
  in.skip_line();  // conversion factor or comment
  for (Vec3& row : cells.epsilon)
    for (double& x : row) x = in.real("the dielectric tensor");
  cells.born.assign(static_cast<std::size_t>(n_atoms), Mat3{});
  int n_distinct = 0;
  for (int atom = 0; atom < n_atoms; ++atom)
    n_distinct += dataset->equivalent_atoms[atom] == atom ? 1 : 0;
  const std::string what =
      "the Born charges of the " + std::to_string(n_distinct) + " symmetry-distinct atoms";
  for (int atom = 0; atom < n_atoms; ++atom) {
    if (dataset->equivalent_atoms[atom] != atom) continue;
    for (Vec3& row : cells.born[atom])
      for (double& x : row) x = in.real(what.c_str());
  }
  const Mat3 columns = transpose(cell.lattice_angstrom);
  const Mat3 to_fractional = inverse(columns);
  for (int atom = 0; atom < n_atoms; ++atom) {
    const int source = dataset->equivalent_atoms[atom];
    if (source == atom) continue;
    for (int op = 0; op < dataset->n_operations; ++op) {
      Mat3 rotation{};
      Vec3 image{};
      for (int i = 0; i < 3; ++i) {
        image[i] = dataset->translations[op][i] - cell.position[atom][i];
        for (int j = 0; j < 3; ++j) {
          rotation[i][j] = dataset->rotations[op][i][j];
          image[i] += rotation[i][j] * cell.position[source][j];
        }
        image[i] -= std::round(image[i]);
      }
      if (length(columns * image) > symmetry_tolerance_angstrom) continue;
      const Mat3 cartesian = columns * rotation * to_fractional;
      cells.born[atom] = cartesian * cells.born[source] * transpose(cartesian);
      break;
    }
  }
}

}  // namespace quasi::thermal
