#include "workers/io/result_root.hpp"

namespace quasi {
namespace {

/// Version 1 had no common root. Version 2 has the one that result_root.hpp describes. Version 3
/// has descriptions and dimension scales, and temperatures are an axis (`/by_temperature`).
constexpr const char* kFormatVersion = "3";

void write_described(H5Writer* file, const std::string& path, std::string_view text,
                     std::string_view description) {
  file->write_text(path, text);
  file->attribute(path, "description", description);
}

}  // namespace

void write_result_root(std::string_view kind, const InputRecord& input,
                       const std::vector<std::string>& warnings, H5Writer* file) {
  file->attribute("/", "format", "quasi.result");
  file->attribute("/", "format_version", kFormatVersion);
  file->attribute("/", "kind", kind);
  file->attribute("/", "program", "quasi " QUASI_VERSION);
  std::string settings, digests, lines;
  for (const Setting& setting : input.settings)
    settings += setting.key + "=" + setting.value + "\n";
  for (const InputRecord::File& part : input.files) {
    if (!part.sha256.empty()) digests += part.sha256 + "  " + part.name + "\n";
    if (!part.text.empty())
      write_described(file, "/input/files/" + part.name, part.text, "a file of the deck");
  }
  for (const std::string& warning : warnings) lines += warning + "\n";
  write_described(file, "/input/settings", settings,
                  "overrides of keys of the deck, in the order given, one a line");
  write_described(file, "/input/digests", digests,
                  "SHA-256 and name of each file of the deck, as sha256sum -c reads them");
  write_described(file, "/warnings", lines, "warnings of the calculation, one a line");
}

}  // namespace quasi
