#include "client/input/deck.hpp"

#include <fnmatch.h>
#include <toml++/toml.h>

#include <algorithm>
#include <map>
#include <set>

#include "client/failure.hpp"
#include "client/input/toml_source.hpp"
#include "client/session/durable_file.hpp"
#include "client/views/readable.hpp"
#include "proto/wire/limits.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTomlLimitBytes = 8 << 20;

/// The files of a deck directory, by kind: what quasi-engine reads. Results that lie in the same
/// directory stay at home.
const std::map<std::string, std::vector<std::string>>& patterns_by_kind() {
  static const std::map<std::string, std::vector<std::string>> table{
      {"thermal",
       {"CONTROL", "FORCE_CONSTANTS_2ND", "FORCE_CONSTANTS_3RD", "FORCE_CONSTANTS_4TH",
        "espresso.ifc2", "POSCAR", "BORN", "*.toml", "fc2.hdf5", "force_constants.hdf5", "fc3.hdf5",
        "*.yaml"}},
      {"mosfet", {"*.toml", "*.csv", "*.dat"}},
      {"gw",
       {"epsilon.inp", "sigma.inp", "*.toml", "WFN*", "wfn*", "RHO", "VXC", "VSC", "VKB", "vxc.dat",
        "vxc2.dat", "rho*.h5", "vxc*.h5", "vsc*.h5", "vkb*.h5", "subweights.dat", "eps0mat.h5",
        "epsmat.h5", "vcoul*"}},
  };
  return table;
}

bool belongs(const std::string& kind, const std::string& name) {
  const auto entry = patterns_by_kind().find(kind);
  if (entry == patterns_by_kind().end()) return true;
  return std::any_of(entry->second.begin(), entry->second.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

std::string pattern_list(const std::string& kind) {
  std::string list;
  const auto entry = patterns_by_kind().find(kind);
  if (entry == patterns_by_kind().end()) return "any file";
  for (const std::string& pattern : entry->second) list += (list.empty() ? "" : ", ") + pattern;
  return list;
}

[[noreturn]] void refuse_link(const fs::path& path) {
  const std::string file = path.filename().string();
  throw Failure(ExitStatus::kInvalidInput,
                "'" + path.string() +
                    "' is a symbolic link; a deck is made of plain files, so that "
                    "what travels is what was there",
                "replace it by what it points to: cp --remove-destination \"$(readlink -f '" +
                    path.string() + "')\" '" + path.string() + "'");
}

bool slot_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

/// Sizes and the slot's form; `path` is known to be a plain file.
LocalInput checked_input(const std::string& slot, const fs::path& path) {
  if (const std::string problem = slot_problem(slot); !problem.empty())
    throw Failure(ExitStatus::kInvalidInput, "'" + path.string() + "' cannot travel: " + problem,
                  "rename the file");
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  if (error)
    throw Failure(ExitStatus::kLocalFile,
                  "cannot read '" + path.string() + "': " + error.message());
  if (size > limits::kBlobBytes)
    throw Failure(ExitStatus::kInvalidInput,
                  "'" + path.string() + "' has " + readable_bytes(size) + "; the limit is " +
                      readable_bytes(limits::kBlobBytes),
                  "run it where the file is: quasi run");
  return {slot, path, size};
}

void finish(Deck& deck, const fs::path& path) {
  std::sort(deck.inputs.begin(), deck.inputs.end(),
            [](const LocalInput& a, const LocalInput& b) { return a.slot < b.slot; });
  if (deck.inputs.size() > limits::kInputs)
    throw Failure(ExitStatus::kInvalidInput,
                  "'" + path.string() + "' holds " + std::to_string(deck.inputs.size()) +
                      " files of a deck; the limit is " + std::to_string(limits::kInputs),
                  "keep the deck in a directory of its own");
}

Deck collect_directory(const std::string& kind, const fs::path& directory) {
  Deck deck{.slot = "deck", .inputs = {}};
  // Kinds with a known layout have it in one directory: an old deck kept below stays at home.
  const bool flat = patterns_by_kind().contains(kind);
  std::error_code error;
  fs::recursive_directory_iterator at(directory, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    const std::string name = path.filename().string();
    const fs::file_status status = at->symlink_status();
    if (fs::is_directory(status) && (flat || name.starts_with('.') || at.depth() >= 6))
      at.disable_recursion_pending();
    if (fs::is_directory(status) || name.starts_with('.') || !belongs(kind, name)) continue;
    if (fs::is_symlink(status)) refuse_link(path);
    if (!fs::is_regular_file(status)) continue;
    const std::string slot = "deck/" + path.lexically_relative(directory).generic_string();
    deck.inputs.push_back(checked_input(slot, path));
  }
  if (error)
    throw Failure(ExitStatus::kLocalFile,
                  "cannot list '" + directory.string() + "': " + error.message());
  if (deck.inputs.empty())
    throw Failure(ExitStatus::kInvalidInput,
                  "'" + directory.string() + "' holds no file of a " + kind + " deck",
                  "a deck directory holds some of: " + pattern_list(kind));
  finish(deck, directory);
  return deck;
}

/// Every text value of the tree, with the node that holds it.
void for_each_text(const toml::node& node, const auto& use) {
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table) for_each_text(value, use);
  } else if (const toml::array* array = node.as_array()) {
    for (const toml::node& value : *array) for_each_text(value, use);
  } else if (const toml::value<std::string>* text = node.as_string()) {
    use(text->get(), node);
  }
}

