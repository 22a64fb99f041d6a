#pragma once

#include <set>
#include <string>
#include <vector>

namespace quasi::client {

/// Plain text in columns with two spaces between them, without lines; the header is in capitals.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Adds one row, a cell for each column.
  void add(std::vector<std::string> cells);

  /// Hides columns in this order until a line fits the width. Later columns keep their numbers.
  void fit(std::size_t width, const std::vector<std::size_t>& order);

  /// The lines, without trailing blanks. `style` is called with (row, column, padded text) for the
  /// body's cells; the header is row -1.
  template <typename Style>
  std::string text(Style&& style) const;
  std::string text() const {
    return text([](int, std::size_t, std::string cell) { return cell; });
  }

  std::size_t rows() const { return rows_.size(); }

 private:
  std::vector<std::size_t> widths() const;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::set<std::size_t> hidden_;
  std::string padded(const std::string& cell, std::size_t width, Align align, bool last) const;
};

template <typename Style>
std::string Table::text(Style&& style) const {
  const std::vector<std::size_t> width = widths();
  std::string out;
  const auto line = [&](int row, const std::vector<std::string>& cells) {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (hidden_.contains(c)) continue;
      const bool last = c + 1 == columns_.size();
      out += style(row, c, padded(cells[c], width[c], columns_[c].align, last));
      if (!last) out += "  ";
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    out += '\n';
  };
  std::vector<std::string> header;
  for (const Column& column : columns_) header.push_back(column.title);
  line(-1, header);
  for (std::size_t r = 0; r < rows_.size(); ++r) line(static_cast<int>(r), rows_[r]);
  return out;
}

}  // namespace quasi::client
