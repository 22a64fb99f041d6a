#pragma once

#include <filesystem>
#include <string>

namespace quasi::test {

/// Directory of results of other programs (environment QUASI_REFERENCE_DIR, else the build's
/// default).
std::filesystem::path reference_dir();

/// Root of the source tree, for examples.
std::filesystem::path source_dir();

}  // namespace quasi::test

/// Skips the test with a message if the reference data are not on this machine.
#define QUASI_NEED_REFERENCE(relative)                                     \
  if (!std::filesystem::exists(quasi::test::reference_dir() / (relative))) \
  GTEST_SKIP() << "reference data not here: " << quasi::test::reference_dir() / (relative)
