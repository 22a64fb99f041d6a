#include "client/input/spec_mapping.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

#include "client/failure.hpp"
#include "client/input/toml_source.hpp"
#include "client/session/durable_file.hpp"
#include "client/views/readable.hpp"
#include "workers/io/settings.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;
namespace pb = google::protobuf;

constexpr std::size_t kJobFileLimitBytes = 16 << 20;
constexpr int kDeepest = 32;  // levels of nesting; a spec needs five

std::string join(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}
std::string join(const std::string& path, std::size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

std::string date_time_text(const fs::path& file, const toml::node& node) {
  std::ostringstream text;
  if (const auto* time = node.as_date_time()) {
    if (!time->get().offset)
      throw Failure(ExitStatus::kInvalidInput,
                    where(file, node) + ": a time needs its offset from UTC",
                    "write it like 2030-01-31T08:00:00Z or 2030-01-31T09:00:00+01:00");
    text << time->get();
  } else {
    throw Failure(ExitStatus::kInvalidInput,
                  where(file, node) +
                      ": a date or time alone is no "
                      "instant",
                  "write it like 2030-01-31T08:00:00Z");
  }
  return text.str();
}

Json json_from_toml(const fs::path& file, const toml::node& node, const std::string& path,
                    std::map<std::string, std::size_t>& line_of, int depth) {
  if (depth > kDeepest)
    throw Failure(ExitStatus::kInvalidInput, where(file, node) + ": nested too deeply",
                  "a job file needs no more than a few levels");
  line_of[path] = node.source().begin.line;
  if (const auto* table = node.as_table()) {
    Json object = Json::object();
    for (const auto& [key, value] : *table)
      object[std::string(key.str())] =
          json_from_toml(file, value, join(path, std::string(key.str())), line_of, depth + 1);
    return object;
  }
  if (const auto* array = node.as_array()) {
    Json list = Json::array();
    for (const toml::node& value : *array)
      list.push_back(json_from_toml(file, value, join(path, list.size()), line_of, depth + 1));
    return list;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* truth = node.as_boolean()) return truth->get();
  return date_time_text(file, node);
}

/// Parses JSON. The depth is limited during parsing, because the parser is recursive.
Json parse_json(const fs::path& file, const std::string& text) {
  bool too_deep = false;
  const auto guard = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kDeepest;
    return !too_deep;
  };
  try {
    Json value = Json::parse(text, guard);
    if (too_deep)
      throw Failure(ExitStatus::kInvalidInput, file.string() + ": nested too deeply",
                    "a job file needs no more than a few levels");
    return value;
  } catch (const nlohmann::json::exception& error) {
    // The library's text is "[json.exception.parse_error.101] parse error at line 3, column 7: …";
    // it is printed from "line" on.
    const std::string what = error.what();
    const auto at = what.find("line ");
    throw Failure(ExitStatus::kInvalidInput,
                  file.string() + ": " + (at == std::string::npos ? what : what.substr(at)),
                  "the file is not valid JSON there");
  }
}

/// Compares a value with a message descriptor and rewrites its short forms into protobuf's JSON.
class Adapter {
 public:
  explicit Adapter(const SourceDocument& document) : document_(document) {}

  Json message(const Json& value, const pb::Descriptor& type, const std::string& path,
               const std::vector<std::string>& excluded) const {
    if (type.full_name() == "google.protobuf.Duration") return duration(value, path);
    if (type.full_name() == "google.protobuf.Timestamp") return timestamp(value, path);
    if (!value.is_object()) refuse(path, "must be a table" + field_list(type, excluded), value);
    Json adapted = Json::object();
    std::map<std::string, std::string> oneof_taken;
    for (const auto& [key, part] : value.items()) {
      const pb::FieldDescriptor* field = find(type, key);
      if (field == nullptr ||
          std::find(excluded.begin(), excluded.end(), field->name()) != excluded.end())
        throw Failure(ExitStatus::kInvalidInput,
                      document_.where(join(path, key)) + ": " +
                          unknown_key_message(key, path.empty() ? "the job" : "'" + path + "'",
                                              names(type, excluded)),
                      "known keys:" + field_list(type, excluded));
      if (part.is_null()) continue;
      if (const pb::OneofDescriptor* oneof = field->real_containing_oneof()) {
        const auto [first, fresh] = oneof_taken.emplace(oneof->name(), field->name());
        if (!fresh)
          throw Failure(ExitStatus::kInvalidInput,
                        document_.where(join(path, key)) + ": '" + field->name() + "' and '" +
                            first->second + "' exclude each other",
                        "keep one of them");
      }
      adapted[field->name()] = any_field(part, *field, join(path, key));
    }
    return adapted;
  }

