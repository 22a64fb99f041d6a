#include "workers/thermal/input/control/key_table.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/io/key_notes.hpp"
#include "workers/io/settings.hpp"
#include "workers/io/table_reader.hpp"
#include "workers/thermal/input/control/namelist_section.hpp"

namespace quasi::thermal {
namespace {

using Value = NamelistValue;
using Assignment = NamelistAssignment;

constexpr std::size_t kMaxListLength = 1000;

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

/// Returns the default, or "" if it is no value that a deck may give.
template <class Number>
std::string default_text(Number value, double low, double high) {
  const auto number = static_cast<double>(value);
  return number >= low && number <= high ? shown(number) : "";
}

}  // namespace

void KeyTable::add(const std::string& group, const std::string& name, Store store) {
  KeyNotes::add({name, "", "", ""});
  keys_[name] = {group, std::move(store)};
}

void KeyTable::add_extent(const std::string& name, int& target, int low, int high) {
  KeyNotes::add({name, "whole number", default_text(target, low, high), range_text(low, high)});
  keys_[name] = {"allocations",
                 [&target, low, high](const Assignment& a) { target = scalar_int(a, low, high); },
                 true};
}

void KeyTable::flag(const std::string& group, const std::string& name, bool& target) {
  KeyNotes::add({name, "true or false", target ? "true" : "false", ""});
  add(group, name, [&target](const Assignment& a) { target = namelist_logical(scalar(a), a); });
}

void KeyTable::integer(const std::string& group, const std::string& name, int& target, int low,
                       int high) {
  KeyNotes::add({name, "whole number", default_text(target, low, high), range_text(low, high)});
  add(group, name,
      [&target, low, high](const Assignment& a) { target = scalar_int(a, low, high); });
}

void KeyTable::at_least(const std::string& group, const std::string& name, double& target,
                        double low) {
  KeyNotes::add({name, "number", default_text(target, low, HUGE_VAL), "≥ " + shown(low)});
  add(group, name, [&target, low](const Assignment& a) { target = scalar_real(a, low); });
}

void KeyTable::positive(const std::string& group, const std::string& name, double& target) {
  KeyNotes::add({name, "number", target > 0.0 ? shown(target) : "", "> 0"});
  add(group, name, [&target](const Assignment& a) { target = scalar_positive(a); });
}

void KeyTable::index3(const std::string& group, const std::string& name, Index3& target, int high) {
  KeyNotes::add({name, "3 whole numbers", "", range_text(1, high)});
  add(group, name, [&target, high](const Assignment& a) {
    assign_section(a, {3}, [&](std::size_t i, const Value& v) {
      const long long value = namelist_integer(v, a);
      if (value < 1 || value > high)
        fail(a,
             "must lie between 1 and " + std::to_string(high) + ", got " + std::to_string(value));
      target[i] = static_cast<int>(value);
    });
  });
}

void KeyTable::samples(const std::string& name, std::int64_t& target) {
  KeyNotes::add({name, "whole number", std::to_string(target), "-1, ≥ 1"});
  add("parameters", name, [&target](const Assignment& a) {
    target = namelist_integer(scalar(a), a);
    if (target != -1 && target < 1)
      fail(a, "must be -1 (exact) or at least 1, got " + std::to_string(target));
  });
}

void KeyTable::word(const std::string& name, std::string& target,
                    std::vector<std::string> choices) {
  KeyNotes::add({name, "text", '"' + target + '"', choices_text(choices)});
  add("", name, [&target, choices = std::move(choices)](const Assignment& a) {
    const std::string text = lower_case(*scalar(a).text);
    if (std::find(choices.begin(), choices.end(), text) == choices.end())
      fail(a, "must be one of " + joined(choices) + ", got '" + text + "'");
    target = text;
  });
}

void KeyTable::list_above_zero(const std::string& name, std::vector<double>& target) {
  list(name, target, false);
}

void KeyTable::list_from_zero(const std::string& name, std::vector<double>& target) {
  list(name, target, true);
}

void KeyTable::list(const std::string& name, std::vector<double>& target, bool zero_allowed) {
  KeyNotes::add({name, "list of numbers", "", zero_allowed ? "≥ 0" : "> 0"});
  add("", name, [&target, zero_allowed](const Assignment& a) {
    target = real_list(a);
    for (const double value : target)
      if (value < 0.0 || (value == 0.0 && !zero_allowed))
        fail(a, (zero_allowed ? "must be at least 0, got " : "must be above 0, got ") +
                    number_text(value));
    if (target.size() > kMaxListLength)
      fail(a, "lists more than " + std::to_string(kMaxListLength) + " values");
  });
}

namespace {

/// Returns the message for an unknown key. Words of phono3py get the key that means the same.
std::string unknown_key(const Assignment& a, const std::vector<std::string>& known) {
  static const std::map<std::string, std::string> kWordsOfPhono3py{
      {"mesh", "ngrid"}, {"tmin", "t_min"}, {"tmax", "t_max"}, {"tstep", "t_step"}, {"ts", "t"}};
  const auto same = kWordsOfPhono3py.find(a.key);
  if (same == kWordsOfPhono3py.end() ||
      std::find(known.begin(), known.end(), same->second) == known.end())
    return unknown_key_message(a.key, a.where, known);
  return "unknown key '" + a.key + "' in " + a.where + "; phono3py's '" + a.key + "' is '" +
         same->second + "' here";
}

}  // namespace

std::vector<std::string> KeyTable::names() const {
  std::vector<std::string> result;
  for (const auto& [name, key] : keys_) result.push_back(name);
  return result;
}

void KeyTable::read_extents(const std::vector<Assignment>& assignments) const {
  for (const Assignment& a : assignments) {
    const auto found = keys_.find(a.key);
    if (found != keys_.end() && found->second.is_extent) found->second.store(a);
  }
}

void KeyTable::store(const std::vector<Assignment>& assignments,
                     std::map<std::string, std::string>& given_at) const {
  for (const bool extents : {true, false})
    for (const Assignment& a : assignments) {
      const auto found = keys_.find(a.key);
      if (found == keys_.end()) throw InvalidInput(unknown_key(a, names()));
      const Key& key = found->second;
      if (!key.group.empty() && !a.group.empty() && key.group != a.group)
        fail(a, "belongs in group '&" + key.group + "', not in '&" + a.group + "'");
      if (key.is_extent == extents) key.store(a);
      if (!extents) given_at[a.key] = a.where;
    }
}

std::vector<double> real_list(const NamelistAssignment& a) {
  if (!a.subscripts.empty()) fail(a, "takes no subscripts");
  std::vector<double> values;
  for (const Value& v : a.values) {
    if (!v.text) fail(a, "has an empty value in its list");
    values.push_back(namelist_real(v, a));
  }
  return values;
}

}  // namespace quasi::thermal
