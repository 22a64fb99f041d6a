// Tests that the tables of keys in docs/reference state what the parsers read. With
// QUASI_UPDATE_REFERENCE=1 the test writes types, units, defaults and ranges into the tables.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/service/reference/parser_keys.hpp"
#include "tests/support/reference_data.hpp"

namespace quasi::test {
namespace {

constexpr const char* kHeader = "| key | type | unit | default | range | meaning |";

/// A page, or the part of it below one heading, and the keys that it must list.
struct KeyPage {
  std::string file;
  std::string heading;  ///< "": the whole page
  std::vector<ParserKey> keys;
};

std::vector<KeyPage> key_pages() {
  return {{"docs/reference/thermal_keys.md", "", keys_of_deck("thermal")},
          {"docs/reference/mosfet_keys.md", "", keys_of_deck("mosfet")},
          {"docs/reference/gw_keys.md", "", keys_of_deck("gw")},
          {"docs/reference/operations.md", "### Configuration of the server", keys_of_server()},
          {"docs/reference/operations.md", "### Configuration of the worker", keys_of_worker()}};
}

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(source_dir() / file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Holds one row of a table of keys: its line and the texts of its cells.
struct Row {
  std::size_t line;
  std::array<std::string, 6> cells;
};

enum Column : std::size_t { kKey, kType, kUnit, kDefault, kRange, kMeaning };

/// Splits a row at the bars that no backslash precedes.
std::array<std::string, 6> cells_of(const std::string& line) {
  std::array<std::string, 6> cells;
  std::size_t at = 0;
  for (std::size_t i = 1; i + 1 < line.size() && at < cells.size(); ++i) {
    if (line[i] == '|' && line[i - 1] != '\\')
      ++at;
    else
      cells[at] += line[i];
  }
  for (std::string& cell : cells) {
    cell.erase(0, cell.find_first_not_of(' '));
    cell.erase(cell.find_last_not_of(' ') + 1);
  }
  return cells;
}

std::vector<Row> rows_of(const std::vector<std::string>& lines, const std::string& heading) {
  std::vector<Row> rows;
  bool is_here = heading.empty(), is_table = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!heading.empty() && lines[i].starts_with("#")) is_here = lines[i] == heading;
    if (lines[i] == kHeader)
      is_table = true;
    else if (!lines[i].starts_with("|"))
      is_table = false;
    else if (is_here && is_table && lines[i].starts_with("| `"))
      rows.push_back({i, cells_of(lines[i])});
  }
  return rows;
}

/// Returns the key of a row as parsers spell it: without backticks and subscripts.
std::string key_of(const Row& row) {
  std::string key = std::regex_replace(row.cells[kKey], std::regex("`|\\(.*\\)"), "");
  std::transform(key.begin(), key.end(), key.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return key;
}

/// Returns a text of a parser as pages show it: words in backticks, 1e20 in place of 1e+20.
std::string shown_on_page(const std::string& text) {
  const std::string words = std::regex_replace(text, std::regex("\"[^\"]*\""), "`$&`");
  return std::regex_replace(words, std::regex("e\\+?(-?)0*(\\d)"), "e$1$2");
}

/// Returns the cells of a row with what the parser tells in place of what the page says.
std::array<std::string, 6> cells_by_parser(const Row& row, const ParserKey& key) {
  std::array<std::string, 6> cells = row.cells;
  const auto fill = [&](Column column, const std::string& text) {
    if (!text.empty()) cells[column] = text;
  };
  fill(kType, key.note.type);
  fill(kUnit, key.unit);
  fill(kDefault, shown_on_page(key.note.fallback));
  fill(kRange, shown_on_page(key.note.range));
  return cells;
}

std::string line_of(const std::array<std::string, 6>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += cell.empty() ? " |" : " " + cell + " |";
  return line;
}

TEST(ReferencePages, EveryKeyHasARowAndEveryRowAKey) {
  for (const KeyPage& page : key_pages()) {
    std::multiset<std::string> documented;
    for (const Row& row : rows_of(lines_of(page.file), page.heading))
      documented.insert(key_of(row));
    std::set<std::string> read;
    for (const ParserKey& key : page.keys) read.insert(key.note.key);
    // A parser that is read in another way than this test knows would give few keys.
    EXPECT_GE(read.size(), 25u) << page.file << ' ' << page.heading;
    for (const std::string& key : read)
      EXPECT_EQ(documented.count(key), 1u) << page.file << " must have one row for " << key;
    for (const std::string& key : documented)
      EXPECT_TRUE(read.contains(key))
          << page.file << " has a row for " << key << ", which no parser reads";
  }
}

TEST(ReferencePages, TypesUnitsDefaultsAndRangesAreThoseOfTheParsers) {
  const bool updates = std::getenv("QUASI_UPDATE_REFERENCE") != nullptr;
  for (const KeyPage& page : key_pages()) {
    std::vector<std::string> lines = lines_of(page.file);
    for (const Row& row : rows_of(lines, page.heading)) {
      const auto key = std::find_if(page.keys.begin(), page.keys.end(), [&](const ParserKey& each) {
        return each.note.key == key_of(row);
      });
      if (key == page.keys.end()) continue;
      const std::string wanted = line_of(cells_by_parser(row, *key));
      if (updates) lines[row.line] = wanted;
      EXPECT_EQ(lines[row.line], wanted)
          << page.file << ": QUASI_UPDATE_REFERENCE=1 reference_pages_test writes the row";
    }
    if (!updates) continue;
    std::ofstream out(source_dir() / page.file);
    for (const std::string& line : lines) out << line << '\n';
  }
}

TEST(ReferencePages, EveryRowStatesATypeADefaultAndAMeaning) {
  for (const KeyPage& page : key_pages())
    for (const Row& row : rows_of(lines_of(page.file), page.heading))
      for (const Column column : {kType, kDefault, kMeaning})
        EXPECT_FALSE(row.cells[column].empty()) << page.file << ": the row of " << row.cells[kKey]
                                                << " has no " << cells_of(kHeader)[column];
}

/// The client reads its few keys one by one, so its source tells their names.
TEST(ReferencePages, TheClientReadsTheKeysOfItsPage) {
  std::ifstream file(source_dir() / "client/input/config.cpp");
  const std::string code{std::istreambuf_iterator<char>(file), {}};
  std::set<std::string> read, documented;
  static const std::regex kComparison("(?:key|name) == \"(\\w+)\"");
  for (std::sregex_iterator match(code.begin(), code.end(), kComparison), end; match != end;
       ++match)
    read.insert((*match)[1]);
  for (const Row& row : rows_of(lines_of("docs/reference/cli.md"), "## Configuration")) {
    const std::string key = key_of(row);
    documented.insert(key.substr(key.rfind('.') + 1));
  }
  documented.insert("context");  // the table of all others
  EXPECT_EQ(documented, read);
}

}  // namespace
}  // namespace quasi::test
