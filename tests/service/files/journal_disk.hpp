#pragma once

#include <filesystem>
#include <string>

#include "tests/service/support/power_cut_disk.hpp"

namespace quasi::server::test {

/// Repeats the changes of this process below a real folder on a disk whose power can be cut.
///
/// A program that links journal_disk.cpp has its write, fsync, rename, remove and mkdir replaced.
/// Each of them is a point of the disk before it happens. After the cut they fail with EIO. One
/// object at a time; the changes come from one thread.
class JournalDisk {
 public:
  /// The real folder `real` has the name `name` on the disk. Both exist.
  JournalDisk(PowerCutDisk& disk, std::filesystem::path real, std::string name);
  ~JournalDisk();
  JournalDisk(const JournalDisk&) = delete;
  JournalDisk& operator=(const JournalDisk&) = delete;

  /// Gives the real folder the content that the disk has, as after a restart.
  void restore();

  /// Returns the name on the disk of a real path; "" for a path elsewhere.
  std::string name_of(const std::filesystem::path& path) const;
  PowerCutDisk& disk() { return disk_; }

 private:
  void restore_folder(const std::string& name, const std::filesystem::path& real);
  PowerCutDisk& disk_;
  std::filesystem::path real_;
  std::string name_;
};

}  // namespace quasi::server::test
