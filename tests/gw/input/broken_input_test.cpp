#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>

#include "tests/gw/support/silicon_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/input/text_files.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

// Thirty ways in which input can be broken. Each must end in a sentence that names what is wrong,
// soon.
namespace quasi::gw {
namespace {

/// A small complete set of files: built-in silicon on a 2×2×2 grid, 8 bands.
class BrokenInput : public testing::Test {
 protected:
  static void SetUpTestSuite() { good_ = new MeanField(test::silicon_for_files(4.0, 8)); }
  static void TearDownTestSuite() { delete good_; }

  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }
  void write_good() { test::write_files_of(*good_, directory_.path()); }
  static std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const std::filesystem::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
  }
  /// Writes WFN after `change`.
  void change_waves(const std::function<void(Wavefunctions&)>& change) {
    Wavefunctions copy = good_->waves;
    change(copy);
    write_wavefunctions(path("WFN"), copy);
  }
  void run() {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    const std::string text =
        deck_.empty()
            ? "kind = \"gw\"\n[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\n" +
                  extra_ +
                  "[epsilon]\ncutoff_ry = 2.0\nbands = 8\n[sigma]\nbands = 8\nband_max = 4\n" +
                  sigma_
            : deck_;
    run_calculation(parse_deck(text, {}, "deck.toml", directory_.path()), *kernels,
                    std::int64_t{1} << 30, silent);
  }
  /// Expects InvalidInput whose message holds all of `words`, within two seconds.
  void expect_error(const std::vector<std::string>& words) {
    const auto start = std::chrono::steady_clock::now();
    try {
      run();
      FAIL() << "accepted";
    } catch (const InvalidInput& failure) {
      for (const std::string& word : words)
        EXPECT_NE(std::string(failure.what()).find(word), std::string::npos)
            << failure.what() << "\nlacks: " << word;
    }
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 2.0);
  }

  static inline MeanField* good_ = nullptr;
  quasi::test::TemporaryDirectory directory_;
  std::string deck_, extra_, sigma_;
};

