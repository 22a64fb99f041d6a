#include "proto/wire/checks.hpp"

#include "proto/wire/chunks.hpp"
#include "proto/wire/digest.hpp"
#include "proto/wire/limits.hpp"

namespace quasi::wire {

void Violations::add(std::string field, std::string description, std::string_view reason) {
  list_.push_back({std::move(field), std::move(description), std::string(reason)});
}

bool is_id(std::string_view value, char prefix) {
  if (value.size() != 28 || value[0] != prefix || value[1] != '_') return false;
  // Crockford's alphabet: no I, L, O, U.
  for (const char c : value.substr(2))
    if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z')) || c == 'I' || c == 'L' || c == 'O' ||
        c == 'U')
      return false;
  return true;
}

bool is_file_name(std::string_view value) {
  if (value.empty() || value.size() > limits::kFileNameBytes || value[0] == '.') return false;
  for (const char c : value)
    if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
          c == '_' || c == '-'))
      return false;
  return true;
}

bool is_relative_path(std::string_view value, std::size_t most_bytes) {
  if (value.size() > most_bytes) return false;
  std::size_t components = 0;
  for (;;) {
    const std::size_t slash = value.find('/');
    if (!is_file_name(value.substr(0, slash)) || ++components > limits::kSlotComponents)
      return false;
    if (slash == std::string_view::npos) return true;
    value.remove_prefix(slash + 1);
  }
}

