#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quasi::thermal {

/// One value of a namelist assignment, as text; an absent text is a null value (",,") and leaves
/// the element as it was.
struct NamelistValue {
  std::optional<std::string> text;
  bool quoted = false;
};

/// One subscript: a single index, a range, or ':' (both ends absent). One-based, inclusive.
struct NamelistSubscript {
  std::optional<int> first;
  std::optional<int> last;
  bool single = false;
};

/// `key(subscripts) = values`, keys in lower case.
struct NamelistAssignment {
  std::string group;  ///< lower case, without '&'; "" for a setting
  std::string key;
  std::vector<NamelistSubscript> subscripts;
  std::vector<NamelistValue> values;
  std::string where;      ///< "CONTROL line 12", for messages
  bool complete = false;  ///< an array without subscripts takes all its values; a Fortran namelist
                          ///< may give fewer
};

/// Parses Fortran namelist groups (docs/theory/thermal.md 1.1): case-insensitive keys, blanks,
/// tabs, commas and newlines separate, '!' comments, repeat counts, null values, quoted strings,
/// array sections.
/// @throws InvalidInput naming the line.
std::vector<NamelistAssignment> parse_namelists(std::string_view text, const std::string& file);

/// Parses one `key=value` in the same syntax.
NamelistAssignment parse_namelist_setting(std::string_view key, std::string_view value);

// Values to types. @throws InvalidInput naming `where`, the key and the text.
double namelist_real(const NamelistValue& value, const NamelistAssignment& assignment);
long long namelist_integer(const NamelistValue& value, const NamelistAssignment& assignment);
bool namelist_logical(const NamelistValue& value, const NamelistAssignment& assignment);

}  // namespace quasi::thermal
