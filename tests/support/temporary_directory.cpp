#include "tests/support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <stdexcept>

namespace quasi::test {

TemporaryDirectory::TemporaryDirectory() {
  // mkdtemp replaces the six letters. The name is short, because a Unix socket's path has at most
  // 107 characters.
  std::string name =
      (std::filesystem::temp_directory_path() / "quasi-").string() + std::string(6, 'X');
  if (mkdtemp(name.data()) == nullptr)
    throw std::runtime_error("no temporary directory at " + name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  namespace fs = std::filesystem;
  if (testing::Test::HasFailure() && std::getenv("QUASI_KEEP") != nullptr) {
    std::cerr << "kept: " << path_ << '\n';
    return;
  }
  // The inputs of jobs are read-only folders, so they are made writable first.
  std::error_code error;
  for (fs::recursive_directory_iterator walk(path_, error), end; !error && walk != end;
       walk.increment(error))
    if (walk->is_directory(error)) fs::permissions(walk->path(), fs::perms::owner_all, error);
  fs::remove_all(path_, error);
}

}  // namespace quasi::test