 private:
  static const pb::FieldDescriptor* find(const pb::Descriptor& type, const std::string& key) {
    const pb::FieldDescriptor* field = type.FindFieldByName(key);
    return field != nullptr ? field : type.FindFieldByCamelcaseName(key);
  }

  static std::vector<std::string> names(const pb::Descriptor& type,
                                        const std::vector<std::string>& excluded) {
    std::vector<std::string> all;
    for (int i = 0; i < type.field_count(); ++i) {
      const std::string& name = type.field(i)->name();
      if (std::find(excluded.begin(), excluded.end(), name) == excluded.end()) all.push_back(name);
    }
    return all;
  }

  static std::string field_list(const pb::Descriptor& type,
                                const std::vector<std::string>& excluded) {
    std::string list;
    for (const std::string& name : names(type, excluded))
      list += (list.empty() ? " " : ", ") + name;
    return list;
  }

  [[noreturn]] void refuse(const std::string& path, const std::string& what,
                           const Json& value) const {
    std::string shown = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
    throw Failure(ExitStatus::kInvalidInput, document_.where(path) + ": " + what + ", got " + shown,
                  "the fields of a job are listed in docs/reference/cli.md");
  }

  Json any_field(const Json& value, const pb::FieldDescriptor& field,
                 const std::string& path) const {
    if (field.is_map()) return map(value, field, path);
    if (!field.is_repeated()) return single(value, field, path);
    if (value.is_object() && is_key_value(field)) return key_values(value, path);
    if (!value.is_array()) refuse(path, "must be a list", value);
    Json list = Json::array();
    for (const Json& part : value) list.push_back(single(part, field, join(path, list.size())));
    return list;
  }

  Json map(const Json& value, const pb::FieldDescriptor& field, const std::string& path) const {
    if (!value.is_object()) refuse(path, "must be a table of name = value", value);
    const pb::FieldDescriptor& entry = *field.message_type()->map_value();
    Json object = Json::object();
    for (const auto& [key, part] : value.items())
      object[key] = single(part, entry, join(path, key));
    return object;
  }

  static bool is_key_value(const pb::FieldDescriptor& field) {
    const pb::Descriptor* type = field.message_type();
    return type != nullptr && type->field_count() == 2 && type->field(0)->name() == "key" &&
           type->field(1)->name() == "value" &&
           type->field(1)->type() == pb::FieldDescriptor::TYPE_STRING;
  }

  Json key_values(const Json& value, const std::string& path) const {
    Json list = Json::array();
    for (const auto& [key, part] : value.items()) {
      if (part.is_null() || part.is_object())
        refuse(join(path, key), "must be a text, a number, true or false or a list", part);
      list.push_back({{"key", key}, {"value", part.is_string() ? part : Json(part.dump())}});
    }
    return list;
  }

  Json single(const Json& value, const pb::FieldDescriptor& field, const std::string& path) const {
    using Field = pb::FieldDescriptor;
    switch (field.cpp_type()) {
      case Field::CPPTYPE_MESSAGE:
        return message(value, *field.message_type(), path, {});
      case Field::CPPTYPE_ENUM:
        return enumerator(value, *field.enum_type(), path);
      case Field::CPPTYPE_STRING:
        if (!value.is_string()) refuse(path, "must be a text in quotes", value);
        return value;
      case Field::CPPTYPE_BOOL:
        if (!value.is_boolean()) refuse(path, "must be true or false", value);
        return value;
      case Field::CPPTYPE_DOUBLE:
      case Field::CPPTYPE_FLOAT:
        if (!value.is_number() || !std::isfinite(value.get<double>()))
          refuse(path, "must be a finite number", value);
        return value;
      case Field::CPPTYPE_INT32:
        return integer(value, std::numeric_limits<std::int32_t>::min(),
                       std::numeric_limits<std::int32_t>::max(), path);
      case Field::CPPTYPE_UINT32:
        return integer(value, 0, std::numeric_limits<std::uint32_t>::max(), path);
      case Field::CPPTYPE_INT64:
        return integer(value, std::numeric_limits<std::int64_t>::min(),
                       std::numeric_limits<std::int64_t>::max(), path);
      case Field::CPPTYPE_UINT64:
        if (value.is_number_unsigned()) return value;
        return integer(value, 0, std::numeric_limits<std::int64_t>::max(), path);
    }
    return value;
  }

