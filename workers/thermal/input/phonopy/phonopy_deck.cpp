#include "workers/thermal/input/phonopy/phonopy_deck.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck/crystal_input.hpp"
#include "workers/thermal/input/phonopy/phonopy_force_constants.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

const char* const kYamlNames[] = {"phono3py.yaml", "phono3py_disp.yaml", "phono3py_params.yaml",
                                  "phonopy.yaml",  "phonopy_disp.yaml",  "phonopy_params.yaml"};

fs::path first_present(const fs::path& directory, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (fs::exists(directory / name)) return directory / name;
  return {};
}

/// Returns the first yaml file of a directory, which may be packed; "" if there is none.
fs::path yaml_of(const fs::path& directory) {
  for (const char* name : kYamlNames)
    for (const char* packed : {"", ".xz", ".gz"})
      if (fs::exists(directory / (std::string(name) + packed)))
        return directory / (std::string(name) + packed);
  return {};
}

/// The settings that apply to a phonopy deck.
struct PhonopySettings {
  std::vector<NamelistAssignment> control;  ///< keys of CONTROL but `scell`
  Index3 repeats{0, 0, 0};                  ///< `scell`; zeros: not given
};

PhonopySettings split_settings(const std::vector<NamelistAssignment>& overrides) {
  PhonopySettings settings;
  for (const NamelistAssignment& a : overrides) {
    if (a.key != "scell") {
      settings.control.push_back(a);
      continue;
    }
    if (a.values.size() != 3)
      throw InvalidInput(a.where + ": 'scell' must be three positive integers");
    for (std::size_t i = 0; i < 3; ++i) {
      const long long n = namelist_integer(a.values[i], a);
      if (n < 1 || n > 256)
        throw InvalidInput(a.where + ": 'scell' must lie between 1 and 256, got " +
                           std::to_string(n));
      settings.repeats[i] = static_cast<int>(n);
    }
  }
  require_mesh(overrides);
  return settings;
}

/// Reads the cells of a deck and adds the files that they come from, the source of the primitive
/// cell first.
PhonopyCells read_cells(const fs::path& directory, const Index3& repeats,
                        std::vector<fs::path>& files) {
  PhonopyCells cells;
  const fs::path yaml = yaml_of(directory);
  if (!yaml.empty()) {
    cells = read_phonopy_yaml(yaml);
    files.push_back(yaml);
  } else {
    if (repeats[0] == 0)
      throw InvalidInput(
          "POSCAR alone does not say the supercell of the force constants: add --set "
          "scell=n1,n2,n3, or phonopy_disp.yaml beside it");
    cells.primitive = read_poscar(directory / "POSCAR");
    cells.supercell = repeat_cell(cells.primitive, repeats);
    files.push_back(directory / "POSCAR");
  }
  if (fs::exists(directory / "BORN")) {
    read_born(directory / "BORN", 1e-4, cells);
    files.push_back(directory / "BORN");
  }
  return cells;
}

TripletCentres centres_of(const PhonopyDeck& deck) {
  return deck.control.mean_over_centres ? TripletCentres::kMean : TripletCentres::kFirst;
}

/// Adds the third order to a deck that needs it.
void read_third(const fs::path& directory, const PhonopySupercell& cells, PhonopyDeck& deck) {
  const fs::path dense = directory / "fc3.hdf5", sparse = directory / "FORCE_CONSTANTS_3RD";
  if (fs::exists(dense)) {
    deck.third = read_fc3(dense, cells, centres_of(deck));
  } else if (fs::exists(sparse)) {
    deck.third = read_sparse_force_constants(sparse, 3, deck.crystal);
  } else {
    throw InvalidInput("'" + directory.string() +
                       "' has neither fc3.hdf5 nor FORCE_CONSTANTS_3RD; yaml files hold "
                       "displacements and forces, not constants: let phono3py write fc2.hdf5 and "
                       "fc3.hdf5, or set onlyharmonic = .true.");
  }
  deck.files.push_back(fs::exists(dense) ? dense : sparse);
  deck.third_name = deck.files.back().filename().string();
}

