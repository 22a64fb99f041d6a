#include "workers/thermal/input/phonopy_deck.hpp"
#include "workers/thermal/input/crystal_input.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/phonopy_cells.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

constexpr double kSamePosition_angstrom =
    1e-3;  // of an atom of the supercell and of the primitive cell
constexpr double kSameDistance_angstrom =
    1e-5;  // images this close are equally near (thermal.md 1.6)
constexpr int kImageRange = 2;

const char* const kYamlNames[] = {"phono3py.yaml", "phono3py_disp.yaml", "phonopy.yaml",
                                  "phonopy_disp.yaml"};

/// A supercell described in the primitive cell's terms.
struct SupercellMap {
  std::vector<int> atom;     ///< [n_s] atom of the primitive cell
  std::vector<Index3> cell;  ///< [n_s] its cell
  IntMat3 lattice{};         ///< row i: supercell vector i in primitive lattice coordinates
  std::vector<int> centre;   ///< [n_p] supercell atom that stands for each primitive atom
  std::int64_t n_cells = 0;
};

Index3 rounded(const Vec3& v, double* residue) {
  Index3 result{};
  for (int i = 0; i < 3; ++i) {
    result[i] = static_cast<int>(std::lround(v[i]));
    *residue = std::max(*residue, std::fabs(v[i] - result[i]));
  }
  return result;
}

SupercellMap map_supercell(const PhonopyCell& primitive, const PhonopyCell& supercell,
                           const std::string& name) {
  const Mat3 to_primitive = inverse(transpose(primitive.lattice_angstrom));
  SupercellMap map;
  double residue = 0.0;
  for (int i = 0; i < 3; ++i)
    map.lattice[i] = rounded(to_primitive * supercell.lattice_angstrom[i], &residue);
  if (residue > 1e-3)
    throw InvalidInput(
        name + ": the supercell's lattice is not a multiple of the primitive cell's (off by " +
        std::to_string(residue) + " lattice vectors); do both come from one run?");
  const double ratio =
      std::fabs(determinant(supercell.lattice_angstrom) / determinant(primitive.lattice_angstrom));
  map.n_cells = std::llround(ratio);
  if (supercell.n_atoms() != primitive.n_atoms() * map.n_cells)
    throw InvalidInput(name + ": the supercell has " + std::to_string(supercell.n_atoms()) +
                       " atoms, " + std::to_string(map.n_cells) + " primitive cells of " +
                       std::to_string(primitive.n_atoms()) + " have " +
                       std::to_string(primitive.n_atoms() * map.n_cells));
  for (int s = 0; s < supercell.n_atoms(); ++s) {
    bool found = false;
    for (int p = 0; p < primitive.n_atoms() && !found; ++p) {
      if (supercell.symbol[s] != primitive.symbol[p]) continue;
      const Vec3 apart =
          to_primitive * (supercell.cartesian_angstrom(s) - primitive.cartesian_angstrom(p));
      double off = 0.0;
      const Index3 cell = rounded(apart, &off);
      const Vec3 rest{apart[0] - cell[0], apart[1] - cell[1], apart[2] - cell[2]};
      if (length(transpose(primitive.lattice_angstrom) * rest) > kSamePosition_angstrom) continue;
      map.atom.push_back(p);
      map.cell.push_back(cell);
      found = true;
    }
    if (!found)
      throw InvalidInput(name + ": atom " + std::to_string(s + 1) + " (" + supercell.symbol[s] +
                         ") of the supercell lies on no atom of the primitive cell");
  }
  for (int p = 0; p < primitive.n_atoms(); ++p)
    map.centre.push_back(
        static_cast<int>(std::find(map.atom.begin(), map.atom.end(), p) - map.atom.begin()));
  return map;
}

/// Rows of a force-constant dataset: which row belongs to each primitive atom, and which supercell
/// atom that row's displacements were counted from.
struct Rows {
  std::vector<std::int64_t> row;  ///< [n_p]
  std::vector<int> centre;        ///< [n_p]
};

