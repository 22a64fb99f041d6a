#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workers/io/hdf5.hpp"
#include "workers/io/settings.hpp"

namespace quasi {

/// The inputs of a run, as its result keeps them.
struct InputRecord {
  struct File {
    std::string name;    ///< relative to the deck's directory, with '/' between folders
    std::string sha256;  ///< "" for a file that is too large to be hashed in passing
    std::string text;    ///< the whole file if it is short text, otherwise ""
  };
  std::vector<File> files;
  std::vector<Setting> settings;  ///< overrides of keys, in the order given
};

/// Writes the part of a result that is alike for every kind (docs/reference/python.md, section
/// "Where a result comes from"). It holds no device, host or time, so that equal jobs give equal
/// bytes.
///
/// | place | content |
/// | --- | --- |
/// | attributes `format`, `format_version`, `kind`, `program` of the root | texts |
/// | `/input/settings` | one KEY=VALUE a line |
/// | `/input/digests` | one "SHA-256  NAME" a line, as `sha256sum -c` reads them |
/// | `/input/files/NAME` | text of each short file of the deck |
/// | `/warnings` | one warning a line |
///
/// @throws StorageError
void write_result_root(std::string_view kind, const InputRecord& input,
                       const std::vector<std::string>& warnings, H5Writer* file);

}  // namespace quasi
