// Keywords of epsilon.inp and sigma.inp, by the deck that they make.

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/deck.hpp"

namespace quasi::gw {
namespace {

class BerkeleyGwInputs : public testing::Test {
 protected:
  /// The deck that the two files make; an empty text leaves out its file.
  Deck deck(const std::string& epsilon, const std::string& sigma) const {
    for (const auto& [name, text] : {std::pair{"epsilon.inp", epsilon}, {"sigma.inp", sigma}}) {
      std::filesystem::remove(directory_.path() / name);
      if (!text.empty()) std::ofstream(directory_.path() / name) << text;
    }
    std::ofstream(directory_.path() / "WFNq") << "";
    return read_deck(directory_.path(), {});
  }

  quasi::test::TemporaryDirectory directory_;
};

// The manual of BerkeleyGW states plasma_freq in eV, with the default of two Rydberg.
TEST_F(BerkeleyGwInputs, ThePlasmaFrequencyIsInElectronvolts) {
  const std::string good = "epsilon_cutoff 4\nnumber_bands 14\nfrequency_dependence 2\n";
  EXPECT_EQ(deck(good + "plasma_freq 27.21138506\n", "").epsilon.imaginary_scale_ry, 2.0);
  // The manual rounds two Rydberg to 27.2114 eV.
  EXPECT_NEAR(deck(good + "plasma_freq 27.2114\n", "").epsilon.imaginary_scale_ry, 2.0, 2e-6);
  EXPECT_EQ(deck(good, "").epsilon.imaginary_scale_ry, 2.0);
}

}  // namespace
}  // namespace quasi::gw
