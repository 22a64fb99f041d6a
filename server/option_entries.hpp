#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/api/local_address.hpp"
#include "server/options_table.hpp"

/// Makers of the entries of options_table.cpp, one for each kind of value. `get` returns a
/// reference to the value in ServerOptions.
namespace quasi::server::option {

inline std::string shown(bool value) { return value ? "true" : "false"; }
inline std::string shown(const std::string& value) { return "\"" + value + "\""; }

/// The number without trailing zeros.
inline std::string shown_number(double value) {
  std::string number = std::to_string(value);
  while (number.ends_with('0')) number.pop_back();
  if (number.ends_with('.')) number.pop_back();
  return number;
}

[[noreturn]] inline void bad(const std::string& key, const std::string& value,
                             const std::string& rule) {
  throw BadConfiguration(key + ": must be " + rule + ", got \"" + value + "\"");
}

inline std::int64_t to_integer(const std::string& key, const std::string& text, std::int64_t least,
                               std::int64_t most) {
  const std::string rule =
      "a whole number in " + std::to_string(least) + "..." + std::to_string(most);
  std::size_t used = 0;
  std::int64_t value = 0;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    bad(key, text, rule);
  }
  if (used != text.size() || value < least || value > most) bad(key, text, rule);
  return value;
}

template <class Get>
Entry integer(std::string key, std::string help, std::int64_t least, std::int64_t most, Get get) {
  return {.key = key,
          .help = std::move(help),
          .unit = "N",
          .set =
              [key, least, most, get](ServerOptions& options, const std::string& text) {
                auto& target = get(options);
                target = static_cast<std::remove_reference_t<decltype(target)>>(
                    to_integer(key, text, least, most));
              },
          .show =
              [get](const ServerOptions& options) {
                return std::to_string(get(const_cast<ServerOptions&>(options)));
              }};
}

/// An entry for a duration. Its value is in seconds and may have a fraction.
template <class Get>
Entry seconds(std::string key, std::string help, double least, double most, Get get) {
  return {.key = key,
          .help = std::move(help),
          .unit = "SECONDS",
          .set =
              [key, least, most, get](ServerOptions& options, const std::string& text) {
                const std::string rule =
                    "seconds in " + shown_number(least) + "..." + shown_number(most);
                std::size_t used = 0;
                double value = 0;
                try {
                  value = std::stod(text, &used);
                } catch (const std::exception&) {
                  bad(key, text, rule);
                }
                if (used != text.size() || !(value >= least && value <= most)) bad(key, text, rule);
                get(options) = static_cast<std::int64_t>(value * 1000.0 + 0.5);
              },
          .show =
              [get](const ServerOptions& options) {
                const std::int64_t ms = get(const_cast<ServerOptions&>(options));
                std::string number = std::to_string(ms / 1000);
                if (ms % 1000 != 0) {
                  std::string fraction = std::to_string(1000 + ms % 1000).substr(1);
                  while (fraction.ends_with('0')) fraction.pop_back();
                  number += "." + fraction;
                }
                return number;
              }};
}

template <class Get>
Entry boolean(std::string key, std::string help, Get get) {
  return {.key = key,
          .help = std::move(help),
          .unit = "[BOOL]",
          .set =
              [key, get](ServerOptions& options, const std::string& text) {
                if (text != "true" && text != "false") bad(key, text, "true or false");
                get(options) = text == "true";
              },
          .show =
              [get](const ServerOptions& options) {
                return shown(static_cast<bool>(get(const_cast<ServerOptions&>(options))));
              }};
}

/// An entry for a list of addresses, separated by commas. "none" is the empty list.
template <class Get>
Entry addresses(std::string key, std::string help, Get get) {
  return {.key = std::move(key),
          .help = std::move(help),
          .set =
              [get](ServerOptions& options, const std::string& text) {
                std::vector<std::string>& list = get(options);
                list.clear();
                if (text == "none") return;
                for (std::size_t start = 0; start <= text.size();) {
                  const std::size_t end = std::min(text.find(',', start), text.size());
                  const std::string address = text.substr(start, end - start);
                  require_address(address);
                  list.push_back(address);
                  start = end + 1;
                }
              },
          .show =
              [get](const ServerOptions& options) {
                std::string list;
                for (const std::string& address : get(const_cast<ServerOptions&>(options)))
                  list += (list.empty() ? "" : ", ") + shown(address);
                return list.empty() ? std::string("\"none\"") : "[" + list + "]";
              }};
}

template <class Get>
Entry path(std::string key, std::string help, Get get, std::string unit = "FILE") {
  return {.key = std::move(key),
          .help = std::move(help),
          .unit = std::move(unit),
          .set = [get](ServerOptions& options, const std::string& text) { get(options) = text; },
          .show =
              [get](const ServerOptions& options) {
                return shown(get(const_cast<ServerOptions&>(options)));
              }};
}

/// An entry for a default quota in units of `unit`, e.g. milliseconds of an hour. 0 is no limit.
inline Entry quota(const std::string& key, const std::string& help, Allowance QuotaDefaults::*whose,
                   std::optional<std::int64_t> Allowance::*value, std::int64_t unit = 1) {
  return {.key = key,
          .help = "quota: " + help + "; 0: no limit",
          .unit = "N",
          .set =
              [=](ServerOptions& options, const std::string& text) {
                const std::int64_t number = to_integer(key, text, 0, INT64_MAX / unit);
                options.queue.quotas.*whose.*value =
                    number > 0 ? std::optional(number * unit) : std::nullopt;
              },
          .show =
              [=](const ServerOptions& options) {
                return std::to_string((options.queue.quotas.*whose.*value).value_or(0) / unit);
              }};
}

}  // namespace quasi::server::option
