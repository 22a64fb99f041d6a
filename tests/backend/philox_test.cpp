#include "workers/backend/philox.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace quasi {
namespace {

// Known answers of the generator's authors (Random123, kat_vectors, philox4x32-10).
TEST(Philox, KnownAnswers) {
  const std::vector<std::vector<std::uint32_t>> cases{
      {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
      {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
       0x94fdcceb, 0x5001e420, 0x24126ea1}};
  for (const auto& c : cases) {
    const Philox words = Philox::at(c[0], c[1], c[2], c[3], c[4], c[5]);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(words.word[i], c[static_cast<std::size_t>(6 + i)]);
  }
}

TEST(Philox, UniformNumbersFillTheirRange) {
  constexpr std::int64_t kRange = 3'000'000'000'000;
  double sum = 0.0, square = 0.0;
  std::vector<int> bin(10, 0);
  constexpr int kDraws = 100000;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const Philox words = Philox::at(i, 1, 2, 3, 4, 5);
    const double u = words.unit();
    sum += u;
    square += u * u;
    const std::int64_t n = words.below(kRange);
    ASSERT_GE(n, 0);
    ASSERT_LT(n, kRange);
    EXPECT_NEAR(static_cast<double>(n) / kRange, u, 1e-9) << "both come from the same 64 bits";
    ++bin[static_cast<std::size_t>(10.0 * u)];
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * 0.2887 / std::sqrt(kDraws));
  EXPECT_NEAR(square / kDraws, 1.0 / 3.0, 5 * 0.298 / std::sqrt(kDraws));
  for (const int n : bin) EXPECT_NEAR(n, kDraws / 10, 5 * std::sqrt(0.09 * kDraws));
}

}  // namespace
}  // namespace quasi
