#include "tests/support/reference_data.hpp"

#include <cstdlib>

namespace quasi::test {

std::filesystem::path reference_dir() {
  const char* directory = std::getenv("QUASI_REFERENCE_DIR");
  return directory != nullptr ? directory : QUASI_REFERENCE_DIR;
}

std::filesystem::path source_dir() { return QUASI_SOURCE_DIR; }

}  // namespace quasi::test
