#include "client/views/figures.hpp"

#include <algorithm>

namespace quasi::client {
namespace {

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

void Csv::add(const std::vector<std::pair<std::string, std::string>>& cells) {
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
