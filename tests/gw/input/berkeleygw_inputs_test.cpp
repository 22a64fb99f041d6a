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
    for (const char* name : {"WFNq", "VXC"}) std::ofstream(directory_.path() / name) << "";
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

// A full-frequency sigma.inp names the energies of Σ(E): around each state by default, on one list
// for all states with frequency_grid_shift 0 (from the zero of the mean field) or 1 (from the Fermi
// energy).
TEST_F(BerkeleyGwInputs, TheEnergiesOfAFullFrequencyJob) {
  const std::string epsilon = "epsilon_cutoff 4\nnumber_bands 14\nfrequency_dependence 2\n",
                    sigma =
                        "screened_coulomb_cutoff 4\nfrequency_dependence 2\n"
                        "frequency_dependence_method 2\ncd_integration_method 2\n";
  const Deck plain = deck(epsilon, sigma);
  EXPECT_EQ(plain.sigma.method, SigmaMethod::kContour);
  EXPECT_FALSE(plain.sigma.spectrum.wanted());
  const SpectrumGrid around =
      deck(epsilon, sigma + "delta_frequency_eval 0.1\nmax_frequency_eval 3\n").sigma.spectrum;
  EXPECT_EQ(around.origin, SpectrumOrigin::kState);
  EXPECT_EQ(around.step_ev, 0.1);
  EXPECT_EQ(around.window_ev, 3.0);
  const std::string list =
      "init_frequency_eval -12.5\ndelta_frequency_eval 0.5\nnumber_frequency_eval 41\n";
  const SpectrumGrid shared =
      deck(epsilon, sigma + list + "frequency_grid_shift 0\n").sigma.spectrum;
  EXPECT_EQ(shared.origin, SpectrumOrigin::kZero);
  EXPECT_EQ(shared.first_ev, -12.5);
  EXPECT_EQ(shared.step_ev, 0.5);
  EXPECT_EQ(shared.points, 41);
  EXPECT_EQ(deck(epsilon, sigma + list + "frequency_grid_shift 1\n").sigma.spectrum.origin,
            SpectrumOrigin::kMidgap);
  // BerkeleyGW refuses such a list around each state, too.
  EXPECT_THROW(deck(epsilon, sigma + list), InvalidInput);
  EXPECT_THROW(deck(epsilon, sigma + "frequency_grid_shift 3\n"), InvalidInput);
  EXPECT_THROW(deck(epsilon, sigma + "frequency_dependence_method 0\n"), InvalidInput);
  EXPECT_THROW(deck(epsilon, sigma + "frequency_grid_shift 0\nnumber_frequency_eval 2\n"),
               InvalidInput);
}

}  // namespace
}  // namespace quasi::gw
