#pragma once

#include <filesystem>
#include <string>

#include "examples/thermal/generate/deck_writer.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::thermal::test {

/// The directory of a model crystal's deck. It is written at its first use and removed when the
/// test program ends.
inline std::filesystem::path model(const std::string& name) {
  static const quasi::test::TemporaryDirectory directory;
  const auto path = directory.path() / name;
  if (!std::filesystem::exists(path)) {
    std::filesystem::create_directories(path);
    quasi::model::write_deck(name, path);
  }
  return path;
}

}  // namespace quasi::thermal::test