Rows find_rows(const H5Reader& file, const std::string& name, const std::string& dataset, int rank,
               const SupercellMap& map) {
  const auto shape = file.shape(dataset);
  const auto n_s = static_cast<std::int64_t>(map.atom.size());
  const auto n_p = static_cast<std::int64_t>(map.centre.size());
  std::ostringstream found;
  for (const auto extent : shape) found << (found.tellp() > 0 ? "×" : "") << extent;
  bool good = static_cast<int>(shape.size()) == 2 * rank && (shape[0] == n_p || shape[0] == n_s);
  for (int i = 1; good && i < rank; ++i) good = shape[i] == n_s;
  for (int i = rank; good && i < 2 * rank; ++i) good = shape[i] == 3;
  if (!good)
    throw InvalidInput(name + ": dataset '" + dataset + "' is " + found.str() +
                       ", but the supercell has " + std::to_string(n_s) +
                       " atoms and the primitive cell " + std::to_string(n_p) +
                       "; do yaml and force constants belong together?");
  Rows rows{.row = {}, .centre = map.centre};
  if (file.has("/p2s_map")) {
    const auto p2s = file.integers("/p2s_map");
    for (std::int64_t p = 0; p < n_p; ++p) {
      const bool known = static_cast<std::int64_t>(p2s.size()) == n_p && p2s[p] >= 0 &&
                         p2s[p] < n_s && map.atom[p2s[p]] == static_cast<int>(p);
      if (!known)
        throw InvalidInput(
            name +
            ": 'p2s_map' does not name, for every atom of the primitive cell, one like it in "
            "the supercell; do yaml and force constants belong together?");
      rows.centre[p] = static_cast<int>(p2s[p]);
    }
  }
  for (std::int64_t p = 0; p < n_p; ++p) rows.row.push_back(shape[0] == n_p ? p : rows.centre[p]);
  return rows;
}

/// Cells in which an atom of the supercell is nearest to a centre: its periodic images at the
/// smallest distance.
class NearestImages {
 public:
  NearestImages(const PhonopyCell& primitive, const SupercellMap& map)
      : primitive_(primitive), map_(map) {
    for (int i = -kImageRange; i <= kImageRange; ++i)
      for (int j = -kImageRange; j <= kImageRange; ++j)
        for (int k = -kImageRange; k <= kImageRange; ++k) {
          Index3 shift{};
          for (int d = 0; d < 3; ++d)
            shift[d] = i * map.lattice[0][d] + j * map.lattice[1][d] + k * map.lattice[2][d];
          shifts_.push_back(shift);
        }
  }

  /// Cells of supercell atom `s`, counted from the cell of the centre (a supercell atom).
  std::vector<Index3> cells(int centre, int s) const {
    std::vector<Index3> best;
    double shortest = std::numeric_limits<double>::infinity();
    for (const Index3& shift : shifts_) {
      Index3 cell{};
      Vec3 apart = primitive_.position[map_.atom[s]] - primitive_.position[map_.atom[centre]];
      for (int d = 0; d < 3; ++d) {
        cell[d] = map_.cell[s][d] - map_.cell[centre][d] + shift[d];
        apart[d] += cell[d];
      }
      const double distance = length(transpose(primitive_.lattice_angstrom) * apart);
      if (distance < shortest - kSameDistance_angstrom) best.clear();
      if (distance < shortest + kSameDistance_angstrom) {
        best.push_back(cell);
        shortest = std::min(shortest, distance);
      }
    }
    return best;
  }

 private:
  const PhonopyCell& primitive_;
  const SupercellMap& map_;
  std::vector<Index3> shifts_;
};

void require_finite(const std::vector<double>& values, const std::string& name,
                    const std::string& dataset) {
  for (const double value : values)
    if (!std::isfinite(value))
      throw InvalidInput(name + ": dataset '" + dataset + "' holds a number that is not finite");
}

SecondOrder read_fc2(const fs::path& file, const PhonopyCell& primitive,
                     const PhonopyCell& supercell, const std::string& yaml, double unit) {
  const std::string name = file.filename().string();
  const H5Reader reader(file);
  const std::string dataset = reader.has("/force_constants") ? "/force_constants" : "/fc2";
  const SupercellMap map = map_supercell(primitive, supercell, yaml);
  const Rows rows = find_rows(reader, name, dataset, 2, map);
  const auto values = reader.doubles(dataset);
  require_finite(values, name, dataset);
  const NearestImages images(primitive, map);
  const auto n_s = static_cast<std::int64_t>(map.atom.size());

  SecondOrder result{
      .n_atoms = primitive.n_atoms(), .value = {}, .images = {}, .image_cells = map.n_cells};
  double largest = 0.0;
  double worst_sum = 0.0;
  for (int p = 0; p < primitive.n_atoms(); ++p) {
    double sum[9] = {};
    for (std::int64_t s = 0; s < n_s; ++s) {
      const double* block = &values[static_cast<std::size_t>((rows.row[p] * n_s + s) * 9)];
      for (int e = 0; e < 9; ++e) {
        sum[e] += block[e];
        largest = std::max(largest, std::fabs(block[e]));
      }
      const auto cells = images.cells(rows.centre[p], static_cast<int>(s));
      for (const Index3& cell : cells) {
        SecondOrder::Image image{.atom = map.atom[s],
                                 .other = p,
                                 .cell = cell,
                                 .weight = 1.0 / static_cast<double>(cells.size()),
                                 .value = {}};
        // Φ(p,0; s,R) transposed is Φ(s,R; p,0), the pairing of SecondOrder.
        for (int a = 0; a < 3; ++a)
          for (int b = 0; b < 3; ++b) image.value[a * 3 + b] = unit * block[b * 3 + a];
        result.images.push_back(image);
      }
    }
    for (const double element : sum) worst_sum = std::max(worst_sum, std::fabs(element));
  }
  result.raw_acoustic_sum = largest > 0.0 ? worst_sum / largest : 0.0;
  return result;
}

