#pragma once

#include <toml++/toml.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workers/io/settings.hpp"

namespace quasi {

/// Reads one TOML table key by key, records the keys that were read, and refuses all others. Every
/// error names the key with its path.
class TableReader {
 public:
  /// Reads `table`. If `table` is null, every key takes its default.
  TableReader(const toml::table* table, std::string path, std::string where)
      : table_(table), path_(std::move(path)), where_(std::move(where)) {}

  bool has(const std::string& key) const;
  /// Returns a finite number within [low, high].
  double number(const std::string& key, double fallback, double low, double high);
  int integer(const std::string& key, int fallback, int low, int high);
  bool boolean(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);
  /// Returns the position of the value in `choices`.
  std::size_t choice(const std::string& key, std::size_t fallback,
                     const std::vector<std::string>& choices);
  /// Returns a list of finite numbers within [low, high]. A single number is a list of one.
  std::optional<std::vector<double>> numbers(const std::string& key, double low, double high);
  std::optional<std::vector<std::string>> texts(const std::string& key);
  /// Returns [[a, b], …] with finite entries.
  std::optional<std::vector<std::pair<double, double>>> pairs(const std::string& key);
  /// Returns a list of lists of `length` finite numbers each, e.g. k-points.
  std::optional<std::vector<std::vector<double>>> vectors(const std::string& key,
                                                          std::size_t length);
  /// Returns a table, or null if the key is absent.
  const toml::table* table(const std::string& key);
  /// Returns an array of tables, empty if the key is absent.
  std::vector<const toml::table*> tables(const std::string& key);
  /// Returns a text or a number under one key, e.g. wmax_ev = "auto".
  std::optional<std::string> word(const std::string& key);

  /// @throws InvalidInput for the first key that was not read.
  void finish() const;
  std::string name(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;

 private:
  const toml::node* find(const std::string& key);
  const toml::table* table_;
  std::string path_;
  std::string where_;
  std::vector<std::string> known_;
};

/// Parses a deck and inserts the user's settings: `value` under each dotted `key`. Missing tables
/// are made. @throws InvalidInput naming file and line.
toml::table parse_toml(const std::string& text, const std::string& where,
                       const std::vector<Setting>& settings);

/// File of a deck and its contents.
struct DeckText {
  std::filesystem::path file;
  std::string text;
};
/// Reads the TOML deck at `path`, which is the file or a directory with deck.toml. @throws
/// InvalidInput if it does not exist, cannot be read, or has more than 16 MiB
DeckText read_deck_text(const std::filesystem::path& path);

/// Formats a number for messages in the shortest form that reads back to the same value.
std::string shown(double value);

}  // namespace quasi
