#pragma once

#include <google/protobuf/message.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/views/console.hpp"

namespace quasi::client {

/// A document from a TOML or JSON file, with the line of each field where the format tells it.
struct SourceDocument {
  std::filesystem::path file;
  Json value;
  std::map<std::string, std::size_t> line_of;  ///< by field path, "jobs[1].labels"; TOML only

  /// "FILE:LINE: field" or "FILE: field".
  std::string where(const std::string& field) const;
};

/// Reads either format by the file's ending (.toml, .json). @throws Failure (kInvalidInput).
SourceDocument read_document(const std::filesystem::path& file);

/// Fills `message` from a part of the document through protobuf's own JSON mapping, after checking
/// it against the message's descriptor, so that whatever is wrong is said with its field, its line,
/// and the nearest known name.
///
/// Beyond that mapping: durations as "2h", enum values by their short names, string values of a
/// repeated {key, value} message as a table.
///
/// @param path      of `value` in the document, "" for its top
/// @param excluded  fields of the message that may not be set here
void fill_message(const SourceDocument& document, const Json& value, const std::string& path,
                  google::protobuf::Message* message,
                  const std::vector<std::string>& excluded = {});

}  // namespace quasi::client
