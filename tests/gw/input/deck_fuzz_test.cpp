// Decks and wavefunction files spoilt at random: each is refused by name, or taken; none ends the
// program.

#include <gtest/gtest.h>

#include <fstream>

#include "tests/gw/support/silicon_files.hpp"
#include "tests/support/hostile_deck.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/gw/gw_task.hpp"
#include "workers/gw/input/text_files.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

constexpr const char* kDeck = R"(kind = "gw"
compat = "none"
checkpoint_interval_s = 30.0
[meanfield]
source = "epm"
crystal = "gaas"
cell = "primitive"
cutoff_ry = 4.0
k_grid = [2, 2, 2]
bands = 10
q0 = [0.001, 0.0, 0.0]
[epsilon]
cutoff_ry = 2.0
bands = 9
real_max_ev = 20.0
real_step_ev = 0.5
imaginary_points = 10
broadening_ev = 0.1
[sigma]
method = "contour"
bands = 9
band_min = 1
band_max = 5
derivative = "central"
solution = "graphical"
spectrum_step_ev = 0.25
band_path = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
[coulomb]
truncation = "none"
)";

constexpr const char* kEpsilonInp =
    "epsilon_cutoff 2.0   # Ry\nnumber_bands 8\nband_occupation 4*1 "
    "4*0\ngcomm_matrix\nfrequency_dependence 0\n"
    "begin qpoints\n 0.001 0.0 0.0 1.0 1\n 0 0 0.5 1.0 0\n 0 1 1 2.0 0\nend\n";
constexpr const char* kSigmaInp =
    "screened_coulomb_cutoff 2.0d0\nbare_coulomb_cutoff 4.0\nnumber_bands 8\nband_index_min 1\n"
    "band_index_max 4\nscreening_semiconductor\nfrequency_dependence 1\nfinite_difference_form 0\n"
    "finite_difference_spacing 0.5\ninvalid_gpp_mode 0\nbegin kpoints\n 0 0 0 1\n 0 0 1 2\nend\n";

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void put(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

class SpoiltGwDeck : public testing::Test {
 protected:
  void write_files() {
    const MeanField silicon = test::silicon_for_files(4.0, 8);
    test::write_files_of(silicon, directory_.path());
    PlaneWaveField potential = silicon.density;
    potential.header.title = "VXC-Complex";
    write_field(path("VXC"), potential);
  }
  void check(const std::filesystem::path& deck) {
    make_gw_task()->validate({.path = deck, .settings = {}}, find_device("cpu"));
  }
  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }

  quasi::test::TemporaryDirectory directory_;
  std::string deck_, change_;
};

TEST_F(SpoiltGwDeck, Toml) {
  put(path("deck.toml"), kDeck);
  ASSERT_NO_THROW(check(path("deck.toml")));
  quasi::test::HostileDeck hostile(quasi::test::fuzz_seed());
  const auto tally = quasi::test::fuzz(
      400,
      {"line ", "kind", "compat", "checkpoint_interval_s", "stop_after", "meanfield", "epsilon",
       "sigma", "coulomb"},
      20.0,
      [&](int) {
        deck_ = hostile.spoil(kDeck, &change_);
        put(path("deck.toml"), deck_);
        check(path("deck.toml"));
      },
      [&] { return change_ + "\n" + deck_; });
  EXPECT_GE(tally.refused, 130);
  EXPECT_GE(tally.accepted, 30) << "decks that are nearly right are part of it";
}

TEST_F(SpoiltGwDeck, FieldDecks) {
  write_files();
  put(path("epsilon.inp"), kEpsilonInp);
  put(path("sigma.inp"), kSigmaInp);
  ASSERT_NO_THROW(check(directory_.path()));
  quasi::test::HostileDeck hostile(quasi::test::fuzz_seed() + 1);
  const auto tally = quasi::test::fuzz(
      400,
      {"epsilon.inp", "sigma.inp", "WFN", "band_occupation", "epsilon.", "sigma.", "q-point",
       "k-point"},
      20.0,
      [&](int i) {
        deck_ = hostile.spoil(i % 2 == 0 ? kEpsilonInp : kSigmaInp, &change_);
        put(path("epsilon.inp"), i % 2 == 0 ? deck_ : kEpsilonInp);
        put(path("sigma.inp"), i % 2 == 0 ? kSigmaInp : deck_);
        check(directory_.path());
      },
      [&] { return change_ + "\n" + deck_; });
  EXPECT_GE(tally.refused, 130);
  EXPECT_GE(tally.accepted, 30);
}

TEST_F(SpoiltGwDeck, WavefunctionFiles) {
  write_files();
  put(path("deck.toml"),
      "kind = \"gw\"\n[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\n"
      "[epsilon]\ncutoff_ry = 2.0\nbands = 8\n[sigma]\nbands = 8\nband_max = 4\n");
  ASSERT_NO_THROW(check(path("deck.toml")));
  quasi::test::HostileDeck hostile(quasi::test::fuzz_seed() + 2);
  const char* const files[]{"WFN", "WFNq", "RHO"};
  const std::string good[]{bytes_of(path("WFN")), bytes_of(path("WFNq")), bytes_of(path("RHO"))};
  std::string name;
  const auto tally = quasi::test::fuzz(
      400, {"WFN", "RHO"}, 20.0,
      [&](int i) {
        name = files[i % 3];
        put(path(name), hostile.spoil_bytes(good[i % 3], &change_));
        try {
          check(path("deck.toml"));
        } catch (...) {
          put(path(name), good[i % 3]);
          throw;
        }
        put(path(name), good[i % 3]);
      },
      [&] { return name + ": " + change_; });
  EXPECT_GE(tally.refused, 200);
}

}  // namespace
}  // namespace quasi::gw