  static bool is_digits(const std::string& text) {
    return text.size() < 20 &&
           text.find_first_not_of("0123456789", text.starts_with('-') ? 1 : 0) ==
               std::string::npos &&
           text.find_first_of("0123456789") != std::string::npos;
  }

  Json integer(const Json& value, std::int64_t low, std::int64_t high,
               const std::string& path) const {
    // Protobuf writes 64-bit numbers as texts, so such texts are accepted as well.
    if (value.is_string() && is_digits(value.get_ref<const std::string&>())) return value;
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<std::uint64_t>() <= static_cast<std::uint64_t>(high)) &&
                      value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high;
    if (!fits)
      refuse(path,
             "must be a whole number from " + std::to_string(low) + " to " + std::to_string(high),
             value);
    return value;
  }

  Json duration(const Json& value, const std::string& path) const {
    std::optional<double> seconds;
    if (value.is_string()) seconds = parse_duration_seconds(value.get<std::string>());
    if (value.is_number()) seconds = value.get<double>();
    if (!seconds || !std::isfinite(*seconds) || *seconds < 0.0 || *seconds > 315576000000.0)
      refuse(path, "must be a time like \"90s\", \"15m\" or \"2h\"", value);
    // The protobuf mapping takes nine decimals.
    char text[64];
    std::snprintf(text, sizeof text, "%.9f", *seconds);
    return std::string(text) + "s";
  }

  Json timestamp(const Json& value, const std::string& path) const {
    if (!value.is_string()) refuse(path, "must be a time like 2030-01-31T08:00:00Z", value);
    return value;
  }

  /// Accepts "cuda", "CUDA" or the full "DEVICE_PREFERENCE_CUDA".
  Json enumerator(const Json& value, const pb::EnumDescriptor& type,
                  const std::string& path) const {
    std::string prefix = type.value(0)->name();  // the name ends in _UNSPECIFIED
    prefix.resize(prefix.size() - std::min(prefix.size(), std::string("UNSPECIFIED").size()));
    std::vector<std::string> known;
    for (int i = 1; i < type.value_count(); ++i) {
      std::string name = type.value(i)->name().substr(prefix.size());
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      known.push_back(name);
    }
    if (value.is_string()) {
      std::string wanted = value.get<std::string>();
      if (type.FindValueByName(wanted) != nullptr) return wanted;
      std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      for (std::size_t i = 0; i < known.size(); ++i)
        if (known[i] == wanted) return type.value(static_cast<int>(i) + 1)->name();
    }
    std::string list;
    for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
    refuse(path, "must be one of " + list, value);
  }

  const SourceDocument& document_;
};

}  // namespace

std::string SourceDocument::where(const std::string& field) const {
  std::string text = file.string();
  if (const auto line = line_of.find(field); line != line_of.end())
    text += ":" + std::to_string(line->second);
  return field.empty() ? text : text + ": " + field;
}

SourceDocument read_document(const fs::path& file) {
  const std::string text = read_whole(file, kJobFileLimitBytes);
  SourceDocument document{.file = file, .value = {}, .line_of = {}};
  if (file.extension() == ".toml") {
    const toml::table table = parse_toml(file, text);
    document.value = json_from_toml(file, table, "", document.line_of, 0);
    document.line_of.erase("");
  } else if (file.extension() == ".json") {
    document.value = parse_json(file, text);
  } else {
    throw Failure(ExitStatus::kInvalidInput,
                  "'" + file.string() + "' ends in neither .toml nor .json",
                  "for a deck in a directory, name its kind: quasi submit KIND DIR");
  }
  return document;
}

void fill_message(const SourceDocument& document, const Json& value, const std::string& path,
                  pb::Message* message, const std::vector<std::string>& excluded) {
  const Json adapted = Adapter(document).message(value, *message->GetDescriptor(), path, excluded);
  const auto status = pb::util::JsonStringToMessage(
      adapted.dump(-1, ' ', false, Json::error_handler_t::replace), message);
  if (!status.ok())
    throw Failure(ExitStatus::kInvalidInput,
                  document.where(path) + ": " + std::string(status.message()),
                  "the fields of a job are listed in docs/reference/cli.md");
}

}  // namespace quasi::client
