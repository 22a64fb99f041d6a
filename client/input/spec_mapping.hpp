#pragma once

#include <google/protobuf/message.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/views/console.hpp"

namespace quasi::client {

/// A document from a TOML or JSON file. For TOML it also holds the line of each field.
struct SourceDocument {
  std::filesystem::path file;
  Json value;
  std::map<std::string, std::size_t> line_of;  ///< by field path, e.g. "jobs[1].labels"; TOML only

  /// The position of a field: "FILE:LINE: field" or "FILE: field".
  std::string where(const std::string& field) const;
};

/// Reads a file in the format of its suffix (.toml, .json). @throws Failure (kInvalidInput).
SourceDocument read_document(const std::filesystem::path& file);

/// Fills `message` from a part of the document. The value is first checked against the message's
/// descriptor, so that every error names its field, its line and the nearest known name. Then
/// protobuf's own JSON mapping reads it.
///
/// Three forms are accepted beyond that mapping: durations as "2h", enum values by their short
/// names, and a table for a repeated message of {key, value}.
///
/// @param path      field path of `value` in the document, "" for its top
/// @param excluded  fields of the message that may not be set here
void fill_message(const SourceDocument& document, const Json& value, const std::string& path,
                  google::protobuf::Message* message,
                  const std::vector<std::string>& excluded = {});

}  // namespace quasi::client
