// Whole jobs with a band path: the method that they state, the decks that they refuse, and bands
// that repeat the quasiparticles of the grid.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/gw/support/loop_files.hpp"
#include "tests/gw/support/silicon_fixture.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

/// Runs a deck on the CPU.
Calculation run(const Deck& deck) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  return run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
}

/// Deck of a small job whose [sigma] holds `sigma`.
Deck small_deck(const std::string& sigma,
                const std::string& mean_field =
                    "source = \"epm\"\ncutoff_ry = 4.0\nk_grid = [2, 2, 2]\nbands = 10\n") {
  return parse_deck("[meanfield]\n" + mean_field + "[epsilon]\ncutoff_ry = 2.0\n[sigma]\n" + sigma,
                    {}, "test", ".");
}
const std::string kPath = "band_path = [[0.0, 0.0, 0.0], [0.0, 0.5, 0.5]]\nband_path_points = 2\n";

// A job states how it followed bands. Files without H give bands by rank; by character they are
// refused before anything is read, and so are keys without effect.
TEST(BandCharacter, AJobSaysHowItFollowedBands) {
  EXPECT_EQ(run(small_deck(kPath)).band_order.rfind("character", 0), 0u);
  EXPECT_EQ(run(small_deck(kPath + "band_order = \"energy\"\n")).band_order.rfind("energy, as", 0),
            0u);
  quasi::test::TemporaryDirectory directory;
  const auto deck = quasi::test::write_loop_job(directory.path(), kPath);
  const Calculation ranked = run(read_deck(deck, {}));
  EXPECT_EQ(ranked.band_order.rfind("energy: without meanfield.vsc", 0), 0u);
  EXPECT_EQ(ranked.quasiparticle_bands.size(), 1u);
  const auto refused = [](const std::string& sigma, const std::string& mean_field,
                          const std::string& word) {
    try {
      small_deck(sigma, mean_field);
      ADD_FAILURE() << sigma;
    } catch (const InvalidInput& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  const std::string files = "wfn = \"WFN\"\nrho = \"RHO\"\nwfnq = \"WFNq\"\n",
                    epm = "source = \"epm\"\n";
  refused(kPath + "band_order = \"character\"\n", files, "meanfield.vsc");
  refused(kPath + "band_order = \"character\"\nouter_loop = \"qsgw0\"\n", epm, "band_order");
  refused("band_order = \"energy\"\n", epm, "has no effect without sigma.band_path");
}

// A job from files: where the path meets points of the grid, bands.dat repeats eqp1.dat. H between
// the k-points comes from fitted projectors, hence 1e-6 eV.
TEST(BandCharacter, AJobOfFilesRepeatsItsGrid) {
  QUASI_NEED_REFERENCE("gw/si2");
  test::ReferenceCase files("si2");
  for (const char* name : {"WFN", "WFNq", "RHO", "VXC", "VSC", "VKB"}) files.file(name);
  const Calculation result =
      run(parse_deck("[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\nvxc = "
                     "\"VXC\"\nvsc = \"VSC\"\nvkb = \"VKB\"\n"
                     "[epsilon]\ncutoff_ry = 2.0\nbands = 10\n[sigma]\nmethod = \"cohsex\"\nbands "
                     "= 10\nbare_cutoff_ry = 6.0\nband_max = 8\n" +
                         kPath,
                     {}, "test", files.directory()));
  EXPECT_EQ(result.band_order.rfind("character", 0), 0u);
  const PathBands &mf = result.mean_field_bands.at(0), &qp = result.quasiparticle_bands.at(0);
  ASSERT_EQ(mf.k.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const int ik = result.field.zone.rotation_to(mf.k[i]).irreducible;
    std::vector<double> listed_mf, listed_qp, found_mf, found_qp;
    for (const Quasiparticle& state : result.quasiparticles)
      if (state.k_index == ik) {
        listed_mf.push_back(state.mean_field_ev);
        listed_qp.push_back(*state.qp1_ev);
      }
    for (std::size_t b = 0; b < mf.energy_ev.size(); ++b) {
      found_mf.push_back(mf.energy_ev[b][i]);
      found_qp.push_back(qp.energy_ev[b][i]);
      EXPECT_NEAR(result.band_share.at(0)[b][i], 1.0, 1e-6);
    }
    for (auto* list : {&listed_mf, &listed_qp, &found_mf, &found_qp})
      std::sort(list->begin(), list->end());
    ASSERT_EQ(listed_mf.size(), found_mf.size());
    for (std::size_t b = 0; b < listed_mf.size(); ++b) {
      EXPECT_NEAR(found_mf[b], listed_mf[b], 1e-6);
      EXPECT_NEAR(found_qp[b], listed_qp[b], 1e-6);
    }
  }
}

}  // namespace
}  // namespace quasi::gw
