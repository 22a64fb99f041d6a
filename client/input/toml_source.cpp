#include "client/input/toml_source.hpp"

#include "client/failure.hpp"

namespace quasi::client {

toml::table parse_toml(const std::filesystem::path& file, std::string_view text) {
  try {
    return toml::parse(text, file.string());
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw Failure(ExitStatus::kInvalidInput,
                  file.string() + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) +
                      ": " + std::string(error.description()),
                  "fix that line; values are written as in TOML: text in \"quotes\", lists in []");
  }
}

std::string where(const std::filesystem::path& file, const toml::node& node) {
  return file.string() + ":" + std::to_string(node.source().begin.line);
}

}  // namespace quasi::client
