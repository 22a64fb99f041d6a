#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/thermal/thermal_task.hpp"

namespace quasi::thermal::test {

/// The shipped deck of silicon.
inline std::filesystem::path silicon() {
  return quasi::test::source_dir() / "examples/thermal/silicon";
}

/// Report of `validate` on silicon with settings.
inline nlohmann::json validate(const std::vector<std::string>& settings) {
  return make_thermal_task()->validate({.path = silicon(), .settings = settings_of(settings)},
                                       Device{});
}
/// True if a report or summary holds a warning with this part.
inline bool warns(const nlohmann::json& report, const std::string& part) {
  for (const auto& warning : report["warnings"])
    if (warning.get<std::string>().find(part) != std::string::npos) return true;
  return false;
}

/// Summary of a run of a deck.
inline nlohmann::json run_deck(const std::filesystem::path& path,
                               const std::vector<std::string>& settings) {
  const quasi::test::TemporaryDirectory place;
  SilentProgress silent;
  RunOptions options{.deck = {.path = path, .settings = settings_of(settings)},
                     .devices = {Device{}},
                     .output_directory = place.path(),
                     .checkpoint_directory = place.path()};
  return make_thermal_task()->run(options, silent);
}

}  // namespace quasi::thermal::test
