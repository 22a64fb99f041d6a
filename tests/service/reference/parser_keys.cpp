#include "tests/service/reference/parser_keys.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <regex>
#include <utility>

#include "server/options_table.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/daemon/worker_config.hpp"
#include "workers/gw/input/deck.hpp"
#include "workers/io/table_reader.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/thermal/input/control/control_keys.hpp"
#include "workers/thermal/input/deck/toml_deck.hpp"

namespace quasi::test {
namespace {

/// Returns the unit that the end of a name states. Longer ends come first.
std::string unit_of(const std::string& key) {
  static const std::vector<std::pair<std::string, std::string>> kUnits{
      {"_1e8_ev_cm", "1e8 eV/cm"},
      {"_per_ev", "eV⁻¹"},
      {"_a_per_m", "A/m"},
      {"_bytes_per_second", "bytes/s"},
      {"_kg_m3", "kg/m³"},
      {"_bytes", "bytes"},
      {"_bohr", "Bohr"},
      {"_m_s", "m/s"},
      {"_cm3", "cm⁻³"},
      {"_mev", "meV"},
      {"_mib", "MiB"},
      {"_angstrom", "Å"},
      {"_nm", "nm"},
      {"_ev", "eV"},
      {"_ry", "Ry"},
      {"_fs", "fs"},
      {"_hz", "Hz"},
      {"_k", "K"},
      {"_v", "V"},
      {"_s", "s"}};
  for (const auto& [end, unit] : kUnits)
    if (key.ends_with(end)) return unit;
  return "";
}

void read_mosfet_decks() {
  for (const char* deck :
       {"", "[mesh]\nwmax_ev = 1.0\n",
        "[scattering]\nset = \"custom\"\n[[scattering.process]]\n[[scattering.process]]\n"
        "kind = \"g\"\nenergy_mev = 10.0\n[scattering.roughness]\n"
        "[[valley]]\nmx = 1.0\nmy = 1.0\nmz = 1.0\n"})
    mosfet::parse_deck(deck, {}, "deck", ".");
}

void read_thermal_decks() {
  thermal::RawControl raw;
  thermal::control_key_table(raw);
  const TemporaryDirectory folder;
  const std::filesystem::path deck = folder.path() / "deck.toml";
  std::ofstream(deck) << "directory = \".\"\n";
  thermal::read_toml_deck(deck);
}

std::string range_from(double low, double high, double no_limit) {
  return high >= no_limit ? "≥ " + shown(low) : range_text(low, high);
}

/// Returns the rule in the error that a key of the server gives for a value of a wrong type.
std::string rule_of(const server::Entry& entry) {
  server::ServerOptions options;
  try {
    entry.set(options, "?");
  } catch (const std::exception& error) {
    static const std::regex kRule("must be (.*), got");
    std::smatch match;
    const std::string text = error.what();
    if (std::regex_search(text, match, kRule)) return match[1];
  }
  return "";
}

/// Returns the range that a rule such as "seconds in 1...60" states.
std::string range_of_rule(const std::string& rule) {
  std::smatch match;
  if (std::regex_search(rule, match, std::regex("in (\\S+)\\.\\.\\.(\\S+)")))
    return range_from(std::stod(match[1]), std::stod(match[2]), 9e18);
  if (!rule.starts_with("one of ")) return "";
  std::vector<std::string> words;
  std::string list = rule.substr(7);
  static const std::regex kWord("\\w+");
  for (std::sregex_iterator word(list.begin(), list.end(), kWord), end; word != end; ++word)
    words.push_back(word->str());
  return choices_text(words);
}

/// Returns a default as pages show it. An empty text, an empty list and an address that depends on
/// the environment have no fixed value.
std::string fixed_default(const std::string& value) {
  return value == "\"\"" || value == "[]" || value.find("unix:") != std::string::npos ? "" : value;
}

}  // namespace

std::vector<ParserKey> keys_of_deck(const std::string& kind) {
  const KeyNotes notes;
  if (kind == "mosfet") read_mosfet_decks();
  if (kind == "thermal") read_thermal_decks();
  if (kind == "gw")
    gw::parse_deck("[meanfield]\nsource = \"epm\"\n[epsilon]\ncutoff_ry = 5.0\n", {}, "deck", ".");
  // The parsers of all kinds leave this table to the client.
  std::vector<ParserKey> keys{{{"job", "table", "", ""}, ""}};
  for (KeyNote note : notes.notes()) {
    note.key = std::regex_replace(note.key, std::regex("\\[\\d+\\]"), "");
    const auto known = std::find_if(keys.begin(), keys.end(),
                                    [&](const ParserKey& key) { return key.note.key == note.key; });
    if (known == keys.end()) keys.push_back({note, unit_of(note.key)});
  }
  return keys;
}

std::vector<ParserKey> keys_of_server() {
  static const std::vector<std::pair<std::string, std::string>> kTypes{
      {"N", "whole number"}, {"SECONDS", "number"},
      {"SHARE", "number"},   {"[BOOL]", "true or false"},
      {"FILE", "text"},      {"HOST:PORT", "text"},
      {"TEXT", "text"},      {"UIDS", "list of whole numbers"}};
  std::vector<ParserKey> keys;
  for (const server::Entry& entry : server::entries()) {
    const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const auto& each) { return each.first == entry.unit; });
    keys.push_back(
        {{entry.key, type == kTypes.end() ? "" : type->second,
          fixed_default(entry.show(server::ServerOptions())), range_of_rule(rule_of(entry))},
         entry.unit == "SECONDS" ? "s" : unit_of(entry.key)});
  }
  return keys;
}

std::vector<ParserKey> keys_of_worker() {
  constexpr std::array kTypes{"text", "whole number", "number", "true or false"};
  std::vector<ParserKey> keys;
  for (const ConfigKey& key : config_keys()) {
    const std::size_t type = key.member.index();
    const std::string name(key.name);
    keys.push_back({{name, kTypes.at(type), fixed_default(key.get(WorkerConfig())),
                     type == 1 || type == 2 ? range_from(key.minimum, key.maximum, 1e18) : ""},
                    unit_of(name)});
  }
  return keys;
}

}  // namespace quasi::test
