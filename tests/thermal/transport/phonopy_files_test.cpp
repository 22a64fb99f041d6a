// Tests the files of phonopy and the sums with coherences that exports write.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <fstream>

#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/thermal_task.hpp"
#include "workers/units/constants.hpp"

namespace quasi {
namespace {

nlohmann::json run(const std::vector<std::string>& settings, const std::filesystem::path& out,
                   const std::vector<std::string>& exports) {
  DeckSource source{.path = test::source_dir() / "examples/thermal/silicon", .settings = {}};
  for (const auto& text : settings) source.settings.push_back(parse_setting(text));
  SilentProgress silent;
  return make_thermal_task()->run(
      {.deck = source, .devices = {Device{}}, .output_directory = out, .exports = exports}, silent);
}

/// Reads a dataset of complex numbers {r, i}.
std::vector<std::complex<double>> complex_values(const std::filesystem::path& file,
                                                 const std::string& name, std::size_t count) {
  std::vector<std::complex<double>> values(count);
  const H5Handle h5(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const H5Handle dataset(H5Dopen2(h5.id(), name.c_str(), H5P_DEFAULT), H5Dclose);
  const H5Handle type(H5Tcreate(H5T_COMPOUND, 16), H5Tclose);
  H5Tinsert(type.id(), "r", 0, H5T_NATIVE_DOUBLE);
  H5Tinsert(type.id(), "i", 8, H5T_NATIVE_DOUBLE);
  EXPECT_GE(H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  return values;
}

// The files of phonopy hold the modes, Grüneisen parameters and path of result.h5 in THz and Å, and
// eigenvectors with the phases of atomic positions. The sum of κ and coherences is in both exports.
TEST(PhonopyFiles, HoldTheHarmonicResults) {
  const test::TemporaryDirectory out;
  const auto summary = run({"ngrid=3,3,3", "T=200,300", "scalebroad=0.5",
                            "path=G 0 0 0 X 0.5 0.5 0 | L 0.5 0.5 0.5 G 0 0 0", "path_points=5"},
                           out.path(), {"phono3py", "bte"});
  const H5Reader result(out.path() / "result.h5"), phonons(out.path() / "phonon-m333.hdf5"),
      gruneisen(out.path() / "gruneisen.hdf5"), band(out.path() / "band.hdf5"),
      kappa(out.path() / "kappa-m333.hdf5");
  const auto same = [](const std::vector<double>& values, const std::vector<double>& wanted,
                       double factor) {
    ASSERT_EQ(values.size(), wanted.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], factor * wanted[i], 1e-12 * (1.0 + std::fabs(values[i])));
  };
  const double thz = 1.0 / (2.0 * units::kPi);
  same(phonons.doubles("/frequency"), result.doubles("/modes/omega"), thz);
  same(gruneisen.doubles("/gruneisen"), result.doubles("/gruneisen/by_mode"), 1.0);
  same(gruneisen.doubles("/frequency"), kappa.doubles("/frequency"), 1.0);
  same(gruneisen.doubles("/qpoint"), kappa.doubles("/qpoint"), 1.0);
  EXPECT_EQ(gruneisen.integers("/weight"), kappa.integers("/weight"));
  EXPECT_EQ(band.shape("/frequency"), (std::vector<std::int64_t>{2, 5, 6}));
  EXPECT_EQ(band.integers("/segment_nqpoint"), (std::vector<std::int64_t>{5, 5}));
  same(band.doubles("/frequency"), result.doubles("/path/omega"), thz);
  same(band.doubles("/group_velocity"), result.doubles("/path/velocity"), 10.0);
  same(band.doubles("/path"), result.doubles("/path/qpoint"), 1.0);
  same(band.doubles("/distance"), result.doubles("/path/distance"), thz / 10.0);

  const auto stored = result.doubles("/modes/eigenvector");
  const auto address = phonons.integers("/grid_address");
  const auto position = result.doubles("/crystal/position");
  const auto vectors = complex_values(out.path() / "phonon-m333.hdf5", "/eigenvector", 27 * 36);
  for (std::size_t q = 0; q < 27; ++q)
    for (std::size_t s = 0; s < 6; ++s)
      for (std::size_t x = 0; x < 6; ++x) {
        double turns = 0.0;
        for (std::size_t d = 0; d < 3; ++d)
          turns += static_cast<double>(address[3 * q + d]) / 3.0 * position[3 * (x / 3) + d];
        const std::size_t at = 2 * ((q * 6 + s) * 6 + x);
        const std::complex<double> wanted = std::complex<double>(stored[at], stored[at + 1]) *
                                            std::polar(1.0, -2.0 * units::kPi * turns);
        EXPECT_LT(std::abs(vectors[(q * 6 + x) * 6 + s] - wanted), 1e-12);
      }

  const auto total = kappa.doubles("/kappa_TOT_exact"), rta = kappa.doubles("/kappa_TOT_RTA");
  std::ifstream text(out.path() / "BTE.KappaTensorVsT_total");
  for (std::size_t t = 0; t < 2; ++t) {
    const double coherence = summary["kappa_coherence_w_per_mk"][t][0][0].get<double>();
    EXPECT_NEAR(total[6 * t], summary["kappa_w_per_mk"][t][0][0].get<double>() + coherence, 1e-9);
    EXPECT_NEAR(rta[6 * t], summary["kappa_rta_w_per_mk"][t][0][0].get<double>() + coherence, 1e-9);
    double line[10];
    for (double& x : line) text >> x;
    EXPECT_EQ(line[0], t == 0 ? 200.0 : 300.0);
    EXPECT_NEAR(line[1] / total[6 * t], 1.0, 1e-4);
  }
}

}  // namespace
}  // namespace quasi
