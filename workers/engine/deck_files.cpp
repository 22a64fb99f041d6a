#include "workers/engine/deck_files.hpp"

#include <fnmatch.h>
#include <toml++/toml.h>

#include <algorithm>
#include <set>

#include "workers/backend/error.hpp"
#include "workers/engine/task_registry.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNameBytes = 1'024;  ///< A longer text of a deck is not a file name.

std::string quoted(const fs::path& path) { return "'" + path.string() + "'"; }

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// Returns the sorted names of the files in the directory that match one of the patterns. A deck in
/// a subdirectory is another deck and does not count.
std::vector<fs::path> matching_files(const std::string& kind, const fs::path& directory) {
  const std::vector<std::string> patterns = make_task(kind)->deck_file_patterns();
  std::vector<fs::path> names;
  std::error_code error;
  fs::directory_iterator at(directory, error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (fs::is_directory(at->symlink_status()) || name.starts_with('.')) continue;
    if (std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
          return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
        }))
      names.emplace_back(name);
  }
  if (error) throw InvalidInput("cannot list " + quoted(directory) + ": " + error.message());
  if (names.empty())
    throw InvalidInput(quoted(directory) + " holds no file of a " + kind +
                       " deck; a deck directory holds some of: " + joined(patterns));
  std::sort(names.begin(), names.end());
  return names;
}

/// Calls `use` with every text value of the tree and its line.
void for_each_text(const toml::node& node, const auto& use) {
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table) for_each_text(value, use);
  } else if (const toml::array* array = node.as_array()) {
    for (const toml::node& value : *array) for_each_text(value, use);
  } else if (const toml::value<std::string>* text = node.as_string()) {
    use(text->get(), static_cast<int>(node.source().begin.line));
  }
}

/// Adds the files of the directory that a TOML deck's top-level `directory` names.
void add_named_directory(const std::string& kind, const fs::path& deck, const toml::table& table,
                         std::vector<DeckFile>& files) {
  const toml::node* node = table.get("directory");
  const toml::value<std::string>* text = node == nullptr ? nullptr : node->as_string();
  if (text == nullptr) return;
  const int line = static_cast<int>(node->source().begin.line);
  const fs::path named = fs::path(text->get()).lexically_normal();
  const fs::path directory = named.is_absolute() ? named : deck.parent_path() / named;
  if (!fs::is_directory(directory))
    throw InvalidInput(deck.string() + ":" + std::to_string(line) + ": there is no directory " +
                       quoted(directory) +
                       "; name the directory of the deck's files, relative to the TOML file");
  for (const fs::path& name : matching_files(kind, directory))
    if (name.extension() != ".toml")  // another deck on the same files does not count
      files.push_back({.path = (named / name).lexically_normal(), .line = line});
}

/// Adds all plain files of a folder if it has a file with one of the names `marks`.
void add_marked_folder(const std::vector<std::string>& marks, const fs::path& directory,
                       const fs::path& named, int line, std::vector<DeckFile>& files) {
  std::error_code error;
  if (std::none_of(marks.begin(), marks.end(),
                   [&](const std::string& mark) { return fs::exists(directory / mark, error); }))
    return;
  std::vector<fs::path> names;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    if (!fs::is_directory(at->symlink_status()) && !at->path().filename().string().starts_with('.'))
      names.push_back(at->path().filename());
  if (error) throw InvalidInput("cannot list " + quoted(directory) + ": " + error.message());
  std::sort(names.begin(), names.end());
  for (const fs::path& name : names)
    files.push_back({.path = (named / name).lexically_normal(), .line = line});
}

std::vector<DeckFile> files_of_toml(const std::string& kind, const fs::path& deck) {
  std::vector<DeckFile> files{{.path = deck.filename(), .line = 0}};
  toml::table table;
  try {
    table = toml::parse_file(deck.string());
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw InvalidInput(deck.string() + ":" + std::to_string(at.line) + ":" +
                       std::to_string(at.column) + ": " + std::string(error.description()));
  }
  add_named_directory(kind, deck, table, files);
  const std::vector<std::string> marks = make_task(kind)->marks_of_folders();
  for_each_text(table, [&](const std::string& text, int line) {
    if (text.empty() || text.size() > kNameBytes || text.find('\n') != std::string::npos) return;
    const fs::path named = fs::path(text).lexically_normal();
    std::error_code error;
    const fs::path path = named.is_absolute() ? named : deck.parent_path() / named;
    const auto status = fs::symlink_status(path, error);
    if (error || !fs::exists(status)) return;
    if (fs::is_directory(status))
      add_marked_folder(marks, path, named, line, files);
    else
      files.push_back({.path = named, .line = line});
  });
  std::set<fs::path> seen;
  std::erase_if(files, [&](const DeckFile& file) { return !seen.insert(file.path).second; });
  return files;
}

}  // namespace

std::vector<DeckFile> deck_files(const std::string& kind, const fs::path& deck) {
  make_task(kind);  // refuses an unknown kind before any file is read
  std::error_code error;
  const fs::file_status status = fs::status(deck, error);
  if (!fs::exists(status)) throw InvalidInput("no deck " + quoted(deck));
  if (!fs::is_directory(status)) return files_of_toml(kind, deck);
  std::vector<DeckFile> files;
  for (const fs::path& name : matching_files(kind, deck))
    files.push_back({.path = name, .line = 0});
  return files;
}

nlohmann::json describe_deck_files(const std::string& kind, const fs::path& deck) {
  nlohmann::json files = nlohmann::json::array();
  for (const DeckFile& file : deck_files(kind, deck)) {
    nlohmann::json entry{{"path", file.path.string()}};
    if (file.line > 0) entry["line"] = file.line;
    files.push_back(std::move(entry));
  }
  return {{"schema", "quasi.files.v1"}, {"kind", kind}, {"files", std::move(files)}};
}

}  // namespace quasi
