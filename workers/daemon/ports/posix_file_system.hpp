#pragma once

#include <cstdint>

#include "workers/daemon/ports/file_system.hpp"

namespace quasi {

/// File operations on the machine's file system.
class PosixFileSystem : public FileSystem {
 public:
  void make_directory(const std::filesystem::path& path) override;
  void write_file(const std::filesystem::path& path, std::string_view bytes) override;
  void append_file(const std::filesystem::path& path, std::string_view bytes) override;
  void sync_file(const std::filesystem::path& path) override;
  void sync_directory(const std::filesystem::path& path) override;
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  void remove_tree(const std::filesystem::path& path) override;
  void link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to) override;
  void make_read_only(const std::filesystem::path& path) override;
  std::optional<std::string> read_file(const std::filesystem::path& path) const override;
  std::string read_range(const std::filesystem::path& path, std::uint64_t offset,
                         std::uint64_t most) const override;
  bool exists(const std::filesystem::path& path) const override;
  bool is_directory(const std::filesystem::path& path) const override;
  std::uint64_t size_bytes(const std::filesystem::path& path) const override;
  std::vector<std::string> list(const std::filesystem::path& path) const override;
  std::string digest(const std::filesystem::path& path) const override;
};

}  // namespace quasi
