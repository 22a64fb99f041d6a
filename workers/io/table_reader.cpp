#include "workers/io/table_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/io/input_path.hpp"
#include "workers/io/key_notes.hpp"
#include "workers/io/settings.hpp"

namespace quasi {

namespace {

/// Puts a word in quotes, as TOML does.
std::string quoted(const std::string& word) {
  std::string text = "\"";
  for (const char c : word) text += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return text + '"';
}

/// Returns the origin of a key's value: `--set key=value`, else `file`. The origin of a table made
/// by a setting holds for its contents.
std::string origin_of(const toml::node* node, const std::string& file) {
  while (node != nullptr && !node->source().path && node->is_table() && !node->as_table()->empty())
    node = &node->as_table()->begin()->second;
  const bool is_from_setting =
      node != nullptr && node->source().path && node->source().path->starts_with(kSettingOrigin);
  return is_from_setting ? *node->source().path : file;
}

void apply_setting(toml::table* root, const Setting& setting) {
  toml::table* table = root;
  std::string key = setting.key;
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.')) {
    const std::string head = key.substr(0, dot);
    if (!table->contains(head)) table->insert(head, toml::table{});
    table = table->get(head)->as_table();
    if (table == nullptr)
      throw InvalidInput("setting '" + setting.key + "': '" + head + "' is not a table");
    key = key.substr(dot + 1);
  }
  const std::string origin = std::string(kSettingOrigin) + setting.key + "=" + setting.value;
  toml::table parsed;
  try {
    parsed = toml::parse("x = " + setting.value, origin);
  } catch (const toml::parse_error&) {
    try {
      parsed = toml::parse("x = " + quoted(setting.value),
                           origin);  // a bare word such as sigma.method=cohsex
    } catch (const toml::parse_error& failure) {
      throw InvalidInput(origin + ": " + std::string(failure.description()));
    }
  }
  table->insert_or_assign(key, std::move(*parsed.get("x")));
}

}  // namespace

toml::table parse_toml(const std::string& text, const std::string& where,
                       const std::vector<Setting>& settings) {
  toml::table root;
  try {
    root = toml::parse(text, where);
  } catch (const toml::parse_error& failure) {
    throw InvalidInput(where + ", line " + std::to_string(failure.source().begin.line) + ": " +
                       std::string(failure.description()));
  }
  for (const Setting& setting : settings) apply_setting(&root, setting);
  return root;
}

DeckText read_deck_text(const std::filesystem::path& path) {
  constexpr std::size_t kMostBytes = std::size_t{16}
                                     << 20;  // large data belong into files that the deck names
  std::error_code none;
  DeckText deck{.file = std::filesystem::is_directory(path, none) ? path / "deck.toml" : path,
                .text = {}};
  std::ifstream in(input_file(deck.file), std::ios::binary);
  deck.text.resize(kMostBytes + 1);
  if (in) in.read(deck.text.data(), static_cast<std::streamsize>(deck.text.size()));
  if (!in.is_open() || in.bad())
    throw InvalidInput("deck '" + deck.file.string() + "' does not exist or cannot be read");
  deck.text.resize(static_cast<std::size_t>(in.gcount()));
  if (deck.text.size() > kMostBytes)
    throw InvalidInput("deck '" + deck.file.string() +
                       "' has more than 16 MiB; give the deck, not one of its data files");
  return deck;
}

