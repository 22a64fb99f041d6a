#include "workers/thermal/input/deck/toml_deck.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include "workers/backend/error.hpp"
#include "workers/io/input_path.hpp"
#include "workers/io/settings.hpp"
#include "workers/io/table_reader.hpp"
#include "workers/thermal/input/control/control.hpp"

namespace quasi::thermal {
namespace {

constexpr std::size_t kMaxBytes = 16 << 20;
constexpr std::array kGroups{"allocations", "crystal", "parameters", "flags"};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The values of a node in the words of a namelist, nested lists flattened.
void flatten(const toml::node& node, const std::string& where, const std::string& key,
             std::vector<NamelistValue>& values) {
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& entry : *list) flatten(entry, where, key, values);
  } else if (node.is_boolean()) {
    values.push_back({*node.value<bool>() ? ".true." : ".false.", false});
  } else if (node.is_integer()) {
    values.push_back({std::to_string(*node.value<std::int64_t>()), false});
  } else if (node.is_floating_point()) {
    values.push_back({shown(*node.value<double>()), false});
  } else if (node.is_string()) {
    values.push_back({*node.value<std::string>(), true});
  } else {
    throw InvalidInput(where + ": '" + key +
                       "' must be a number, a truth value, text or a list of these");
  }
}

class Collector {
 public:
  explicit Collector(std::string file) : file_(std::move(file)) {}

  void take(const toml::table& table, const std::string& group) {
    for (const auto& [name, node] : table) {
      const std::string key(name.str());
      const std::string where = file_ + " line " + std::to_string(name.source().begin.line);
      const bool is_group = std::find(kGroups.begin(), kGroups.end(), lower(key)) != kGroups.end();
      if (group.empty() && (key == "kind" || key == "directory" || key == "job")) continue;
      if (group.empty() && is_group && node.is_table()) {
        take(*node.as_table(), lower(key));
        continue;
      }
      std::vector<std::string> known = control_keys();
      if (std::find(known.begin(), known.end(), lower(key)) == known.end()) {
        if (group.empty()) known.insert(known.end(), {"kind", "directory", "job"});
        throw InvalidInput(unknown_key_message(key, where, known));
      }
      NamelistAssignment assignment{.group = group,
                                    .key = lower(key),
                                    .subscripts = {},
                                    .values = {},
                                    .where = where,
                                    .complete = true};
      flatten(node, where, key, assignment.values);
      lines_.emplace_back(name.source().begin.line, std::move(assignment));
    }
  }

  /// A table forgets the order of its keys; the lines remember it.
  std::vector<NamelistAssignment> in_order() {
    std::stable_sort(lines_.begin(), lines_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<NamelistAssignment> assignments;
    for (auto& [line, assignment] : lines_) assignments.push_back(std::move(assignment));
    return assignments;
  }

 private:
  std::string file_;
  std::vector<std::pair<std::uint32_t, NamelistAssignment>> lines_;
};

}  // namespace

TomlDeck read_toml_deck(const std::filesystem::path& file) {
  std::ifstream in(input_file(file), std::ios::binary);
  if (!in) throw InvalidInput("deck '" + file.string() + "' cannot be read");
  std::string text;
  char buffer[1 << 16];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxBytes)
      throw InvalidInput("'" + file.string() + "' is larger than 16 MiB; is it a TOML deck?");
  }
  const std::string name = file.filename().string();
  const toml::table root = parse_toml(text, name, {});
  TableReader reader(&root, "", name);
  const std::string kind = reader.text("kind", "thermal");
  if (kind != "thermal") reader.fail("kind", "= \"" + kind + "\" is not \"thermal\"");
  if (!reader.has("directory"))
    reader.fail("directory",
                "is required: where the force constants are, relative to this file, e.g. directory "
                "= \".\"");
  const std::filesystem::path named = reader.text("directory", ".");
  reader.table("job");

  Collector collector(name);
  collector.take(root, "");
  TomlDeck deck{.directory = named.is_absolute() ? named : file.parent_path() / named,
                .assignments = collector.in_order()};
  if (!std::filesystem::is_directory(input_file(deck.directory)))
    reader.fail("directory", "= \"" + named.string() +
                                 "\" is no directory; name the one that holds the force constants, "
                                 "relative to the deck");
  return deck;
}

}  // namespace quasi::thermal
