#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/input/deck.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw::test {

/// Returns the plan of a deck for the processor, as `validate` makes it.
/// @param directory  of the files that the deck names
/// @throws InvalidInput if the deck is refused.
inline Plan plan_of_deck(const std::string& deck, const std::filesystem::path& directory = ".") {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  SilentProgress silent;
  return validated_plan(parse_deck(deck, {}, "test", directory),
                        {.team = team, .memory_budget_bytes = std::int64_t{1} << 30}, silent);
}

/// Returns the message with which a deck is refused, or an empty one if it is planned.
inline std::string refusal_of_deck(const std::string& deck,
                                   const std::filesystem::path& directory = ".") {
  try {
    plan_of_deck(deck, directory);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

}  // namespace quasi::gw::test
