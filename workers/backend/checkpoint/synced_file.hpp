#pragma once

#include <filesystem>

#include "workers/backend/error.hpp"
#include "workers/files/durable_file.hpp"

namespace quasi {

/// Returns when the bytes of a file are on the disk, so that a resumed job may rely on them.
/// @throws StorageError
inline void sync_for_resumption(const std::filesystem::path& path) {
  try {
    files::sync_file(path);
  } catch (const files::FileFailure& failure) {
    throw StorageError(failure.sentence());
  }
}

}  // namespace quasi