TEST_F(BrokenInput, TheUnbrokenSetIsAccepted) {
  write_good();
  EXPECT_NO_THROW(run());
}
TEST_F(BrokenInput, MissingFile) {
  write_good();
  std::filesystem::remove(path("WFN"));
  expect_error({"WFN", "does not exist"});
}
TEST_F(BrokenInput, EmptyFile) {
  write_good();
  put(path("WFN"), "");
  expect_error({"WFN", "truncated"});
}
TEST_F(BrokenInput, TruncatedInHeader) {
  write_good();
  put(path("WFN"), bytes_of(path("WFN")).substr(0, 300));
  expect_error({"WFN", "truncated"});
}
TEST_F(BrokenInput, TruncatedInCoefficients) {
  write_good();
  const std::string all = bytes_of(path("WFN"));
  put(path("WFN"), all.substr(0, all.size() - 1000));
  expect_error({"WFN", "truncated", "k-point"});
}
TEST_F(BrokenInput, WrongRecordLength) {
  write_good();
  std::string all = bytes_of(path("WFN"));
  all[4 + 96 + 4] = 44;  // The count that opens record 2.
  put(path("WFN"), all);
  expect_error({"WFN", "record 2", "corrupted"});
}
TEST_F(BrokenInput, ClosingCountDiffers) {
  write_good();
  std::string all = bytes_of(path("WFN"));
  all[4 + 96] = 95;
  put(path("WFN"), all);
  expect_error({"WFN", "record 1", "closes with"});
}
TEST_F(BrokenInput, TextInsteadOfBinary) {
  write_good();
  put(path("WFN"), std::string(5000, 'x'));
  expect_error({"WFN", "Fortran unformatted"});
}
TEST_F(BrokenInput, DensityGivenAsWavefunctions) {
  write_good();
  std::filesystem::copy_file(path("RHO"), path("WFN"),
                             std::filesystem::copy_options::overwrite_existing);
  expect_error({"is a RHO file", "WFN"});
}
TEST_F(BrokenInput, WavefunctionsGivenAsDensity) {
  write_good();
  std::filesystem::copy_file(path("WFN"), path("RHO"),
                             std::filesystem::copy_options::overwrite_existing);
  expect_error({"is a WFN file", "RHO"});
}
TEST_F(BrokenInput, UnknownFlavour) {
  write_good();
  std::string all = bytes_of(path("WFN"));
  all.replace(4, 12, "WFN-Complax ");
  put(path("WFN"), all);
  expect_error({"title", "Complex or Real"});
}
TEST_F(BrokenInput, SpinorsAnnouncedButAbsent) {
  write_good();
  std::string all = bytes_of(path("WFN"));
  all[4 + 96 + 4 + 4] = 4;
  put(path("WFN"), all);
  expect_error({"WFN", "band 1 of k-point 1", "record"});
}
TEST_F(BrokenInput, AbsurdNumberOfSymmetries) {
  write_good();
  std::string all = bytes_of(path("WFN"));
  all[4 + 96 + 4 + 4 + 8] = 99;
  put(path("WFN"), all);
  expect_error({"symmetry operations", "99"});
}
TEST_F(BrokenInput, NotANumberInCoefficients) {
  write_good();
  change_waves([](Wavefunctions& w) { w.waves[1].coefficients[0][7] = NAN; });
  expect_error({"WFN", "not a finite"});
}
TEST_F(BrokenInput, NotANumberInEnergies) {
  write_good();
  change_waves([](Wavefunctions& w) { w.energy_ry[3] = NAN; });
  expect_error({"energy", "not a finite"});
}
TEST_F(BrokenInput, BandsNotAscending) {
  write_good();
  change_waves([](Wavefunctions& w) { std::swap(w.energy_ry[0], w.energy_ry[1]); });
  expect_error({"ascending"});
}
TEST_F(BrokenInput, NotNormalised) {
  write_good();
  change_waves([](Wavefunctions& w) {
    for (Cplx& c : w.waves[0].coefficients[0]) c *= 1.1;
  });
  expect_error({"norm", "norm-conserving"});
}
TEST_F(BrokenInput, WeightsDoNotSumToOne) {
  write_good();
  change_waves([](Wavefunctions& w) { w.weight[0] *= 2; });
  expect_error({"weights sum to"});
}
TEST_F(BrokenInput, MissingKPoint) {
  write_good();
  change_waves([](Wavefunctions& w) {
    const double lost = w.weight.back();
    w.k.pop_back();
    w.weight.pop_back();
    w.weight[0] += lost;
    w.waves.pop_back();
    w.last_occupied.pop_back();
    w.first_occupied.pop_back();
    w.energy_ry.resize(w.energy_ry.size() - static_cast<std::size_t>(w.n_bands));
    w.occupation.resize(w.energy_ry.size());
  });
  expect_error({"WFN", "the grid has 8"});
}
TEST_F(BrokenInput, ReducibleKList) {
  write_good();
  change_waves([](Wavefunctions& w) {
    w.k[2] = w.k[1];
    w.waves[2] = w.waves[1];
  });
  expect_error({"follows from an earlier one"});
}
TEST_F(BrokenInput, ShiftedGridInPlaceOfGammaCentred) {
  write_good();
  std::filesystem::copy_file(path("WFNq"), path("WFN"),
                             std::filesystem::copy_options::overwrite_existing);
  expect_error({"WFN"});
}
TEST_F(BrokenInput, UnshiftedSecondSet) {
  write_good();
  std::filesystem::copy_file(path("WFN"), path("WFNq"),
                             std::filesystem::copy_options::overwrite_existing);
  expect_error({"WFNq", "shifted"});
}
TEST_F(BrokenInput, MixedCells) {
  write_good();
  change_waves([](Wavefunctions& w) { w.header.crystal.atoms[0].atomic_number = 32; });
  expect_error({"different calculations", "atomic number"});
}
TEST_F(BrokenInput, MixedGrids) {
  write_good();
  change_waves([](Wavefunctions& w) { w.header.fft_grid[0] += 2; });
  expect_error({"different calculations", "FFT grid"});
}
TEST_F(BrokenInput, VolumeDisagreesWithVectors) {
  write_good();
  change_waves([](Wavefunctions& w) { w.header.crystal.volume_bohr3 *= 1.01; });
  expect_error({"volume"});
}
TEST_F(BrokenInput, OperationThatIsNoSymmetry) {
  write_good();
  change_waves([](Wavefunctions& w) {
    w.header.crystal.symmetries[3].rotation = {{{1, 1, 0}, {0, 1, 0}, {0, 0, 1}}};
  });
  expect_error({"symmetry operation 4", "metric"});
}
TEST_F(BrokenInput, OperationOfHugeEntries) {
  write_good();
  change_waves([](Wavefunctions& w) {
    w.header.crystal.symmetries[3].rotation = {{{2027581265, 0, 0}, {0, -223019009, 0}, {0, 0, 1}}};
  });
  expect_error({"symmetry operation 4", "2027581265", "1000"});
}
TEST_F(BrokenInput, PlaneWaveOffTheGrid) {
  write_good();
  change_waves([](Wavefunctions& w) { w.waves[1].g[4][2] = 134369280; });
  expect_error({"G-vector 5 of k-point 2", "134369280", "FFT grid"});
}
TEST_F(BrokenInput, PlaneWaveTwice) {
  write_good();
  change_waves([](Wavefunctions& w) { w.waves[1].g[4] = w.waves[1].g[2]; });
  expect_error({"G-vector 3 of k-point 2", "twice"});
}
TEST_F(BrokenInput, SingularOperation) {
  write_good();
  change_waves([](Wavefunctions& w) { w.header.crystal.symmetries[3].rotation = {}; });
  expect_error({"symmetry operation 4", "determinant"});
}
TEST_F(BrokenInput, RepeatedPlaneWave) {
  write_good();
  change_waves([](Wavefunctions& w) { w.header.g[5] = w.header.g[4]; });
  expect_error({"occurs twice"});
}
TEST_F(BrokenInput, WrongCharge) {
  write_good();
  PlaneWaveField rho = good_->density;
  for (Cplx& value : rho.values[0]) value *= 0.5;
  write_field(path("RHO"), rho);
  expect_error({"RHO holds 4", "WFN 8"});
}
TEST_F(BrokenInput, Metal) {
  write_good();
  change_waves([](Wavefunctions& w) { w.last_occupied[0] = 3; });
  expect_error({"metals"});
}
TEST_F(BrokenInput, NoEmptyBand) {
  write_good();
  change_waves([](Wavefunctions& w) {
    for (int& n : w.last_occupied) n = 8;
    for (double& f : w.occupation) f = 1;
  });
  expect_error({"all occupied"});
}
TEST_F(BrokenInput, MoreBandsThanTheFileHolds) {
  write_good();
  sigma_ = "";
  deck_ =
      "[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\n[epsilon]\ncutoff_ry = 2\nbands "
      "= 50\n";
  expect_error({"epsilon.bands = 50", "hold 8", "vsc"});
}
TEST_F(BrokenInput, BandsTheWrongWayRound) {
  write_good();
  sigma_ = "band_min = 6\n";
  expect_error({"sigma.band_min = 6", "sigma.band_max = 4"});
}
TEST_F(BrokenInput, UnknownKey) {
  write_good();
  sigma_ = "bandz = 3\n";
  expect_error({"bandz", "did you mean"});
}
TEST_F(BrokenInput, KPointThatIsNotThere) {
  write_good();
  sigma_ = "kpoints = [[0.1, 0, 0]]\n";
  expect_error({"sigma.kpoints", "not among"});
}
TEST_F(BrokenInput, ScreenedBeyondEpsilon) {
  write_good();
  sigma_ = "screened_cutoff_ry = 3.0\n";
  expect_error({"screened_cutoff_ry", "epsilon.cutoff_ry"});
}
TEST_F(BrokenInput, BareBelowScreened) {
  write_good();
  sigma_ = "bare_cutoff_ry = 1.5\n";
  expect_error({"sigma.bare_cutoff_ry = 1.5", "sigma.screened_cutoff_ry = 2"});
}
TEST_F(BrokenInput, VxcWithoutTheBands) {
  write_good();
  put(path("vxc.dat"), "0 0 0 1 0\n1 1 -10.0 0.0\n");
  extra_ = "vxc = \"vxc.dat\"\n";
  expect_error({"vxc.dat", "no "});
}
TEST_F(BrokenInput, VxcThatIsNoTable) {
  write_good();
  put(path("vxc.dat"), "0 0 0 2 0\n1 1 minus ten\n");
  extra_ = "vxc = \"vxc.dat\"\n";
  expect_error({"vxc.dat", "line 2"});
}
TEST_F(BrokenInput, CoulombTableWithoutThePoint) {
  write_good();
  put(path("v.dat"), "0 0 0 0 0 0 100.0\n");
  deck_ =
      "[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\n[epsilon]\ncutoff_ry = "
      "2\n[coulomb]\naverage_file = \"v.dat\"\n";
  expect_error({"v.dat", "no value for q"});
}

}  // namespace
}  // namespace quasi::gw
