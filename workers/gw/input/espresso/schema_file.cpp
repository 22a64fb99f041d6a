#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "workers/backend/error.hpp"
#include "workers/gw/input/espresso/espresso_save.hpp"
#include "workers/gw/input/espresso/xml_file.hpp"
#include "workers/gw/input/header_checks.hpp"
#include "workers/gw/model/element_symbols.hpp"
#include "workers/gw/physics/g_sphere.hpp"

// Reads data-file-schema.xml, in which pw.x describes a calculation (docs/theory/gw.md 1.5). Its
// energies are in Hartree and its lengths in Bohr.
namespace quasi::gw {
namespace {

const char* const kRemedy = "rerun pw.x to its end and give its folder PREFIX.save";

Vec3 vector_of(const XmlFile& file, const pugi::xml_node& from, const char* path) {
  const auto v = file.numbers(file.element(from, path), 3);
  return {v[0], v[1], v[2]};
}

int whole(const XmlFile& file, double value, const char* what, int low, int high) {
  if (value != std::floor(value) || value < low || value > high)
    file.fail("has " + std::string(what) + " = " + std::to_string(value) +
              "; it must be a whole number in [" + std::to_string(low) + ", " +
              std::to_string(high) + "]");
  return static_cast<int>(value);
}

/// Refuses kinds of mean fields that a GW job cannot use. @throws InvalidInput with the remedy
void check_support(const XmlFile& file, const pugi::xml_node& output) {
  const auto refuse = [&](const std::string& what, const std::string& remedy) {
    throw InvalidInput("meanfield.save: data-file-schema.xml has " + what + "; " + remedy);
  };
  if (file.flag(output, "algorithmic_info/uspp") || file.flag(output, "algorithmic_info/paw"))
    refuse("ultrasoft or PAW pseudopotentials (uspp or paw = true)",
           "rerun pw.x with norm-conserving ones");
  const pugi::xml_node bands = file.element(output, "band_structure");
  if (file.flag(bands, "noncolin") || file.flag(bands, "spinorbit"))
    refuse("spinors (noncolin = true)",
           "rerun pw.x without noncolin, or convert the states with pw2bgw.x");
  if (file.flag(output, "basis_set/gamma_only"))
    refuse("states of `K_POINTS gamma` (gamma_only = true)",
           "rerun pw.x with `K_POINTS automatic` and 1 1 1 0 0 0");
  const pugi::xml_node dft = file.element(output, "dft");
  for (const char* extension : {"hybrid", "dftU"})
    if (dft.child(extension))
      refuse(std::string("the extension ") + extension + " of the functional",
             "its potential is not semilocal; convert with pw2bgw.x and give vxc");
  if (bands.child("wf_collected") && !file.flag(bands, "wf_collected"))
    refuse("states that were not collected (wf_collected = false)",
           "rerun pw.x with disk_io = \"low\" and wf_collect = .true.");
}

/// Returns the functional with a name of Quantum ESPRESSO such as "PBE" or "SLA+PW+PBX+PBC".
/// @throws InvalidInput for a functional whose V_xc is not calculated
XcFunctional functional_of(const std::string& name) {
  std::string key;
  for (const char c : name) {
    const bool parted = c == '+' || c == '-' || std::isspace(static_cast<unsigned char>(c)) != 0;
    key += parted ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  for (const std::string empty : {" NOGX", " NOGC", " NONE"})
    for (auto at = key.find(empty); at != std::string::npos; at = key.find(empty))
      key.erase(at, empty.size());
  while (!key.empty() && key.back() == ' ') key.pop_back();
  if (key == "PZ" || key == "LDA" || key == "SLA PZ") return XcFunctional::kPerdewZunger;
  if (key == "PW" || key == "SLA PW") return XcFunctional::kPerdewWang;
  if (key == "PBE" || key == "SLA PW PBX PBC" || key == "SLA PW PBE PBE") return XcFunctional::kPbe;
  if (key == "PBESOL" || key == "SLA PW PSX PSC") return XcFunctional::kPbesol;
  throw InvalidInput("meanfield.save: data-file-schema.xml names the functional '" + name +
                     "'; V_xc is calculated for PZ, PW, PBE and PBESOL alone. Convert with "
                     "pw2bgw.x and give vxc");
}

void read_cell(const XmlFile& file, const pugi::xml_node& output, Crystal& crystal) {
  const pugi::xml_node structure = file.element(output, "atomic_structure");
  crystal.alat_bohr = file.attribute(structure, "alat");
  if (!(crystal.alat_bohr > 0.0))
    file.fail("has alat = " + std::to_string(crystal.alat_bohr) + "; it must be positive");
  crystal.avec = {vector_of(file, structure, "cell/a1"), vector_of(file, structure, "cell/a2"),
                  vector_of(file, structure, "cell/a3")};
  for (Vec3& row : crystal.avec) row = (1.0 / crystal.alat_bohr) * row;
  const auto& a = crystal.avec;
  const double volume = dot(a[0], cross(a[1], a[2]));
  if (!(std::abs(volume) > 1e-10)) file.fail("has a cell without volume");
  for (std::size_t i = 0; i < 3; ++i)
    crystal.bvec[i] = (1.0 / volume) * cross(a[(i + 1) % 3], a[(i + 2) % 3]);
  crystal.blat_per_bohr = 2.0 * kPi / crystal.alat_bohr;
  crystal.volume_bohr3 = std::abs(volume) * std::pow(crystal.alat_bohr, 3);
  crystal.recvol_per_bohr3 = std::pow(2.0 * kPi, 3) / crystal.volume_bohr3;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      crystal.adot[i][j] = std::pow(crystal.alat_bohr, 2) * dot(a[i], a[j]);
      crystal.bdot[i][j] =
          std::pow(crystal.blat_per_bohr, 2) * dot(crystal.bvec[i], crystal.bvec[j]);
    }
}

/// Returns the atomic number of a species such as "Si", "Fe1" or "C_h". The result is 0 if the
/// label does not begin with the symbol of an element.
int atomic_number_of_label(std::string label) {
  for (std::size_t i = 0; i < label.size(); ++i) {
    const auto c = static_cast<unsigned char>(label[i]);
    label[i] = static_cast<char>(i == 0 ? std::toupper(c) : std::tolower(c));
  }
  const int two = atomic_number_of(label.substr(0, 2));
  return two > 0 ? two : atomic_number_of(label.substr(0, 1));
}

void read_atoms(const XmlFile& file, const pugi::xml_node& output, EspressoSave& save) {
  std::vector<std::string> labels;
  for (const auto& node : file.element(output, "atomic_species").children("species")) {
    labels.emplace_back(node.attribute("name").value());
    save.pseudo_file.push_back(file.text(node, "pseudo_file"));
  }
  Crystal& crystal = save.bands.header.crystal;
  const pugi::xml_node list = file.element(output, "atomic_structure/atomic_positions");
  for (const auto& node : list.children("atom")) {
    const std::string label = node.attribute("name").value();
    const auto found = std::find(labels.begin(), labels.end(), label);
    if (found == labels.end()) file.fail("has an atom of the unknown species '" + label + "'");
    save.species_of_atom.push_back(static_cast<int>(found - labels.begin()));
    const auto v = file.numbers(node, 3);
    const Vec3 position{v[0], v[1], v[2]};
    crystal.atoms.push_back({(1.0 / crystal.alat_bohr) * position, atomic_number_of_label(label)});
  }
  require_in_range(static_cast<std::int64_t>(crystal.atoms.size()), 1, kMaxAtoms, "number of atoms",
                   save.folder.string());
}

/// Reads the operations of the space group. The schema gives the rotation S in the layout of WFN
/// files and a fractional translation f that acts on positions. WFN files have τ = 2π (Sᵀ)⁻¹
/// f.
void read_symmetries(const XmlFile& file, const pugi::xml_node& output, Crystal& crystal) {
  for (const auto& node : file.element(output, "symmetries").children("symmetry")) {
    if (file.text(node, "info") != "crystal_symmetry") continue;
    const auto entries = file.numbers(file.element(node, "rotation"), 9);
    SymmetryOperation operation;
    IMat3 transpose{};
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t i = 0; i < 3; ++i) {
        const int entry = whole(file, entries[3 * j + i], "an entry of a rotation", -100, 100);
        operation.rotation[i][j] = transpose[j][i] = entry;
      }
    if (std::abs(determinant(transpose)) != 1) file.fail("has a rotation of determinant not ±1");
    if (node.child("fractional_translation"))
      operation.translation =
          2.0 * kPi * multiply(inverse(transpose), vector_of(file, node, "fractional_translation"));
    crystal.symmetries.push_back(operation);
  }
  require_in_range(static_cast<std::int64_t>(crystal.symmetries.size()), 1, kMaxSymmetries,
                   "number of crystal symmetries", "data-file-schema.xml");
}

void read_basis(const XmlFile& file, const pugi::xml_node& output, Wavefunctions& bands) {
  const pugi::xml_node basis = file.element(output, "basis_set");
  MeanFieldHeader& header = bands.header;
  bands.wavefunction_cutoff_ry = 2.0 * file.number(basis, "ecutwfc");
  header.density_cutoff_ry = 2.0 * file.number(basis, "ecutrho");
  const pugi::xml_node grid = file.element(basis, "fft_grid");
  const char* const names[] = {"nr1", "nr2", "nr3"};
  for (int axis = 0; axis < 3; ++axis)
    header.fft_grid[axis] = whole(file, file.attribute(grid, names[axis]), "fft_grid", 1, 100000);
  const double expected = file.number(basis, "ngm");
  const double extent = std::pow(header.density_cutoff_ry, 1.5) * header.crystal.volume_bohr3;
  require_in_range(std::llround(expected), 1, kMaxPlaneWaves, "ngm", "data-file-schema.xml");
  if (!(extent > 0.0) || extent > 100.0 * kMaxPlaneWaves)
    file.fail("has ecutrho = " + std::to_string(header.density_cutoff_ry / 2) +
              " Hartree, which does not belong to a cell of " +
              std::to_string(header.crystal.volume_bohr3) + " Bohr³");
  // A plane wave at the cut-off belongs to the sphere of pw.x. Rounding must not leave it out.
  header.g = make_g_sphere(header.crystal.bdot, {}, header.density_cutoff_ry * (1.0 + 1e-10)).g;
  if (static_cast<double>(header.g.size()) != expected)
    file.fail("has ngm = " + std::to_string(std::llround(expected)) +
              ", but the cell and ecutrho give " + std::to_string(header.g.size()) +
              " plane waves of the density");
}

/// Returns the number of k-points along each axis of the grid that the points form together with
/// their images under the group and under k → −k. The result is zero if they form no grid.
IVec3 grid_of_points(const std::vector<Vec3>& k, const std::vector<SymmetryOperation>& group) {
  constexpr double kSteps = 1e5;  // reduced coordinates that differ by less than 1e-5 are equal
  std::set<IVec3> points;
  std::array<std::set<int>, 3> along;
  for (const Vec3& point : k)
    for (const SymmetryOperation& operation : group)
      for (const double sign : {1.0, -1.0}) {
        const Vec3 image = sign * multiply(operation.rotation, point);
        IVec3 rounded{};
        for (std::size_t i = 0; i < 3; ++i) {
          const double inside = image[i] - std::floor(image[i]);
          rounded[i] = static_cast<int>(std::lround(inside * kSteps)) % static_cast<int>(kSteps);
          along[i].insert(rounded[i]);
        }
        points.insert(rounded);
      }
  const IVec3 grid{static_cast<int>(along[0].size()), static_cast<int>(along[1].size()),
                   static_cast<int>(along[2].size())};
  const auto product = static_cast<std::size_t>(grid[0]) * static_cast<std::size_t>(grid[1]) *
                       static_cast<std::size_t>(grid[2]);
  return product == points.size() ? grid : IVec3{};
}

/// Reads one value for each band at one k-point, such as its energy, and appends it to the list of
/// its spin. The file lists the bands of spin up before those of spin down.
/// @param name     element of the file, such as "eigenvalues"
/// @param factor   factor of the values, for a change of units
/// @param of_spin  lists that receive the values, [spin]
void append_bands(const XmlFile& file, const pugi::xml_node& at, const char* name, double factor,
                  std::vector<std::vector<double>>& of_spin) {
  const auto n_spins = static_cast<std::int64_t>(of_spin.size());
  const auto values = file.numbers(file.element(at, name), -1);
  const auto count = static_cast<std::int64_t>(values.size()) / n_spins;
  if (count * n_spins != static_cast<std::int64_t>(values.size()))
    file.fail("holds " + std::to_string(values.size()) + " values in " + name +
              ", which are not as many for both spins");
  for (std::int64_t i = 0; i < count * n_spins; ++i)
    of_spin[static_cast<std::size_t>(i / count)].push_back(factor *
                                                           values[static_cast<std::size_t>(i)]);
}

void read_points(const XmlFile& file, const pugi::xml_node& output, EspressoSave& save) {
  const pugi::xml_node list = file.element(output, "band_structure");
  Wavefunctions& bands = save.bands;
  bands.header.n_spins = file.flag(list, "lsda") ? 2 : 1;
  const auto n_spins = static_cast<std::size_t>(bands.header.n_spins);
  std::vector<std::vector<double>> energy(n_spins), occupation(n_spins);
  double total = 0.0;
  for (const auto& at : list.children("ks_energies")) {
    const pugi::xml_node point = file.element(at, "k_point");
    bands.weight.push_back(file.attribute(point, "weight"));
    total += bands.weight.back();
    const auto v = file.numbers(point, 3);
    bands.k.push_back(multiply(save.crystal().avec, Vec3{v[0], v[1], v[2]}));
    save.n_pw.push_back(whole(file, file.number(at, "npw"), "npw", 1, kMaxPlaneWaves));
    append_bands(file, at, "eigenvalues", 2.0, energy);
    append_bands(file, at, "occupations", 1.0, occupation);
  }
  const auto n_k = static_cast<std::int64_t>(bands.k.size());
  require_in_range(n_k, 1, kMaxKPoints, "number of k-points (ks_energies)", save.folder.string());
  if (std::llround(file.number(list, "nks")) != n_k)
    file.fail("announces nks = " + file.text(list, "nks") + " k-points and holds " +
              std::to_string(n_k));
  bands.n_bands = static_cast<int>(static_cast<std::int64_t>(energy[0].size()) / n_k);
  const auto expected = static_cast<std::size_t>(std::int64_t{bands.n_bands} * n_k);
  if (bands.n_bands < 1 || energy[0].size() != expected || occupation[0].size() != expected)
    file.fail("holds different numbers of energies or occupations at its k-points");
  for (double& weight : bands.weight) weight /= total;
  for (std::size_t spin = 0; spin < n_spins; ++spin) {
    bands.energy_ry.insert(bands.energy_ry.end(), energy[spin].begin(), energy[spin].end());
    bands.occupation.insert(bands.occupation.end(), occupation[spin].begin(),
                            occupation[spin].end());
  }
  for (auto band = bands.occupation.begin(); band != bands.occupation.end();
       band += bands.n_bands) {
    const auto occupied =
        std::count_if(band, band + bands.n_bands, [](double f) { return f > 0.5; });
    bands.first_occupied.push_back(occupied > 0 ? 1 : 0);
    bands.last_occupied.push_back(static_cast<int>(occupied));
  }
  bands.k_grid = grid_of_points(bands.k, save.crystal().symmetries);
}

}  // namespace

EspressoSave read_espresso_save(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "data-file-schema.xml";
  const XmlFile file(path, kRemedy, read_xml_text(path, kRemedy));
  const pugi::xml_node output = file.element(file.root(), "output");
  check_support(file, output);
  EspressoSave save;
  save.folder = folder;
  save.functional = functional_of(file.text(output, "dft/functional"));
  save.bands.header.title = "WFN-Complex";
  read_cell(file, output, save.bands.header.crystal);
  read_atoms(file, output, save);
  read_symmetries(file, output, save.bands.header.crystal);
  read_basis(file, output, save.bands);
  read_points(file, output, save);
  check_header(save.bands.header, path.string());
  return save;
}

}  // namespace quasi::gw
