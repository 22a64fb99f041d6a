// The error bar of κ with twenty random choices of eigenvectors inside degenerate sets.

#include <gtest/gtest.h>

#include "tests/thermal/four_phonon/kappa_bar_4ph.hpp"
#include "tests/thermal/support/eigenvector_choice.hpp"

namespace quasi::thermal {
namespace {

TEST(EigenvectorChoiceNightly, TwentyChoicesLeaveTheBarOnKappaHonest) {
  constexpr int kSeeds = 100;
  for (std::uint64_t choice = 1; choice <= 20; ++choice) {
    const auto exact = test::exact_silicon_4ph(Device{}, [&](test::SolvedDeck& solved) {
      test::rotate_degenerate_sets(solved.deck, choice, solved.run.modes);
    });
    for (const bool uniform : {true, false}) {
      const test::KappaBar bar =
          uniform ? test::kappa_bar_4ph(*exact, Device{}, Sampling::kUniform, 4000, kSeeds)
                  : test::kappa_bar_4ph(*exact, Device{}, Sampling::kByWeight, 1200, kSeeds);
      std::printf(
          "    choice %d, %s: root mean square of error/bar %.2f, two bars cover %d of %d\n",
          static_cast<int>(choice), uniform ? "uniform" : "by weight", bar.rms_error_over_bar,
          bar.covered, kSeeds);
      EXPECT_GE(bar.covered, 90);
      EXPECT_LE(bar.covered, 99);
    }
  }
}

}  // namespace
}  // namespace quasi::thermal
