#include "client/input/deck.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <set>

#include "client/engine/deck_files.hpp"
#include "client/failure.hpp"
#include "client/input/toml_source.hpp"
#include "client/session/durable_file.hpp"
#include "client/views/readable.hpp"
#include "proto/wire/limits.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTomlLimitBytes = 8 << 20;

[[noreturn]] void refuse_link(const fs::path& link, const std::string& why) {
  throw Failure(ExitStatus::kInvalidInput,
                "'" + link.string() + "' is a symbolic link, and " + why +
                    "; such a file is not sent to a server",
                "replace the link by the file that the deck needs: cp --remove-destination FILE '" +
                    link.string() + "'");
}

/// True for a path below a folder of the system or with a hidden component. Keys and settings live
/// there.
bool is_private(const fs::path& path) {
  static const std::set<std::string> kSystem{"boot", "dev", "etc", "proc", "run", "sys"};
  int depth = 0;
  for (const fs::path& part : path) {
    const std::string name = part.string();
    if (name.starts_with('.') || (++depth == 2 && kSystem.contains(name))) return true;
  }
  return false;
}

/// Resolves the links in the path of a file, because workflows link large files into a deck. A deck
/// from elsewhere could link a private file of its user, so a link must not lead to one.
fs::path resolve_links(const fs::path& directory, const fs::path& file) {
  std::error_code error;
  const fs::path path = directory / file;
  const fs::path real = fs::canonical(path, error);
  if (error) refuse_link(path, "it leads nowhere: " + error.message());
  const fs::path home = fs::canonical(directory, error);
  const fs::path below = real.lexically_relative(home);
  const bool is_inside = !below.empty() && *below.begin() != "..";
  if (is_private(is_inside ? below : real))
    refuse_link(path,
                "it leads to '" + real.string() + "', which is hidden or belongs to the system");
  return real;
}

bool slot_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

/// Checks size and slot of a file; `path` must be a plain file.
LocalInput checked_input(const std::string& slot, const fs::path& path) {
  if (const std::string problem = slot_problem(slot); !problem.empty())
    throw Failure(ExitStatus::kInvalidInput,
                  "'" + path.string() + "' cannot be sent to the server: " + problem,
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

/// Files of the directory and its subdirectories, except hidden ones.
std::vector<NamedFile> files_below(const fs::path& directory) {
  constexpr int kDeepest = 6;
  std::vector<NamedFile> files;
  std::error_code error;
  fs::recursive_directory_iterator at(directory, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    const bool is_hidden = at->path().filename().string().starts_with('.');
    const bool is_directory = fs::is_directory(at->symlink_status());
    if (is_directory && (is_hidden || at.depth() >= kDeepest)) at.disable_recursion_pending();
    if (!is_directory && !is_hidden)
      files.push_back({.path = at->path().lexically_relative(directory), .origin = {}});
  }
  if (error)
    throw Failure(ExitStatus::kLocalFile,
                  "cannot list '" + directory.string() + "': " + error.message());
  return files;
}

/// Calls `use` with every text value of the tree and the node that holds it.
void for_each_text(const toml::node& node, const auto& use) {
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table) for_each_text(value, use);
  } else if (const toml::array* array = node.as_array()) {
    for (const toml::node& value : *array) for_each_text(value, use);
  } else if (const toml::value<std::string>* text = node.as_string()) {
    use(text->get(), node);
  }
}

/// Existing files that a TOML deck names, and the files of the directories that it names.
std::vector<NamedFile> files_named_in(const fs::path& deck) {
  constexpr std::size_t kNameBytes = 1'024;  // a longer text is not a file name
  std::vector<NamedFile> files{{.path = deck.filename(), .origin = {}}};
  for_each_text(parse_toml(deck, read_whole(deck, kTomlLimitBytes)), [&](const std::string& text,
                                                                         const toml::node& node) {
    if (text.empty() || text.size() > kNameBytes) return;
    const fs::path named = fs::path(text).lexically_normal();
    std::error_code error;
    const auto status = fs::status(deck.parent_path() / named, error);
    if (error || !fs::exists(status)) return;
    const std::string origin = where(deck, node);
    if (!fs::is_directory(status)) return files.push_back({named, origin});
    for (const NamedFile& file : files_below(deck.parent_path() / named))
      if (file.path.extension() != ".toml")  // a TOML file there is another deck for the same files
        files.push_back({(named / file.path).lexically_normal(), origin});
  });
  return files;
}

/// The files of a deck, as listed by the engine on this machine. Without an engine they are all
/// files in the deck's directory, or all files that the TOML deck names.
std::vector<NamedFile> files_of(const std::string& kind, const fs::path& deck, bool is_directory) {
  if (const auto files = files_by_engine(kind, deck)) return *files;
  return is_directory ? files_below(deck) : files_named_in(deck);
}

/// Refuses a file that the deck names outside its directory.
void require_place_below(const fs::path& directory, const NamedFile& file) {
  if (file.path.is_absolute() || file.path.begin()->string() == "..")
    throw Failure(ExitStatus::kInvalidInput,
                  (file.origin.empty() ? "" : file.origin + ": ") + "'" + file.path.string() +
                      "' lies outside the deck's directory",
                  "put the file beside the deck and name it there; only files below '" +
                      directory.string() + "' are sent");
}

void require_reasonable_number(const Deck& deck, const fs::path& path, const std::string& kind) {
  if (deck.inputs.empty())
    throw Failure(ExitStatus::kInvalidInput,
                  "'" + path.string() + "' holds no file of a " + kind + " deck",
                  "name the directory that holds the deck's files");
  if (deck.inputs.size() > limits::kInputs)
    throw Failure(ExitStatus::kInvalidInput,
                  "'" + path.string() + "' holds " + std::to_string(deck.inputs.size()) +
                      " files of a deck; the limit is " + std::to_string(limits::kInputs),
                  "keep the deck in a directory of its own; a quasi-engine beside quasi would "
                  "choose the files that the deck reads");
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
                  "write --input slot=path, e.g. --input deck/FILE=../other/FILE");
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
  const bool is_directory = fs::is_directory(status);
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!is_directory && path.extension() != ".toml")
    throw Failure(ExitStatus::kInvalidInput,
                  "'" + path.string() + "' is neither a deck directory nor a TOML file",
                  "give the directory that holds it: '" + parent.string() + "'");
  const fs::path directory = is_directory ? path : parent;
  const std::string name = path.filename().string();
  Deck deck{.slot = "deck", .inputs = {}};
  if (!is_directory) {
    // If the file's name is not a valid slot, "deck.toml" replaces it.
    deck.slot += "/" + (slot_problem(name).empty() ? name : std::string("deck.toml"));
    deck.inputs.push_back(checked_input(deck.slot, path));
  }
  std::set<fs::path> seen;
  for (const NamedFile& file : files_of(kind, path, is_directory)) {
    if ((!is_directory && file.path == name) || !seen.insert(file.path).second) continue;
    require_place_below(directory, file);
    const fs::path place = directory / file.path;
    if (!fs::is_symlink(fs::symlink_status(place)) && !fs::is_regular_file(place)) continue;
    const fs::path real = resolve_links(directory, file.path);
    if (!fs::is_regular_file(real)) continue;
    deck.inputs.push_back(checked_input("deck/" + file.path.generic_string(), real));
  }
  std::sort(deck.inputs.begin(), deck.inputs.end(),
            [](const LocalInput& a, const LocalInput& b) { return a.slot < b.slot; });
  require_reasonable_number(deck, path, kind);
  return deck;
}

}  // namespace quasi::client
