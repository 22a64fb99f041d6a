#include "workers/thermal/input/deck.hpp"

#include <fstream>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/io/sha256.hpp"

namespace quasi::thermal {
namespace {

constexpr double kThirdOrderWarning = 1e-6;  // sum rule, of the largest element (thermal.md 12.3)

void hash_file(const std::filesystem::path& file, Sha256& hash) {
  std::ifstream in(file, std::ios::binary);
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

SparseForceConstants read_checked(const std::filesystem::path& file, int order, Deck& deck) {
  SparseForceConstants constants = read_sparse_force_constants(file, order, deck.crystal);
  const std::string name = file.filename().string();
  check_sum_rule(constants, name, deck.control);
  const double violation = sum_rule_violation(constants);
  if (violation > kThirdOrderWarning)
    deck.warnings.push_back(name + ": the acoustic sum rule over the last atom is broken by " +
                            scientific(violation) + " of the largest element");
  if (constants.n_blocks() < constants.blocks_read)
    deck.warnings.push_back(name + ": " + std::to_string(constants.blocks_read - constants.n_blocks()) +
                            " blocks repeat atoms and cells of others and were added to them");
  return constants;
}

}  // namespace

Deck read_deck(const std::filesystem::path& directory, const std::vector<Setting>& settings) {
  Deck deck;
  deck.control = read_control(directory, settings);
  const Control& control = deck.control;
  deck.crystal = make_crystal(control);
  deck.second_order = read_second_order(directory, control, deck.crystal);
  std::vector<std::string> files{"CONTROL", control.espresso ? "espresso.ifc2" : "FORCE_CONSTANTS_2ND"};
  if (!control.only_harmonic) {
    deck.third_order = read_checked(directory / "FORCE_CONSTANTS_3RD", 3, deck);
    files.emplace_back("FORCE_CONSTANTS_3RD");
    if (control.four_phonon) {
      deck.fourth_order = read_checked(directory / "FORCE_CONSTANTS_4TH", 4, deck);
      files.emplace_back("FORCE_CONSTANTS_4TH");
    }
  }
  deck.symmetry = find_symmetry(deck.crystal, control);
  if (!deck.symmetry.dropped.empty()) {
    std::string list;
    for (std::size_t i = 0; i < deck.symmetry.dropped.size() && i < 4; ++i)
      list += (i == 0 ? "" : ", ") + deck.symmetry.dropped[i];
    if (deck.symmetry.dropped.size() > 4) list += ", …";
    deck.warnings.push_back("CONTROL: the mesh 'ngrid' does not have the symmetry of space group " +
                            deck.symmetry.space_group + "; " + std::to_string(deck.symmetry.dropped.size()) +
                            " operations are dropped: " + list);
  }
  Sha256 hash;
  for (const std::string& file : files) hash_file(directory / file, hash);
  for (const Setting& setting : settings) {
    hash.update(setting.key + "=" + setting.value);
    hash.update(std::string_view("\0", 1));
  }
  deck.digest_sha256 = hash.hex();
  return deck;
}

}  // namespace quasi::thermal
