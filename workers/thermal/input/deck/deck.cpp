#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/input/deck/crystal_input.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/io/input_path.hpp"
#include "workers/io/sha256.hpp"
#include "workers/thermal/input/deck/toml_deck.hpp"
#include "workers/thermal/input/force_constants/projection.hpp"
#include "workers/thermal/input/phonopy/phonopy_deck.hpp"
#include "workers/thermal/input/tdep/tdep_deck.hpp"

namespace quasi::thermal {
namespace {

constexpr double kSumRuleWarning =
    1e-6;  // sum rule, of the largest element (docs/theory/thermal.md 12.3)

/// Limit of the violated sum rule after the tensor of a supercell was shared among periodic images.
/// The mean over three centres violates the rule even if the tensor obeys it.
constexpr double kImageSumRuleWarning = 2e-2;

void hash_file(const std::filesystem::path& file, Sha256& hash) {
  std::ifstream in(input_file(file), std::ios::binary);
  if (!in) throw InvalidInput("'" + file.string() + "' cannot be read");
  hash.update(file.filename().string());
  hash.update(std::string_view("\0", 1));
  char buffer[1 << 16];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0)
    hash.update({buffer, static_cast<std::size_t>(in.gcount())});
  hash.update(std::string_view("\0", 1));
}

std::string scientific(double value) {
  std::ostringstream out;
  out.precision(3);
  out << value;
  return out.str();
}

/// Projects constants on the sum rule and on the exchange of atoms, and says how far they move.
void project(SparseForceConstants& constants, const std::string& name, Deck& deck) {
  constexpr double kMostChange = 0.05;
  const ProjectionChange change = project_rules(constants);
  const std::string said = name + ": sum_rule = project changes the constants by " +
                           scientific(100.0 * change.relative) + " % of their norm";
  if (change.relative > kMostChange && !deck.control.allow_broken_sum_rule)
    throw InvalidInput(said +
                       " (limit 5 %): they are not those of this crystal, or far from converged; "
                       "make them anew, or set allow_broken_sum_rule = .true.");
  deck.warnings.push_back(said + ", in " + std::to_string(change.sweeps) +
                          " sweeps; the sum rule is broken by " + scientific(change.sum_rule));
}

/// Refuses to renormalise constants of TDEP, which are fitted at a temperature.
void require_bare_constants(const Control& control) {
  if (control.renormalise)
    throw InvalidInput(control.where({"renormalise"}) +
                       ": constants of TDEP hold the thermal motion of the fit already; set "
                       "renormalise = .false., or give constants at 0 K");
}

/// The keys laid over the files of a directory.
struct DeckKeys {
  std::vector<NamelistAssignment> overrides;
  std::string toml_name;  ///< of the TOML deck; empty without one

