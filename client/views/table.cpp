#include "client/views/table.hpp"

#include <algorithm>
#include <cassert>

#include "client/views/readable.hpp"

namespace quasi::client {

void Table::add(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  for (std::string& cell : cells) {
    cell = printable(cell);
    std::replace(cell.begin(), cell.end(), '\n', ' ');
  }
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  return widths;
}

void Table::fit(std::size_t width, const std::vector<std::size_t>& order) {
  const std::vector<std::size_t> own = widths();
  const auto length = [&] {
    std::size_t sum = 0;
    for (std::size_t c = 0; c < own.size(); ++c)
      if (!hidden_.contains(c)) sum += own[c] + (sum > 0 ? 2 : 0);
    return sum;
  };
  for (const std::size_t column : order) {
    if (length() <= width) return;
    hidden_.insert(column);
  }
}

std::string Table::padded(const std::string& cell, std::size_t width, Align align,
                          bool last) const {
  const std::string space(width - display_width(cell), ' ');
  if (align == Align::kRight) return space + cell;
  return last ? cell : cell + space;
}

}  // namespace quasi::client
