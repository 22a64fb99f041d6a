#include "workers/gw/input/perturbation/phonon_modes_file.hpp"

#include <cmath>
#include <fstream>
#include <sstream>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/model/element_symbols.hpp"
#include "workers/io/dataset_descriptions.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/io/input_path.hpp"
#include "workers/io/table_reader.hpp"
#include "workers/units/constants.hpp"

namespace quasi::gw {
namespace {

using Cplx = std::complex<double>;

constexpr double kSmallestMass_amu = 0.5, kLargestMass_amu = 400.0;
constexpr double kLargestLength_bohr = 1e4;
constexpr double kAtGamma = 1e-9;
constexpr double kBohr_nm = units::kBohr_m * 1e9;

/// ħω in eV of an angular frequency of 1 rad/ps.
constexpr double kRadPerPs_ev = units::kHbar_ev_fs * 1e-3;

/// Units of frequencies in a modes file, and ħω in eV of each.
struct FrequencyUnit {
  const char* name;
  double ev;
};
constexpr FrequencyUnit kUnits[] = {
    {"meV", 1e-3},
    {"THz", 2.0 * units::kPi* kRadPerPs_ev},
    {"cm-1", 2.0 * units::kPi* kRadPerPs_ev* units::kLightSpeed_m_s * 1e-10},
    {"rad/ps", kRadPerPs_ev}};

int atomic_number_in(const std::string& symbol, const std::string& where) {
  const int number = atomic_number_of(symbol);
  if (number == 0)
    throw InvalidInput(where + " names the element \"" + symbol +
                       "\", which does not exist; use its symbol, such as Si");
  return number;
}

// --- result.h5 of a thermal job

/// Requires the unit of a dataset.
void require_unit(const H5Reader& file, const std::string& where, const char* path,
                  const char* unit) {
  const std::string found = file.text_attribute(path, "units");
  if (found != unit)
    throw InvalidInput(where + ": " + path + " is in " + found + ", but " + unit +
                       " is expected; give the result.h5 of a thermal job");
}

/// Requires the datasets that modes are read from.
void require_thermal_result(const H5Reader& file, const std::string& where) {
  if (!file.has("/provenance/kind") || file.text("/provenance/kind") != "thermal")
    throw InvalidInput(where +
                       " is no result of a thermal job: /provenance/kind is not \"thermal\"; give "
                       "the result.h5 of a thermal job, or a modes file in TOML");
  if (!file.has("/modes/eigenvector"))
    throw InvalidInput(where +
                       " holds no /modes/eigenvector; repeat the thermal job with a larger "
                       "eigenvector_limit_mib, or on a coarser mesh");
  require_unit(file, where, "/modes/omega", "rad/ps");
  require_unit(file, where, "/crystal/lattice", "nm");
  require_unit(file, where, "/crystal/mass", "amu");
}

/// Requires a shape of a dataset.
void require_shape(const H5Reader& file, const std::string& where, const char* path,
                   const std::vector<std::int64_t>& shape) {
  if (file.shape(path) == shape) return;
  std::string wanted;
  for (const std::int64_t n : shape) wanted += (wanted.empty() ? "" : " x ") + std::to_string(n);
  throw InvalidInput(where + ": " + path + " does not have the shape " + wanted +
                     " that /mesh/qpoint and /crystal/mass imply; the file is damaged");
}

/// Returns the row of q = 0 in the list of points.
std::int64_t point_at_gamma(const std::vector<double>& points, const std::string& where) {
  for (std::size_t i = 0; i + 2 < points.size(); i += 3)
    if (std::abs(points[i]) + std::abs(points[i + 1]) + std::abs(points[i + 2]) < kAtGamma)
      return static_cast<std::int64_t>(i / 3);
  throw InvalidInput(where +
                     ": /mesh/qpoint holds no q = 0, and only modes at q = 0 couple the states of "
                     "one k; use a mesh that holds Gamma");
}

void read_thermal_crystal(const H5Reader& file, const std::filesystem::path& path,
                          PhononModes& modes) {
  const std::vector<double> mass = file.doubles("/crystal/mass");
  const auto n_atoms = static_cast<std::int64_t>(mass.size());
  require_shape(file, modes.file, "/crystal/lattice", {3, 3});
  require_shape(file, modes.file, "/crystal/position", {n_atoms, 3});
  const std::vector<double> lattice = file.doubles("/crystal/lattice"),
                            position = file.doubles("/crystal/position");
  std::vector<std::string> labels = read_labels(path, "/crystal/atom");
  if (labels.size() != mass.size())
    throw InvalidInput(modes.file + ": /crystal/atom names " + std::to_string(labels.size()) +
                       " atoms, but /crystal/mass has " + std::to_string(mass.size()) +
                       "; the file is damaged");
  for (std::size_t i = 0; i < 9; ++i) modes.lattice_bohr[i / 3][i % 3] = lattice[i] / kBohr_nm;
  for (std::size_t a = 0; a < mass.size(); ++a) {
    labels[a].resize(labels[a].find_last_not_of("0123456789") + 1);  // Si1 → Si
    if (!(mass[a] >= kSmallestMass_amu && mass[a] <= kLargestMass_amu))
      throw InvalidInput(modes.file + ": /crystal/mass of atom " + std::to_string(a + 1) + " is " +
                         std::to_string(mass[a]) + " amu, outside 0.5 … 400 amu");
    modes.atoms.push_back({atomic_number_in(labels[a], modes.file + ": /crystal/atom"),
                           mass[a],
                           {position[3 * a], position[3 * a + 1], position[3 * a + 2]}});
  }
}

/// Reads the modes of a thermal job at one q or at all of them.
class ThermalResult {
 public:
  explicit ThermalResult(const std::filesystem::path& path)
      : file_(path), crystal_{.file = path.filename().string()} {
    require_thermal_result(file_, crystal_.file);
    read_thermal_crystal(file_, path, crystal_);
    points_ = file_.doubles("/mesh/qpoint");
    n_b_ = static_cast<std::int64_t>(3 * crystal_.atoms.size());
    require_shape(file_, crystal_.file, "/modes/omega", {n_q(), n_b_});
    require_shape(file_, crystal_.file, "/modes/eigenvector", {n_q(), n_b_, n_b_, 2});
  }
  std::int64_t n_q() const { return static_cast<std::int64_t>(points_.size() / 3); }
  std::int64_t gamma() const { return point_at_gamma(points_, crystal_.file); }