  bool compute_constants() const {
    const auto last = std::find_if(overrides.rbegin(), overrides.rend(),
                                   [](const auto& a) { return a.key == "forces"; });
    return last != overrides.rend() && !last->values.empty() &&
           last->values.front().text.value_or("files") != "files";
  }
};

/// Sum rule and duplicates: what can be said of sparse constants by themselves.
void check_sparse(SparseForceConstants& constants, const std::string& name, Deck& deck) {
  if (deck.control.project_sum_rule) project(constants, name, deck);
  check_sum_rule(constants, name, deck.control);
  const double violation = constants.tensor_sum_rule.value_or(sum_rule_violation(constants));
  if (violation > kSumRuleWarning)
    deck.warnings.push_back(name + ": the acoustic sum rule over the last atom is broken by " +
                            scientific(violation) + " of the largest element");
  const double of_images = sum_rule_violation(constants);
  if (constants.tensor_sum_rule && of_images > kImageSumRuleWarning)
    deck.warnings.push_back(
        name +
        ": after its blocks are shared among nearest images, the acoustic sum rule is "
        "broken by " +
        scientific(of_images) + " of the largest element (limit " +
        scientific(kImageSumRuleWarning) +
        "): the supercell is small for these constants; a larger one, or fc3_centres = \"first\", "
        "keeps the rule");
  const std::int64_t repeated = constants.blocks_read - constants.n_blocks();
  if (repeated <= 0) return;
  constexpr double kRepeatedLimit = 0.01;
  const std::string found = name + ": " + std::to_string(repeated) + " of " +
                            std::to_string(constants.blocks_read) +
                            " blocks repeat atoms and cells of others and are added to them";
  if (static_cast<double>(repeated) > kRepeatedLimit * static_cast<double>(constants.blocks_read) &&
      !deck.control.allow_repeated_blocks && !deck.control.compat)
    throw InvalidInput(found +
                       " (limit 1 %): is the file a concatenation? List each block once, or set "
                       "allow_repeated_blocks = .true. if the file holds parts to be added");
  deck.warnings.push_back(found);
}

/// Checks constants of fourth order and keeps them for the steps of the deck that need them.
void take_fourth_order(SparseForceConstants constants, const std::string& name, Deck& deck) {
  check_sparse(constants, name, deck);
  if (deck.control.renormalise) deck.renormalising_order = constants;
  if (deck.control.four_phonon && !deck.control.only_harmonic)
    deck.fourth_order = std::move(constants);
}

/// Reads the fourth order that scatters phonons, renormalises them, or both.
void add_fourth_order(const std::filesystem::path& file, Deck& deck) {
  take_fourth_order(read_sparse_force_constants(file, 4, deck.crystal), file.filename().string(),
                    deck);
}

/// Takes constants that are computed from the structure of the deck.
void compute_constants(const ConstantsSource& source, Deck& deck) {
  const Control& control = deck.control;
  if (!source)
    throw InvalidInput(control.where({"forces"}) + ": 'forces' = " + control.forces +
                       " computes force constants, and this program reads them from files; use "
                       "quasi-engine, or set forces = files");
  ComputedConstants computed = source(control, deck.crystal);
  deck.second_order = std::move(computed.second);
  finish_second_order(deck.second_order, control);
  if (computed.third) {
    deck.third_order = std::move(*computed.third);
    check_sparse(deck.third_order, "third order of " + control.forces, deck);
  }
  if (computed.fourth)
    take_fourth_order(std::move(*computed.fourth), "fourth order of " + control.forces, deck);
}

/// @return the files read
std::vector<std::filesystem::path> read_bte_deck(const std::filesystem::path& directory,
                                                 const DeckKeys& keys,
                                                 const ConstantsSource& source, Deck& deck) {
  const auto& [overrides, toml_name] = keys;
  std::vector<std::filesystem::path> files;
  if (!toml_name.empty() && !std::filesystem::exists(directory / "CONTROL")) {
    deck.control = parse_control("", toml_name, overrides);
  } else {
    deck.control = read_control(directory, overrides);
    files.push_back(directory / "CONTROL");
  }
  const Control& control = deck.control;
  deck.crystal = make_crystal(control);
  if (control.computes_constants()) {
    compute_constants(source, deck);
    return files;
  }
  if (control.tdep) {
    require_bare_constants(control);
    deck.second_order =
        read_tdep_second_order_of(directory, deck.control, deck.crystal, deck.warnings);
    files.push_back(tdep_file(directory, "forceconstant"));
  } else {
    deck.second_order = read_second_order(directory, control, deck.crystal);
    files.push_back(directory / (control.espresso ? "espresso.ifc2" : "FORCE_CONSTANTS_2ND"));
  }
  if (!control.only_harmonic) {
    files.push_back(directory / "FORCE_CONSTANTS_3RD");
    deck.third_order = read_sparse_force_constants(files.back(), 3, deck.crystal);
    check_sparse(deck.third_order, "FORCE_CONSTANTS_3RD", deck);
  }
  if (control.renormalise || (control.four_phonon && !control.only_harmonic)) {
    files.push_back(directory / "FORCE_CONSTANTS_4TH");
    add_fourth_order(files.back(), deck);
  }
  return files;
}

std::vector<std::filesystem::path> read_phonopy(const std::filesystem::path& directory,
                                                const std::vector<NamelistAssignment>& overrides,
                                                Deck& deck) {
  PhonopyDeck phonopy = read_phonopy_deck(directory, overrides);
  deck.control = std::move(phonopy.control);
  deck.crystal = std::move(phonopy.crystal);
  deck.second_order = std::move(phonopy.second);
  if (deck.control.renormalise && !phonopy.fourth)
    throw InvalidInput("'" + directory.string() +
                       "': 'renormalise' = .true. needs fourth-order constants; add fc4.hdf5 or "
                       "FORCE_CONSTANTS_4TH, without onlyharmonic, or set renormalise = .false.");
  if (deck.control.only_harmonic) return phonopy.files;
  deck.third_order = std::move(*phonopy.third);
  check_sparse(deck.third_order, phonopy.third_name, deck);
  if (phonopy.fourth) take_fourth_order(std::move(*phonopy.fourth), phonopy.fourth_name, deck);
  return phonopy.files;
}

std::vector<std::filesystem::path> read_tdep(const std::filesystem::path& directory,
                                             const std::vector<NamelistAssignment>& overrides,
                                             Deck& deck) {
  TdepDeck tdep = read_tdep_deck(directory, overrides);
  deck.control = std::move(tdep.control);
  require_bare_constants(deck.control);
  deck.crystal = std::move(tdep.crystal);
  deck.second_order = std::move(tdep.second);
  deck.warnings = std::move(tdep.warnings);
  if (tdep.third) deck.third_order = std::move(*tdep.third);
  if (tdep.third) check_sparse(deck.third_order, "forceconstant_thirdorder", deck);
  if (tdep.fourth) take_fourth_order(std::move(*tdep.fourth), "forceconstant_fourthorder", deck);
  return tdep.files;
}

/// Reads a directory in the layout that its files have. @return the files read
std::vector<std::filesystem::path> read_directory(const std::filesystem::path& directory,
                                                  const DeckKeys& keys,
                                                  const ConstantsSource& source, Deck& deck) {
  if (!keys.compute_constants()) {
    if (is_phonopy_deck(directory)) return read_phonopy(directory, keys.overrides, deck);
    if (is_tdep_deck(directory)) return read_tdep(directory, keys.overrides, deck);
  }
  return read_bte_deck(directory, keys, source, deck);
}

}  // namespace

