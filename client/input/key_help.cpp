#include "client/input/key_help.hpp"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <sstream>

namespace quasi::client {
namespace {

std::string trimmed_cell(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// Splits a row at the bars that no backslash precedes.
std::vector<std::string> cells_of_row(const std::string& row) {
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (row[i] == '\\' && i + 1 < row.size() && row[i + 1] == '|') {
      cell += row[++i];
    } else if (row[i] == '|') {
      cells.push_back(trimmed_cell(cell));
      cell.clear();
    } else {
      cell += row[i];
    }
  }
  return cells;
}

/// Removes the marks of Markdown and keeps the text of links.
std::string without_markdown(const std::string& text) {
  static const std::regex kLink(R"(\[([^\]]+)\]\([^)]*\))");
  std::string plain = std::regex_replace(text, kLink, "$1");
  std::erase(plain, '`');
  return plain;
}

std::string lower_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Holds a key in backticks outside of parentheses, and its first character in the cell.
struct FoundKey {
  std::string name;
  std::size_t position;
};

std::vector<FoundKey> keys_of_cell(const std::string& cell) {
  static const std::regex kName(R"(^(\.?[A-Za-z_][\w.]*)(\(.*\))?$)");
  std::vector<FoundKey> found;
  int depth = 0;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    depth += cell[i] == '(' ? 1 : cell[i] == ')' ? -1 : 0;
    if (cell[i] != '`') continue;
    const auto end = cell.find('`', i + 1);
    if (end == std::string::npos) break;
    std::istringstream words(cell.substr(i + 1, end - i - 1));
    std::string word;
    while (depth == 0 && words >> word) {
      if (word.back() == ',') word.pop_back();
      std::smatch name;
      if (!std::regex_match(word, name, kName)) continue;
      std::string key = name[1];
      if (key[0] == '.' && !found.empty())
        key = found.back().name.substr(0, found.back().name.rfind('.')) + key;
      found.push_back({key, i});
    }
    i = end;
  }
  return found;
}

/// Returns the part of a list of keys that tells about the key at `begin`. A key that is followed
/// by another one at once shares the text of the other.
std::string part_of_list(const std::string& cell, std::size_t begin) {
  int depth = 0;
  bool told = false;
  for (std::size_t i = cell.find('`', begin + 1) + 1; i < cell.size(); ++i) {
    depth += cell[i] == '(' ? 1 : cell[i] == ')' ? -1 : 0;
    const bool separates = depth == 0 && (cell[i] == ',' || cell[i] == ';') &&
                           i + 2 < cell.size() && cell[i + 2] == '`';
    if (separates && told) return cell.substr(begin, i - begin);
    if (separates) i = cell.find('`', i + 3);
    told = told || !separates;
  }
  return cell.substr(begin);
}

/// Adds the entries of a row "| table | keys |", which lists all keys of a table of a deck.
void add_list(const KeyEntry& place, const std::vector<std::string>& cells,
              std::vector<KeyEntry>& entries) {
  static const std::regex kBrackets(R"(\[([\w.]+)\])"), kTable(R"(`(\w[\w.]*)`)");
  std::smatch match;
  std::string table;
  if (std::regex_search(cells[0], match, kBrackets) || std::regex_search(cells[0], match, kTable))
    table = match[1];
  for (const FoundKey& key : keys_of_cell(cells[1])) {
    // A name with its table refers to a key of another row.
    if (key.name.find('.') != std::string::npos) continue;
    KeyEntry entry = place;
    entry.keys = {table.empty() || key.name == table ? key.name : table + '.' + key.name};
    entry.columns = {{"table", without_markdown(cells[0])},
                     {"key", without_markdown(part_of_list(cells[1], key.position))}};
    entries.push_back(std::move(entry));
  }
  // A row without keys of its own tells about the tables in its first cell.
  for (const FoundKey& key : keys_of_cell(cells[0])) {
    KeyEntry entry = place;
    entry.keys = {key.name};
    entry.columns = {{"table", without_markdown(cells[0])}, {"keys", without_markdown(cells[1])}};
    entries.push_back(std::move(entry));
  }
}

void add_row(const KeyEntry& place, const std::vector<std::string>& titles, std::size_t key_column,
             const std::vector<std::string>& cells, std::vector<KeyEntry>& entries) {
  KeyEntry entry = place;
  for (const FoundKey& key : keys_of_cell(cells[key_column])) entry.keys.push_back(key.name);
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (!cells[i].empty())
      entry.columns.emplace_back(without_markdown(titles[i]), without_markdown(cells[i]));
  if (!entry.keys.empty()) entries.push_back(std::move(entry));
}

std::string entry_text(const KeyEntry& entry) {
  std::size_t width = 0;
  for (const auto& [title, text] : entry.columns) width = std::max(width, title.size());
  std::string result = entry.page + ": " + entry.heading + "\n";
  for (const auto& [title, text] : entry.columns)
    result += "  " + title + std::string(width + 2 - title.size(), ' ') + text + "\n";
  return result;
}

}  // namespace

std::vector<KeyEntry> key_entries(const ReferencePage& page) {
  std::vector<KeyEntry> entries;
  std::vector<std::string> titles;
  KeyEntry place{page.name, "", {}, {}};
  std::istringstream lines(page.text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("##")) place.heading = trimmed_cell(line.substr(line.find(' ') + 1));
    if (!line.starts_with('|')) {
      titles.clear();
      continue;
    }
    std::vector<std::string> cells = cells_of_row(line);
    if (titles.empty()) {
      titles = std::move(cells);
      continue;
    }
    if (cells.size() != titles.size() || cells[0].starts_with("---")) continue;
    const auto column = std::find_if(titles.begin(), titles.end(), [](const std::string& title) {
      return title == "key" || title == "variable";
    });
    if (column != titles.end())
      add_row(place, titles, static_cast<std::size_t>(column - titles.begin()), cells, entries);
    else if (titles.size() == 2 && titles[0] == "table" && titles[1].starts_with("keys"))
      add_list(place, cells, entries);
  }
  return entries;
}

std::string key_help(const std::string& name) {
  std::string result;
  for (const ReferencePage& page : reference_pages()) {
    std::string wanted = lower_letters(name);
    // A kind may have several pages: KIND and KIND_SUBJECT.
    const std::string kind = page.name.substr(0, page.name.find('_')) + '.';
    if (wanted.starts_with(kind)) wanted.erase(0, kind.size());
    for (const KeyEntry& entry : key_entries(page)) {
      const bool named = std::any_of(
          entry.keys.begin(), entry.keys.end(), [&wanted](const std::string& documented) {
            const std::string key = lower_letters(documented);
            return key == wanted || key.substr(key.rfind('.') + 1) == wanted;
          });
      if (named) result += (result.empty() ? "" : "\n") + entry_text(entry);
    }
  }
  return result;
}

std::vector<std::string> documented_keys() {
  std::set<std::string> names;
  for (const ReferencePage& page : reference_pages())
    for (const KeyEntry& entry : key_entries(page))
      for (const std::string& key : entry.keys) {
        names.insert(key);
        names.insert(key.substr(key.rfind('.') + 1));
      }
  return {names.begin(), names.end()};
}

}  // namespace quasi::client