SparseForceConstants read_fc3(const fs::path& file, const PhonopyCell& primitive,
                              const PhonopyCell& supercell, const std::string& yaml) {
  const std::string name = file.filename().string();
  const H5Reader reader(file);
  const SupercellMap map = map_supercell(primitive, supercell, yaml);
  const Rows rows = find_rows(reader, name, "/fc3", 3, map);
  const NearestImages images(primitive, map);
  const auto n_s = static_cast<std::int64_t>(map.atom.size());

  using Key = std::array<int, 9>;  // atoms, then cells of the second and third
  std::map<Key, std::array<double, 27>> blocks;
  std::int64_t read = 0;
  for (int p = 0; p < primitive.n_atoms(); ++p) {
    const std::int64_t start[] = {rows.row[p], 0, 0, 0, 0, 0};
    const std::int64_t count[] = {1, n_s, n_s, 3, 3, 3};
    const auto values = reader.slab("/fc3", start, count);
    require_finite(values, name, "/fc3");
    std::vector<std::vector<Index3>> cells;
    for (std::int64_t s = 0; s < n_s; ++s)
      cells.push_back(images.cells(rows.centre[p], static_cast<int>(s)));
    for (std::int64_t j = 0; j < n_s; ++j)
      for (std::int64_t k = 0; k < n_s; ++k) {
        const double* tensor = &values[static_cast<std::size_t>((j * n_s + k) * 27)];
        if (std::all_of(tensor, tensor + 27, [](double x) { return x == 0.0; })) continue;
        ++read;
        const double share = 1.0 / static_cast<double>(cells[j].size() * cells[k].size());
        for (const Index3& rj : cells[j])
          for (const Index3& rk : cells[k]) {
            auto& block =
                blocks[{p, map.atom[j], map.atom[k], rj[0], rj[1], rj[2], rk[0], rk[1], rk[2]}];
            for (int e = 0; e < 27; ++e) block[e] += share * tensor[e];
          }
      }
  }
  SparseForceConstants result{
      .order = 3, .atom = {}, .cell = {}, .tensor = {}, .blocks_read = read};
  for (const auto& [key, block] : blocks) {
    result.atom.insert(result.atom.end(), key.begin(), key.begin() + 3);
    result.cell.insert(result.cell.end(), key.begin() + 3, key.end());
    result.tensor.insert(result.tensor.end(), block.begin(), block.end());
  }
  return result;
}

/// The deck's crystal in the words of CONTROL, so that one parser checks every key.
std::string control_text(const PhonopyCells& cells) {
  const PhonopyCell& cell = cells.primitive;
  std::vector<std::string> elements;
  std::ostringstream out;
  out.precision(17);
  std::ostringstream types;
  for (const std::string& symbol : cell.symbol) {
    auto found = std::find(elements.begin(), elements.end(), symbol);
    if (found == elements.end()) found = elements.insert(elements.end(), symbol);
    types << ' ' << (found - elements.begin()) + 1;
  }
  out << "&allocations\n nelements=" << elements.size() << "\n natoms=" << cell.n_atoms()
      << "\n&end\n&crystal\n lfactor=0.1\n";
  for (int i = 0; i < 3; ++i) {
    out << " lattvec(:," << i + 1 << ")=";
    for (const double x : cell.lattice_angstrom[i]) out << ' ' << x;
    out << '\n';
  }
  out << " elements=";
  for (const std::string& element : elements) out << " \"" << element << '"';
  out << "\n types=" << types.str() << "\n scell=1 1 1\n";
  for (int atom = 0; atom < cell.n_atoms(); ++atom) {
    out << " positions(:," << atom + 1 << ")=";
    for (const double x : cell.position[atom]) out << ' ' << x;
    out << '\n';
  }
  if (!cells.born.empty()) {
    for (int i = 0; i < 3; ++i) {
      out << " epsilon(:," << i + 1 << ")=";
      for (int j = 0; j < 3; ++j) out << ' ' << cells.epsilon[j][i];
      out << '\n';
    }
    for (int atom = 0; atom < cell.n_atoms(); ++atom)
      for (int i = 0; i < 3; ++i) {
        out << " born(:," << i + 1 << ',' << atom + 1 << ")=";
        for (int j = 0; j < 3; ++j) out << ' ' << cells.born[atom][j][i];
        out << '\n';
      }
  }
  out << "&end\n&parameters\n&end\n&flags\n&end\n";
  return out.str();
}

