#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/repeated_field.h>
#include <google/protobuf/timestamp.pb.h>
#include <cmath>
#include <string>
#include <string_view>

#include "proto/wire/validate.hpp"

/// Checks that the three services share. They are private to proto/wire.
namespace quasi::wire::checks {

/// A value as it is printed in a message: at most 40 characters, without unprintable ones.
std::string shown(std::string_view value);

std::string at(const std::string& path, std::string_view field);
std::string at(const std::string& path, std::string_view field, int index);

/// Checks for UTF-8 without control characters within `limit` bytes. Lines::kMany allows line ends
/// and tabs.
enum class Lines { kOne, kMany };
void text(std::string_view value, std::uint64_t limit, const std::string& field,
          Violations& violations, Lines lines = Lines::kOne);

void count(std::uint64_t value, std::uint64_t limit, std::string_view noun,
           const std::string& field, Violations& violations);
void at_most(std::uint64_t value, std::uint64_t limit, const std::string& field,
             Violations& violations);
void duration(const google::protobuf::Duration& value, const std::string& field,
              Violations& violations);
void timestamp(const google::protobuf::Timestamp& value, const std::string& field,
               Violations& violations);
void finite(double value, const std::string& field, Violations& violations);
void not_negative(double value, const std::string& field, Violations& violations);
void digest(std::string_view value, const std::string& field, Violations& violations);
void uuid(const std::string& value, const std::string& field, Violations& violations);
void id(std::string_view value, char prefix, const std::string& field, Violations& violations);
void pool(std::string_view value, const std::string& field, Violations& violations);
void progress(const v1::Progress& value, const std::string& path, Violations& violations);
void failure(const v1::Failure& value, const std::string& path, Violations& violations);
/// Checks that numbers of quasi.v1.TokenScope in the field `scopes` are known.
void scopes(const google::protobuf::RepeatedField<int>& scopes, Violations& violations);
void page(std::int32_t page_size, std::string_view page_token, Violations& violations);

/// Checks that an enum has a known value other than UNSPECIFIED.
template <class Enum>
void known(Enum value, bool (*is_valid)(int), std::string_view choices, const std::string& field,
           Violations& violations) {
  if (static_cast<int>(value) == 0 || !is_valid(static_cast<int>(value)))
    violations.add(field, "must be one of " + std::string(choices) + ", got number " +
                              std::to_string(static_cast<int>(value)));
}

}  // namespace quasi::wire::checks