namespace checks {
namespace {

enum class TextFault { kNone, kNotUtf8, kControl };

/// Checks UTF-8 by its definition (no overlong forms, no surrogates, at most U+10FFFF).
TextFault text_fault(std::string_view value, Lines lines) {
  for (std::size_t i = 0; i < value.size();) {
    const auto byte = static_cast<unsigned char>(value[i]);
    if (byte < 0x80) {
      const bool line_end = byte == '\n' || byte == '\r' || byte == '\t';
      if (byte == 0x7F || (byte < 0x20 && !(lines == Lines::kMany && line_end)))
        return TextFault::kControl;
      ++i;
      continue;
    }
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    if (byte < 0xC2 || byte > 0xF4 || i + length > value.size()) return TextFault::kNotUtf8;
    std::uint32_t code = byte & (0xFFU >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(value[i + k]);
      if ((next & 0xC0) != 0x80) return TextFault::kNotUtf8;
      code = code << 6 | (next & 0x3F);
    }
    if ((length == 3 && (code < 0x800 || (code >= 0xD800 && code <= 0xDFFF))) ||
        (length == 4 && (code < 0x10000 || code > 0x10FFFF)))
      return TextFault::kNotUtf8;
    if (code < 0xA0) return TextFault::kControl;  // C1 controls.
    i += length;
  }
  return TextFault::kNone;
}

}  // namespace

std::string shown(std::string_view value) {
  std::string out = "\"";
  for (const char c : value.substr(0, 40))
    out.push_back(static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E ? '?'
                                                                                               : c);
  out += value.size() > 40 ? "…\"" : "\"";
  return out;
}

std::string at(const std::string& path, std::string_view field) {
  return path.empty() ? std::string(field) : path + "." + std::string(field);
}

std::string at(const std::string& path, std::string_view field, int index) {
  return at(path, field) + "[" + std::to_string(index) + "]";
}

void text(std::string_view value, std::uint64_t limit, const std::string& field,
          Violations& violations, Lines lines) {
  if (value.size() > limit)
    violations.add(field, "must have at most " + std::to_string(limit) + " bytes, got " +
                              std::to_string(value.size()));
  switch (text_fault(value, lines)) {
    case TextFault::kNone:
      break;
    case TextFault::kNotUtf8:
      violations.add(field, "must be UTF-8, got " + shown(value));
      break;
    case TextFault::kControl:
      violations.add(field, "must not contain control characters, got " + shown(value));
      break;
  }
}

void count(std::uint64_t value, std::uint64_t limit, std::string_view noun,
           const std::string& field, Violations& violations) {
  if (value > limit)
    violations.add(field, "must have at most " + std::to_string(limit) + " " + std::string(noun) +
                              ", got " + std::to_string(value));
}

void at_most(std::uint64_t value, std::uint64_t limit, const std::string& field,
             Violations& violations) {
  if (value > limit)
    violations.add(field,
                   "must be 0..." + std::to_string(limit) + ", got " + std::to_string(value));
}

void duration(const google::protobuf::Duration& value, const std::string& field,
              Violations& violations) {
  const bool sound = value.seconds() >= 0 && value.nanos() >= 0 && value.nanos() <= 999'999'999 &&
                     value.seconds() <= static_cast<std::int64_t>(limits::kDurationSeconds);
  if (!sound)
    violations.add(field, "must be a duration of 0...30 days, got " +
                              std::to_string(value.seconds()) + " s and " +
                              std::to_string(value.nanos()) + " ns");
}

void timestamp(const google::protobuf::Timestamp& value, const std::string& field,
               Violations& violations) {
  const bool sound = value.seconds() >= static_cast<std::int64_t>(limits::kFirstYearSeconds) &&
                     value.seconds() <= static_cast<std::int64_t>(limits::kLastYearSeconds) &&
                     value.nanos() >= 0 && value.nanos() <= 999'999'999;
  if (!sound)
    violations.add(field, "must be a time within 1970...2200, got " +
                              std::to_string(value.seconds()) + " s and " +
                              std::to_string(value.nanos()) + " ns since 1970");
}

void finite(double value, const std::string& field, Violations& violations) {
  if (!std::isfinite(value)) violations.add(field, "must be a finite number");
}

void not_negative(double value, const std::string& field, Violations& violations) {
  if (!(std::isfinite(value) && value >= 0.0))
    violations.add(field, "must be a finite number and not negative, got " + std::to_string(value));
}

void digest(std::string_view value, const std::string& field, Violations& violations) {
  if (!is_digest(value))
    violations.add(
        field, "must be a SHA-256 of 64 lower-case hexadecimal characters, got " + shown(value));
}

void uuid(const std::string& value, const std::string& field, Violations& violations) {
  if (!is_uuid(value))
    violations.add(field,
                   "must be a UUID as xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx, got " + shown(value));
}

void id(std::string_view value, char prefix, const std::string& field, Violations& violations) {
  if (!is_id(value, prefix))
    violations.add(field, std::string("must be ") + prefix +
                              "_ and 26 base32 characters (upper case, no I, L, O, U), got " +
                              shown(value));
}

void pool(std::string_view value, const std::string& field, Violations& violations) {
  bool sound = value.size() <= 63;
  for (const char c : value)
    sound = sound && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_');
  if (!sound) violations.add(field, "must be at most 63 of a-z, 0-9, - and _, got " + shown(value));
}

void progress(const v1::Progress& value, const std::string& path, Violations& violations) {
  text(value.phase(), limits::kPhaseBytes, at(path, "phase"), violations);
  if (value.done() < 0)
    violations.add(at(path, "done"), "must not be negative, got " + std::to_string(value.done()));
  if (value.total() < 0)
    violations.add(at(path, "total"), "must not be negative, got " + std::to_string(value.total()));
  count(static_cast<std::uint64_t>(value.metrics_size()), limits::kMetrics, "entries",
        at(path, "metrics"), violations);
  for (const auto& [name, figure] : value.metrics()) {
    text(name, limits::kMetricNameBytes, at(path, "metrics"), violations);
    finite(figure, at(path, "metrics[" + shown(name) + "]"), violations);
  }
  if (value.has_time()) timestamp(value.time(), at(path, "time"), violations);
}

void failure(const v1::Failure& value, const std::string& path, Violations& violations) {
  known(value.reason(), v1::FailureReason_IsValid, "INVALID_INPUT, NUMERICAL, TIME_LIMIT, ...",
        at(path, "reason"), violations);
  if (value.reason() == v1::FAILURE_REASON_WORKER_LOST ||
      value.reason() == v1::FAILURE_REASON_DEPENDENCY)
    violations.add(at(path, "reason"),
                   "must not be WORKER_LOST or DEPENDENCY, which only the server sets");
  text(value.message(), limits::kFailureMessageBytes, at(path, "message"), violations,
       Lines::kMany);
}

void page(std::int32_t page_size, std::string_view page_token, Violations& violations) {
  if (page_size < 0)
    violations.add("page_size", "must not be negative, got " + std::to_string(page_size));
  text(page_token, limits::kTokenBytes, "page_token", violations);
}

}  // namespace checks
}  // namespace quasi::wire