fs::path first_present(const fs::path& directory, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (fs::exists(directory / name)) return directory / name;
  return {};
}

fs::path yaml_of(const fs::path& directory) {
  for (const char* name : kYamlNames)
    if (fs::exists(directory / name)) return directory / name;
  return {};
}

}  // namespace

bool is_phonopy_deck(const fs::path& directory) {
  if (fs::exists(directory / "CONTROL")) return false;
  return !yaml_of(directory).empty() ||
         (fs::exists(directory / "POSCAR") &&
          !first_present(directory, {"fc2.hdf5", "force_constants.hdf5"}).empty());
}

PhonopyDeck read_phonopy_deck(const fs::path& directory,
                              const std::vector<NamelistAssignment>& overrides) {
  std::vector<NamelistAssignment> wanted;
  Index3 repeats{0, 0, 0};
  bool has_mesh = false;
  for (const NamelistAssignment& a : overrides) {
    has_mesh = has_mesh || a.key == "ngrid";
    if (a.key != "scell") {
      wanted.push_back(a);
      continue;
    }
    if (a.values.size() != 3)
      throw InvalidInput(a.where + ": 'scell' must be three positive integers");
    for (std::size_t i = 0; i < 3; ++i) {
      const long long n = namelist_integer(a.values[i], a);
      if (n < 1 || n > 256)
        throw InvalidInput(a.where + ": 'scell' must lie between 1 and 256, got " +
                           std::to_string(n));
      repeats[i] = static_cast<int>(n);
    }
  }
  if (!has_mesh)
    throw InvalidInput(
        "'ngrid' is required: a phonopy deck does not say the wave-vector mesh; add e.g. "
        "--set ngrid=12,12,12");

  const fs::path yaml = yaml_of(directory);
  const std::string source = yaml.empty() ? "POSCAR" : yaml.filename().string();
  PhonopyCells cells;
  std::vector<fs::path> files;
  if (!yaml.empty()) {
    cells = read_phonopy_yaml(yaml);
    files.push_back(yaml);
  } else {
    if (repeats[0] == 0)
      throw InvalidInput(
          "POSCAR alone does not say the supercell of the force constants: add --set "
          "scell=n1,n2,n3, "
          "or phonopy_disp.yaml beside it");
    cells.primitive = read_poscar(directory / "POSCAR");
    cells.supercell = repeat_cell(cells.primitive, repeats);
    files.push_back(directory / "POSCAR");
  }
  PhonopyDeck deck;
  if (fs::exists(directory / "BORN")) {
    read_born(directory / "BORN", 1e-4, cells);
    files.push_back(directory / "BORN");
  }
  deck.control = parse_control(control_text(cells), source, wanted);
  deck.crystal = make_crystal(deck.control);
  if (deck.control.auto_isotopes && !cells.primitive.mass_amu.empty())
    deck.crystal.mass_amu = cells.primitive.mass_amu;

  const fs::path fc2 = first_present(directory, {"fc2.hdf5", "force_constants.hdf5"});
  if (fc2.empty())
    throw InvalidInput("'" + directory.string() +
                       "' has neither fc2.hdf5 nor force_constants.hdf5; run phono3py or "
                       "phonopy with its option to write force constants in HDF5");
  deck.second = read_fc2(fc2, cells.primitive, cells.phonon_supercell.value_or(cells.supercell),
                         source, deck.control.constants().ev_per_a2_amu_to_omega2);
  files.push_back(fc2);
  if (fs::exists(directory / "fc3.hdf5")) {
    deck.third = read_fc3(directory / "fc3.hdf5", cells.primitive, cells.supercell, source);
    files.push_back(directory / "fc3.hdf5");
  } else if (!deck.control.only_harmonic) {
    throw InvalidInput("'" + directory.string() +
                       "' has no fc3.hdf5; add it, or set onlyharmonic = .true.");
  }
  deck.files = files;
  return deck;
}

}  // namespace quasi::thermal
