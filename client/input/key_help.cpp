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

/// Returns the keys in backticks outside of parentheses.
std::vector<std::string> keys_of_cell(const std::string& cell) {
  static const std::regex kName(R"(^(\.?[A-Za-z_][\w.]*)(\(.*\))?$)");
  std::vector<std::string> found;
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
        key = found.back().substr(0, found.back().rfind('.')) + key;
      found.push_back(key);
    }
    i = end;
  }
  return found;
}

void add_row(const KeyEntry& place, const std::vector<std::string>& titles, std::size_t key_column,
             const std::vector<std::string>& cells, std::vector<KeyEntry>& entries) {
  KeyEntry entry = place;
  entry.keys = keys_of_cell(cells[key_column]);
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
    if (line.starts_with("##"))
      place.heading = without_markdown(trimmed_cell(line.substr(line.find(' ') + 1)));
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