Deck read_deck(const std::filesystem::path& path, const std::vector<Setting>& settings,
               const ConstantsSource& source) {
  Deck deck;
  std::filesystem::path directory = path;
  std::filesystem::path toml;
  std::vector<NamelistAssignment> overrides;
  std::vector<Setting> own = settings;
  if (std::filesystem::is_regular_file(path)) {
    const std::string place = path.has_parent_path() ? path.parent_path().string() : ".";
    if (path.extension() != ".toml")
      throw InvalidInput("'" + path.string() + "' is one file; name the deck's directory, '" +
                         place + "', or a TOML deck (*.toml)");
    toml = path;
  } else if (std::filesystem::is_regular_file(path / "deck.toml")) {
    toml = path / "deck.toml";
  }
  if (!toml.empty()) {
    TomlDeck read = read_toml_deck(toml);
    overrides = std::move(read.assignments);
    directory = read.directory;
    const auto named =
        std::find_if(own.begin(), own.end(), [](const Setting& s) { return s.key == "directory"; });
    if (named != own.end()) {
      directory = toml.parent_path() / named->value;
      own.erase(named);
    }
  }
  for (NamelistAssignment& assignment : assignments_of(own))
    overrides.push_back(std::move(assignment));
  std::vector<std::filesystem::path> files =
      read_directory(directory, {std::move(overrides), toml.filename().string()}, source, deck);
  if (!toml.empty()) files.push_back(toml);
  for (const std::string& said : deck.control.idle_width_keys()) deck.warnings.push_back(said);
  deck.symmetry = find_symmetry(deck.crystal, deck.control.symmetry_options());
  if (!deck.symmetry.dropped.empty()) {
    std::string list;
    for (std::size_t i = 0; i < deck.symmetry.dropped.size() && i < 4; ++i)
      list += (i == 0 ? "" : ", ") + deck.symmetry.dropped[i];
    if (deck.symmetry.dropped.size() > 4) list += ", …";
    deck.warnings.push_back(deck.control.where({"ngrid"}) +
                            ": the mesh 'ngrid' does not have the symmetry of space group " +
                            deck.symmetry.space_group + "; " +
                            std::to_string(deck.symmetry.dropped.size()) +
                            " operations are dropped: " + list);
  }
  Sha256 hash;
  for (const std::filesystem::path& file : files) hash_file(file, hash);
  for (const Setting& setting : settings) {
    hash.update(setting.key + "=" + setting.value);
    hash.update(std::string_view("\0", 1));
  }
  deck.digest_sha256 = hash.hex();
  return deck;
}

}  // namespace quasi::thermal
