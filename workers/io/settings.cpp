#include "workers/io/settings.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "workers/backend/error.hpp"

namespace quasi {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t up = row[j + 1];
      row[j + 1] = std::min({up + 1, row[j] + 1, diagonal + (same(a[i], b[j]) ? 0u : 1u)});
      diagonal = up;
    }
  }
  return row.back();
}

}  // namespace

Setting parse_setting(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw InvalidInput("setting '" + std::string(text) + "' is not of the form key=value");
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 2) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string unknown_key_message(std::string_view key, std::string_view where,
                                const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(key, known);
  std::string message = "unknown key '" + std::string(key) + "' in " + std::string(where);
  if (!nearest.empty()) message += "; did you mean '" + nearest + "'?";
  return message;
}

}  // namespace quasi
