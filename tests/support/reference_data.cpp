#include "tests/support/reference_data.hpp"

#include <cstdlib>
#include <stdexcept>

namespace quasi::test {

std::filesystem::path reference_dir() {
  const char* directory = std::getenv("QUASI_REFERENCE_DIR");
  return directory != nullptr ? directory : QUASI_REFERENCE_DIR;
}

std::filesystem::path source_dir() { return QUASI_SOURCE_DIR; }

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "quasi-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace quasi::test