/// The files of the kind in the directory that a TOML deck's top-level `directory` names.
void collect_named_directory(const std::string& kind, const fs::path& file,
                             const toml::table& table, std::set<std::string>& taken, Deck& deck) {
  const toml::node* node = table.get("directory");
  const toml::value<std::string>* text = node == nullptr ? nullptr : node->as_string();
  if (text == nullptr) return;
  const fs::path relative = fs::path(text->get()).lexically_normal();
  if (relative.is_absolute() || (!relative.empty() && relative.begin()->string() == ".."))
    throw Failure(ExitStatus::kInvalidInput,
                  where(file, *node) + ": '" + text->get() + "' lies outside the deck's directory",
                  "put the directory beside the deck; only what is in or below '" +
                      file.parent_path().string() + "' travels");
  const fs::path directory = file.parent_path() / relative;
  if (fs::is_symlink(fs::symlink_status(directory))) refuse_link(directory);
  if (!fs::is_directory(directory))
    throw Failure(ExitStatus::kLocalFile,
                  where(file, *node) + ": no directory '" + directory.string() + "'",
                  "name the directory of the deck's files, relative to the TOML file");
  std::string prefix = relative == "." ? "" : relative.generic_string();
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  for (LocalInput& input : collect_directory(kind, directory).inputs) {
    if (input.path.extension() == ".toml") continue;  // another deck on the same files
    input.slot = "deck/" + prefix + input.slot.substr(5);
    if (taken.insert(input.slot).second) deck.inputs.push_back(std::move(input));
  }
}

Deck collect_toml(const std::string& kind, const fs::path& file) {
  const fs::path directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const std::string name = file.filename().string();
  // A name that cannot be a slot would stop a deck for its file name alone.
  Deck deck{.slot = "deck/" + (slot_problem(name).empty() ? name : std::string("deck.toml")),
            .inputs = {}};
  deck.inputs.push_back(checked_input(deck.slot, file));

  const toml::table table = parse_toml(file, read_whole(file, kTomlLimitBytes));
  std::set<std::string> taken{deck.slot};
  collect_named_directory(kind, file, table, taken, deck);
  for_each_text(table, [&](const std::string& text, const toml::node& node) {
    if (text.empty() || text.size() > 1024 || text.find('\n') != std::string::npos) return;
    const fs::path named(text);
    std::error_code error;
    const fs::path path = named.is_absolute() ? named : directory / named;
    const fs::file_status status = fs::symlink_status(path, error);
    if (error || fs::is_directory(status) || !fs::exists(status)) return;
    if (fs::is_symlink(status)) refuse_link(path);
    if (!fs::is_regular_file(status)) return;
    const fs::path relative = named.lexically_normal();
    if (named.is_absolute() || relative.begin()->string() == "..")
      throw Failure(ExitStatus::kInvalidInput,
                    where(file, node) + ": '" + text + "' lies outside the deck's directory",
                    "put the file beside the deck and name it there; only what is in or below '" +
                        directory.string() + "' travels");
    const std::string slot = "deck/" + relative.generic_string();
    if (taken.insert(slot).second) deck.inputs.push_back(checked_input(slot, path));
  });
  finish(deck, file);
  return deck;
}

}  // namespace

std::string slot_problem(const std::string& slot) {
  if (slot.empty()) return "the name is empty";
  int components = 0;
  std::size_t start = 0;
  while (start <= slot.size()) {
    const std::size_t end = std::min(slot.find('/', start), slot.size());
    const std::string component = slot.substr(start, end - start);
    ++components;
    if (component.empty()) return "'" + slot + "' has an empty part between slashes";
    if (component.front() == '.') return "'" + component + "' begins with a dot";
    if (component.size() > 128) return "'" + component + "' is longer than 128 characters";
    for (const char c : component)
      if (!slot_character(c))
        return "'" + component + "' holds a character other than letters, digits, '.', '_' and '-'";
    start = end + 1;
  }
  if (components > 8) return "'" + slot + "' lies deeper than 8 directories";
  return "";
}

LocalInput local_input(const std::string& slot, const fs::path& path) {
  if (const std::string problem = slot_problem(slot); !problem.empty())
    throw Failure(ExitStatus::kUsage, "input slot: " + problem,
                  "write --input slot=path, e.g. --input deck/WFN=../scf/WFN");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw Failure(ExitStatus::kLocalFile, "no file '" + path.string() + "' (input " + slot + ")",
                  "check the spelling of the path");
  if (!fs::is_regular_file(status))
    throw Failure(ExitStatus::kInvalidInput,
                  "'" + path.string() + "' (input " + slot + ") is not a plain file",
                  "name each file with its own --input slot=path");
  return checked_input(slot, path);
}

Deck collect_deck(const std::string& kind, const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw Failure(ExitStatus::kLocalFile, "no deck '" + path.string() + "'",
                  "check the spelling of the path");
  if (fs::is_directory(status)) return collect_directory(kind, path);
  if (path.extension() == ".toml") return collect_toml(kind, path);
  throw Failure(ExitStatus::kInvalidInput,
                "'" + path.string() + "' is neither a deck directory nor a TOML file",
                "give the directory that holds it: '" +
                    (path.has_parent_path() ? path.parent_path() : fs::path(".")).string() + "'");
}

}  // namespace quasi::client
