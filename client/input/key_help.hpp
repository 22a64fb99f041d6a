#pragma once

#include <string>
#include <utility>
#include <vector>

namespace quasi::client {

/// Holds the headings and tables of one page of docs/reference, which the build embeds.
struct ReferencePage {
  std::string name;  ///< file name without its ending
  std::string text;
};

/// Holds one row of a table of keys.
struct KeyEntry {
  std::string page;               ///< name of the reference page
  std::string heading;            ///< heading above the table
  std::vector<std::string> keys;  ///< keys of the row with their tables, e.g. "mesh.nx"
  /// Holds title and plain text of the columns, without empty ones.
  std::vector<std::pair<std::string, std::string>> columns;
};

/// Returns the tables of all reference pages, sorted by name.
const std::vector<ReferencePage>& reference_pages();

/// Returns the entries of the tables of keys and of variables in `page`.
std::vector<KeyEntry> key_entries(const ReferencePage& page);

/// Returns what the reference pages say about a key of a deck or of a configuration.
/// @param name  the key alone ("nx"), with its table ("mesh.nx"), or also with the first word of
///              its page in front; upper and lower case are equal
/// @return the entries as text for a terminal; empty if no page names the key
std::string key_help(const std::string& name);

/// Returns the keys of all pages, each alone and with its table, without repetitions.
std::vector<std::string> documented_keys();

}  // namespace quasi::client
