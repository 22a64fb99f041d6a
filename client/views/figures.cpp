#include "client/views/figures.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace quasi::client {
namespace {

using Cells = std::vector<std::pair<std::string, std::string>>;

bool is_tensor(const Json& value) {
  return value.is_array() && value.size() == 3 &&
         std::all_of(value.begin(), value.end(), [](const Json& row) {
           return row.is_array() && row.size() == 3 &&
                  std::all_of(row.begin(), row.end(), [](const Json& x) { return x.is_number(); });
         });
}

bool is_aside(const std::string& key) {
  return key == "checks" || key == "warnings" || key == "seconds" || key == "deck_sha256";
}

void collect(const std::string& name, const Json& value, Cells& cells) {
  if (is_tensor(value)) {
    constexpr const char* kAxes[] = {".xx", ".yy", ".zz"};
    for (std::size_t i = 0; i < 3; ++i) cells.emplace_back(name + kAxes[i], value[i][i].dump());
  } else if (value.is_array()) {
    if (value.size() == 1) collect(name, value.front(), cells);
  } else if (value.is_object()) {
    for (const auto& [key, part] : value.items())
      if (!is_aside(key)) collect(name.empty() ? key : name + "." + key, part, cells);
  } else if (value.is_string()) {
    cells.emplace_back(name, value.get<std::string>());
  } else if (!value.is_null()) {
    cells.emplace_back(name, value.dump());
  }
}

std::string cell_text(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? "," : "") + cell_text(cells[i]);
  return line + "\n";
}

}  // namespace

Cells figures_of(const Json& document) {
  Cells cells;
  const auto summary = document.find("summary");
  const bool is_whole = summary != document.end() && summary->is_object();
  if (document.is_object()) collect("", is_whole ? *summary : document, cells);
  return cells;
}

void Csv::add(const Cells& cells) {
  std::vector<std::string>& row = rows_.emplace_back();
  for (const auto& [name, value] : cells) {
    const auto known = std::find(columns_.begin(), columns_.end(), name);
    const auto column = static_cast<std::size_t>(known - columns_.begin());
    if (known == columns_.end()) columns_.push_back(name);
    if (row.size() <= column) row.resize(column + 1);
    row[column] = value;
  }
}

std::string Csv::text() const {
  std::string text = csv_line(columns_);
  for (std::vector<std::string> row : rows_) {
    row.resize(columns_.size());
    text += csv_line(row);
  }
  return text;
}

}  // namespace quasi::client
