#include "workers/io/hdf5.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"

namespace quasi {
namespace {

TEST(Hdf5, RoundTripKeepsShapeUnitsAndBits) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "a.h5";
  const std::vector<double> omega{1.0, 1.0 / 3.0, -2e-300, 4.0, 5.0, 6.0};
  {
    H5Writer writer(path);
    writer.write("/modes/omega", omega, {2, 3}, "rad/ps");
    writer.write("/counts", std::vector<std::int64_t>{7, 1LL << 60}, {2}, "1");
    writer.write_scalar("/temperature", 300.0, "K");
    writer.write_text("/deck/digest", "sha256:00");
    writer.commit();
  }
  const H5Reader reader(path);
  EXPECT_EQ(reader.doubles("/modes/omega"), omega);
  EXPECT_EQ(reader.shape("/modes/omega"), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(reader.text_attribute("/modes/omega", "units"), "rad/ps");
  EXPECT_EQ(reader.integers("/counts")[1], 1LL << 60);
  EXPECT_EQ(reader.number("/temperature"), 300.0);
  EXPECT_EQ(reader.text("/deck/digest"), "sha256:00");
  EXPECT_TRUE(reader.has("/modes/omega"));
  EXPECT_FALSE(reader.has("/modes/none"));
  const std::vector<std::int64_t> start{1, 1};
  const std::vector<std::int64_t> count{1, 2};
  EXPECT_EQ(reader.slab("/modes/omega", start, count), (std::vector<double>{5.0, 6.0}));
}

TEST(Hdf5, WithoutCommitNothingStays) {
  const test::TemporaryDirectory directory;
  {
    H5Writer writer(directory.path() / "a.h5");
    writer.write_scalar("/x", 1.0, "1");
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Hdf5, NamesFileAndPathInFailures) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "broken.h5";
  std::ofstream(path) << "not an HDF5 file";
  try {
    const H5Reader reader(path);
    FAIL() << "a text file was opened";
  } catch (const InvalidInput& failure) {
    EXPECT_NE(std::string(failure.what()).find("broken.h5"), std::string::npos);
  }
  EXPECT_THROW(H5Reader(directory.path() / "none.h5"), InvalidInput);
}

}  // namespace
}  // namespace quasi
