#pragma once

#include <gtest/gtest.h>

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

/// Expects that a deck is refused with a message that contains both texts.
inline void expect_refusal(const std::string& deck, const std::string& field,
                           const std::string& remedy) {
  const std::string message = refusal_of_deck(deck);
  EXPECT_NE(message.find(field), std::string::npos) << deck << "\n" << message;
  EXPECT_NE(message.find(remedy), std::string::npos) << deck << "\n" << message;
}

/// Returns the position of a k-point in the list of kets.
inline std::size_t position_of_ket(const Calculation& run, const WaveVectorElements& at_q,
                                   const Vec3& k) {
  for (std::size_t i = 0; i < at_q.elements.k_index.size(); ++i) {
    IVec3 whole{};
    const auto ik = static_cast<std::size_t>(at_q.elements.k_index[i]);
    if (nearest_lattice_point(run.field.waves.k[ik] - k, &whole)) return i;
  }
  ADD_FAILURE() << "no k-point " << k[0];
  return 0;
}

}  // namespace quasi::gw::test