  PhononModes modes_at(std::int64_t q) const {
    PhononModes modes = crystal_;
    for (std::size_t i = 0; i < 3; ++i) modes.q[i] = points_[3 * static_cast<std::size_t>(q) + i];
    for (const double omega : file_.slab("/modes/omega", std::vector<std::int64_t>{q, 0},
                                         std::vector<std::int64_t>{1, n_b_}))
      modes.energy_ev.push_back(omega * kRadPerPs_ev);
    const std::vector<double> e =
        file_.slab("/modes/eigenvector", std::vector<std::int64_t>{q, 0, 0, 0},
                   std::vector<std::int64_t>{1, n_b_, n_b_, 2});
    for (std::size_t i = 0; i < e.size(); i += 2) modes.eigenvector.emplace_back(e[i], e[i + 1]);
    return modes;
  }

 private:
  const H5Reader file_;
  PhononModes crystal_;  ///< without modes
  std::vector<double> points_;
  std::int64_t n_b_ = 0;
};

// --- modes file

using Vectors = std::vector<std::vector<double>>;

/// Returns the vectors of a key that must have `count` of them.
Vectors required(const TableReader& reader, const char* key, const std::optional<Vectors>& found,
                 std::size_t count, const char* each) {
  if (!found) reader.fail(key, "is missing");
  if (found->size() != count)
    reader.fail(key, "holds " + std::to_string(found->size()) + " vectors, but " +
                         std::to_string(count) + " are expected, one for each " + each);
  return *found;
}

VibratingAtom read_atom(TableReader reader, const std::string& where) {
  VibratingAtom atom;
  for (const char* key : {"element", "mass_amu", "position"})
    if (!reader.has(key)) reader.fail(key, "is missing");
  atom.atomic_number =
      atomic_number_in(reader.text("element", ""), where + ": " + reader.name("element"));
  atom.mass_amu = reader.number("mass_amu", 0.0, kSmallestMass_amu, kLargestMass_amu);
  const auto position = reader.numbers("position", -100.0, 100.0);
  if (position->size() != 3)
    reader.fail("position", "must hold three numbers, in units of the lattice vectors");
  for (std::size_t i = 0; i < 3; ++i) atom.position[i] = (*position)[i];
  reader.finish();
  return atom;
}

void read_mode(TableReader reader, double unit_ev, PhononModes& modes) {
  if (!reader.has("frequency")) reader.fail("frequency", "is missing");
  modes.energy_ev.push_back(unit_ev * reader.number("frequency", 0.0, -1e6, 1e6));
  const std::size_t n = modes.atoms.size();
  const auto real = required(reader, "eigenvector", reader.vectors("eigenvector", 3), n, "atom");
  const auto imaginary = required(
      reader, "eigenvector_imaginary",
      reader.vectors("eigenvector_imaginary", 3).value_or(Vectors(n, std::vector<double>(3, 0.0))),
      n, "atom");
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t i = 0; i < 3; ++i) modes.eigenvector.emplace_back(real[a][i], imaginary[a][i]);
  reader.finish();
}

Vec3 read_wave_vector(TableReader& reader) {
  const auto found = reader.numbers("q", -100.0, 100.0);
  if (!found) return {};
  if (found->size() != 3)
    reader.fail("q", "must hold three numbers, in units of the reciprocal lattice vectors");
  return {(*found)[0], (*found)[1], (*found)[2]};
}

PhononModes read_modes_file(const std::string& text, const std::string& where) {
  const toml::table root = parse_toml(text, where, {});
  TableReader reader(&root, "", where);
  PhononModes modes{.file = where};
  std::vector<std::string> names;
  for (const FrequencyUnit& unit : kUnits) names.emplace_back(unit.name);
  if (!reader.has("frequency_unit"))
    reader.fail("frequency_unit", R"(is missing; set "meV", "THz", "cm-1" or "rad/ps")");
  const double unit_ev = kUnits[reader.choice("frequency_unit", 0, names)].ev;
  modes.q = read_wave_vector(reader);
  const auto lattice =
      required(reader, "lattice_bohr", reader.vectors("lattice_bohr", 3), 3, "axis");
  for (std::size_t i = 0; i < 9; ++i) {
    if (std::abs(lattice[i / 3][i % 3]) > kLargestLength_bohr)
      reader.fail("lattice_bohr", "holds a length above 1e4 Bohr");
    modes.lattice_bohr[i / 3][i % 3] = lattice[i / 3][i % 3];
  }
  const auto atoms = reader.tables("atom");
  if (atoms.empty()) reader.fail("atom", "is missing; write one [[atom]] for each atom");
  for (std::size_t a = 0; a < atoms.size(); ++a)
    modes.atoms.push_back(
        read_atom(TableReader(atoms[a], "atom " + std::to_string(a + 1), where), where));
  const auto listed = reader.tables("mode");
  for (std::size_t m = 0; m < listed.size(); ++m)
    read_mode(TableReader(listed[m], "mode " + std::to_string(m + 1), where), unit_ev, modes);
  reader.finish();
  return modes;
}

/// Returns true if the first bytes of a file are those of HDF5.
bool is_hdf5(const std::filesystem::path& path) {
  std::ifstream in(input_file(path), std::ios::binary);
  if (!in)
    throw InvalidInput("perturbation.modes: '" + path.string() +
                       "' does not exist or cannot be read");
  char signature[8] = {};
  in.read(signature, sizeof signature);
  return std::string_view(signature, sizeof signature) == "\x89HDF\r\n\x1a\n";
}

}  // namespace

PhononModes read_phonon_modes(const std::filesystem::path& path) {
  if (is_hdf5(path)) {
    const ThermalResult result(path);
    return result.modes_at(result.gamma());
  }
  PhononModes modes = read_modes_file(read_deck_text(path).text, path.filename().string());
  for (const double q : modes.q)
    if (std::abs(q) > kAtGamma)
      throw InvalidInput(modes.file +
                         ": q is not 0, but without perturbation.q only modes at q = 0 couple the "
                         "states of the job; add this q to perturbation.q, or give modes at q = 0");
  return modes;
}

std::vector<PhononModes> read_phonon_modes_at_q(const std::filesystem::path& path) {
  if (!is_hdf5(path)) return {read_modes_file(read_deck_text(path).text, path.filename().string())};
  const ThermalResult result(path);
  std::vector<PhononModes> list;
  for (std::int64_t q = 0; q < result.n_q(); ++q) list.push_back(result.modes_at(q));
  return list;
}

}  // namespace quasi::gw