/// Adds the fourth order to a deck that needs it. Without `four_phonon` the caller names what a
/// missing file forbids.
void read_fourth(const fs::path& directory, const PhonopySupercell& cells, PhonopyDeck& deck) {
  const fs::path dense = directory / "fc4.hdf5", sparse = directory / "FORCE_CONSTANTS_4TH";
  if (fs::exists(dense)) {
    deck.fourth = read_fc4(dense, cells, centres_of(deck));
  } else if (fs::exists(sparse)) {
    deck.fourth = read_sparse_force_constants(sparse, 4, deck.crystal);
  } else if (deck.control.four_phonon) {
    throw InvalidInput("'" + directory.string() +
                       "' has neither fc4.hdf5 nor FORCE_CONSTANTS_4TH for the atoms of the "
                       "primitive cell; add one, or set four_phonon = .false.");
  } else {
    return;
  }
  deck.files.push_back(fs::exists(dense) ? dense : sparse);
  deck.fourth_name = deck.files.back().filename().string();
}

/// Adds the third and fourth order to a deck that needs them.
void read_anharmonic(const fs::path& directory, const PhonopyCells& cells, PhonopyDeck& deck) {
  const PhonopySupercell of_constants{cells.primitive, cells.supercell,
                                      deck.files.front().filename().string(), cells.units};
  read_third(directory, of_constants, deck);
  if (deck.control.four_phonon || deck.control.renormalise)
    read_fourth(directory, of_constants, deck);
}

void read_force_constants(const fs::path& directory, const PhonopyCells& cells, PhonopyDeck& deck) {
  const std::string source = deck.files.front().filename().string();
  const fs::path fc2 =
      first_present(directory, {"fc2.hdf5", "force_constants.hdf5", "FORCE_CONSTANTS"});
  if (fc2.empty())
    throw InvalidInput("'" + directory.string() +
                       "' has neither fc2.hdf5 nor force_constants.hdf5 nor FORCE_CONSTANTS; run "
                       "phono3py or phonopy so that it writes force constants");
  const PhonopyCell& phonon_supercell =
      cells.phonon_supercell ? *cells.phonon_supercell : cells.supercell;
  deck.second = read_fc2(fc2, {cells.primitive, phonon_supercell, source, cells.units},
                         deck.control.constants().ev_per_a2_amu_to_omega2);
  deck.files.push_back(fc2);
  if (!deck.control.only_harmonic) read_anharmonic(directory, cells, deck);
}

}  // namespace

std::string control_text(const PhonopyCells& cells, const Index3& repeats) {
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
  out << "\n types=" << types.str() << "\n scell=" << repeats[0] << ' ' << repeats[1] << ' '
      << repeats[2] << '\n';
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

void require_mesh(const std::vector<NamelistAssignment>& overrides) {
  for (const NamelistAssignment& a : overrides)
    if (a.key == "ngrid") return;
  throw InvalidInput(
      "'ngrid' is required: a deck without CONTROL does not say the wave-vector mesh; add e.g. "
      "--set ngrid=12,12,12");
}

bool is_phonopy_deck(const fs::path& directory) {
  if (fs::exists(directory / "CONTROL")) return false;
  return !yaml_of(directory).empty() ||
         (fs::exists(directory / "POSCAR") &&
          !first_present(directory, {"fc2.hdf5", "force_constants.hdf5", "FORCE_CONSTANTS"})
               .empty());
}

PhonopyDeck read_phonopy_deck(const fs::path& directory,
                              const std::vector<NamelistAssignment>& overrides) {
  const PhonopySettings settings = split_settings(overrides);
  PhonopyDeck deck;
  const PhonopyCells cells = read_cells(directory, settings.repeats, deck.files);
  deck.control =
      parse_control(control_text(cells), deck.files.front().filename().string(), settings.control);
  // Masses of the yaml file serve elements that have no natural composition, too.
  for (std::size_t atom = 0; atom < cells.primitive.mass_amu.size(); ++atom) {
    double& mass = deck.control.masses_amu[deck.control.types[atom] - 1];
    if (std::isnan(mass)) mass = cells.primitive.mass_amu[atom];
  }
  deck.crystal = make_crystal(deck.control);
  if (deck.control.auto_isotopes && !cells.primitive.mass_amu.empty())
    deck.crystal.mass_amu = cells.primitive.mass_amu;
  read_force_constants(directory, cells, deck);
  return deck;
}

}  // namespace quasi::thermal
