#pragma once

#include <filesystem>

namespace quasi::test {

/// A fresh directory, removed when the object goes; kept, and named, where the test has failed and
/// QUASI_KEEP is set.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace quasi::test