std::string shown(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

namespace {

/// Formats the value in TOML notation, on one line.
std::string shown(const toml::node& node) {
  if (!node.is_value()) return node.is_table() ? "a table" : "a list";
  std::ostringstream out;
  out << toml::node_view<const toml::node>(node);
  return out.str();
}

}  // namespace

void TableReader::fail(const std::string& key, const std::string& problem) const {
  throw InvalidInput(origin_of(table_ == nullptr ? nullptr : table_->get(key), where_) + ": " +
                     name(key) + " " + problem);
}

const toml::node* TableReader::find(const std::string& key) {
  known_.push_back(key);
  return table_ == nullptr ? nullptr : table_->get(key);
}

bool TableReader::has(const std::string& key) const {
  return table_ != nullptr && table_->contains(key);
}

double TableReader::number(const std::string& key, double fallback, double low, double high) {
  const bool is_value = fallback >= low && fallback <= high;
  KeyNotes::add({name(key), "number", is_value ? shown(fallback) : "", range_text(low, high)});
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  if (!node->is_number()) fail(key, "must be a number, got " + shown(*node));
  const double value = *node->value<double>();
  if (!std::isfinite(value)) fail(key, "must be finite");
  if (value < low || value > high)
    fail(key, "= " + shown(value) + " is outside " + shown(low) + " … " + shown(high));
  return value;
}

int TableReader::integer(const std::string& key, int fallback, int low, int high) {
  const bool is_value = fallback >= low && fallback <= high;
  KeyNotes::add(
      {name(key), "whole number", is_value ? std::to_string(fallback) : "", range_text(low, high)});
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  if (!node->is_integer()) fail(key, "must be a whole number, got " + shown(*node));
  const auto value = *node->value<std::int64_t>();
  if (value < low || value > high)
    fail(key, "= " + std::to_string(value) + " is outside " + std::to_string(low) + " … " +
                  std::to_string(high));
  return static_cast<int>(value);
}

bool TableReader::boolean(const std::string& key, bool fallback) {
  KeyNotes::add({name(key), "true or false", fallback ? "true" : "false", ""});
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  if (!node->is_boolean()) fail(key, "must be true or false, got " + shown(*node));
  return *node->value<bool>();
}

std::string TableReader::text(const std::string& key, const std::string& fallback) {
  KeyNotes::add({name(key), "text", fallback.empty() ? "" : quoted(fallback), ""});
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  if (!node->is_string()) fail(key, "must be text in quotes, got " + shown(*node));
  return *node->value<std::string>();
}

std::optional<std::string> TableReader::word(const std::string& key) {
  KeyNotes::add({name(key), "number or text", "", ""});
  const toml::node* node = find(key);
  if (node == nullptr || !node->is_string()) return {};
  return node->value<std::string>();
}

std::size_t TableReader::choice(const std::string& key, std::size_t fallback,
                                const std::vector<std::string>& choices) {
  KeyNotes::add({name(key), "text", quoted(choices[fallback]), choices_text(choices)});
  const std::string value = text(key, choices[fallback]);
  const auto found = std::find(choices.begin(), choices.end(), value);
  if (found == choices.end()) {
    const std::string nearest = nearest_name(value, choices);
    fail(key, "= \"" + value + "\" is not one of " + choices_text(choices) +
                  (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?"));
  }
  return static_cast<std::size_t>(found - choices.begin());
}

std::optional<std::vector<double>> TableReader::numbers(const std::string& key, double low,
                                                        double high) {
  KeyNotes::add({name(key), "number or list of numbers", "", range_text(low, high)});
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  std::vector<double> values;
  const auto take = [&](const toml::node& entry) {
    if (!entry.is_number()) fail(key, "must hold numbers only");
    const double value = *entry.value<double>();
    if (!std::isfinite(value)) fail(key, "must hold finite numbers only");
    if (value < low || value > high)
      fail(key, "holds " + shown(value) + ", outside " + shown(low) + " … " + shown(high));
    values.push_back(value);
  };
  if (const toml::array* list = node->as_array()) {
    for (const toml::node& entry : *list) take(entry);
  } else {
    take(*node);
  }
  return values;
}

std::optional<std::vector<std::string>> TableReader::texts(const std::string& key) {
  KeyNotes::add({name(key), "list of texts", "", ""});
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  const toml::array* list = node->as_array();
  if (list == nullptr) fail(key, "must be a list of texts");
  std::vector<std::string> values;
  for (const toml::node& entry : *list) {
    if (!entry.is_string()) fail(key, "must be a list of texts");
    values.push_back(*entry.value<std::string>());
  }
  return values;
}

std::optional<std::vector<std::pair<double, double>>> TableReader::pairs(const std::string& key) {
  KeyNotes::add({name(key), "list of pairs", "", ""});
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  const toml::array* list = node->as_array();
  if (list == nullptr) fail(key, "must be a list of pairs, e.g. [[0.6, 0.05], [0.6, 0.4]]");
  std::vector<std::pair<double, double>> values;
  for (const toml::node& entry : *list) {
    const toml::array* pair = entry.as_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_number() || !(*pair)[1].is_number())
      fail(key, "must be a list of pairs of numbers, e.g. [[0.6, 0.05], [0.6, 0.4]]");
    values.emplace_back(*(*pair)[0].value<double>(), *(*pair)[1].value<double>());
    if (!std::isfinite(values.back().first) || !std::isfinite(values.back().second))
      fail(key, "must hold finite numbers only");
  }
  return values;
}

std::optional<std::vector<std::vector<double>>> TableReader::vectors(const std::string& key,
                                                                     std::size_t length) {
  KeyNotes::add({name(key), "list of lists of " + std::to_string(length) + " numbers", "", ""});
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  const std::string wanted =
      "must be a list of lists of " + std::to_string(length) + " numbers, e.g. [[0, 0, 0]]";
  const toml::array* list = node->as_array();
  if (list == nullptr) fail(key, wanted);
  std::vector<std::vector<double>> values;
  for (const toml::node& entry : *list) {
    const toml::array* row = entry.as_array();
    if (row == nullptr || row->size() != length) fail(key, wanted);
    values.emplace_back();
    for (const toml::node& number : *row) {
      if (!number.is_number() || !std::isfinite(*number.value<double>())) fail(key, wanted);
      values.back().push_back(*number.value<double>());
    }
  }
  return values;
}

const toml::table* TableReader::table(const std::string& key) {
  const toml::node* node = find(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) fail(key, "must be a table: write [" + name(key) + "]");
  return node->as_table();
}

std::vector<const toml::table*> TableReader::tables(const std::string& key) {
  const toml::node* node = find(key);
  std::vector<const toml::table*> result;
  if (node == nullptr) return result;
  const toml::array* list = node->as_array();
  if (list == nullptr) fail(key, "must be an array of tables: write [[" + name(key) + "]]");
  for (const toml::node& entry : *list) {
    if (!entry.is_table()) fail(key, "must be an array of tables: write [[" + name(key) + "]]");
    result.push_back(entry.as_table());
  }
  return result;
}

void TableReader::finish() const {
  if (table_ == nullptr) return;
  for (const auto& [key, value] : *table_) {
    const std::string text(key.str());
    if (std::find(known_.begin(), known_.end(), text) != known_.end()) continue;
    const std::string origin = origin_of(&value, where_);
    throw InvalidInput(unknown_key_message(
        text, origin + (path_.empty() || origin != where_ ? "" : ", table [" + path_ + "]"),
        known_));
  }
}

}  // namespace quasi
