#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/store/file_system.hpp"

namespace quasi::server {

/// Content-addressed files below one directory.
///
///   blobs/sha256/ab/cd/<64 hex>   final: complete, synced, read-only, never modified
///   staging/<upload id>           partial uploads
///   corrupt/<64 hex>              files that no longer match their digest; never served
///
/// A file gets its final name after its bytes are synced, and both directories are synced after
/// that. The row in the database follows. So a file may exist without a row, but never a row
/// without its file. Thread-safe; one upload by one thread at a time.
class BlobStore {
 public:
  /// Creates the missing directories.
  BlobStore(FileSystem& files, std::string root);

  std::string path_of(std::string_view digest) const;

  /// Opens the staging file of an upload; a new file is empty.
  std::unique_ptr<FileSystem::File> open_staging(const std::string& upload_id);
  bool has_staging(const std::string& upload_id) const;
  void remove_staging(const std::string& upload_id);
  std::vector<std::string> staged() const;

  /// Gives a staging file its final name, durably. Its bytes must be synced and must hash to
  /// `digest`.
  void publish(const std::string& upload_id, std::string_view digest);
  std::unique_ptr<FileSystem::File> open(std::string_view digest) const;
  bool has(std::string_view digest) const;
  void remove(std::string_view digest);
  /// The digests of all files under final names.
  std::vector<std::string> stored() const;
  void put_aside(std::string_view digest);
  /// Number of files that were put aside since the start.
  std::int64_t n_put_aside() const { return n_put_aside_; }

 private:
  std::string staging_path(const std::string& upload_id) const;
  FileSystem& files_;
  std::string root_;
  std::atomic<std::int64_t> n_put_aside_{0};
};

}  // namespace quasi::server
