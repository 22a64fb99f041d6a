#pragma once

#include <filesystem>

namespace quasi::test {

/// A new directory that the destructor removes. If the test has failed and QUASI_KEEP is set, the
/// directory is kept and its name printed.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace quasi::test
