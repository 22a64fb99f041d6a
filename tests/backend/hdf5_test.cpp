#include "workers/io/hdf5.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

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

// Digests of results then say whether two runs agree.
TEST(Hdf5, TheSameDataAreTheSameBytes) {
  const test::TemporaryDirectory directory;
  const auto bytes = [&](const char* name) {
    H5Writer writer(directory.path() / name);
    writer.write("/group/values", std::vector<double>{1.0, 2.0}, {2}, "eV");
    writer.create("/group/later", {3}, "1");
    writer.write_text("/group/status", "converged");
    writer.attribute("/", "kind", "mosfet");
    writer.commit();
    std::ifstream in(directory.path() / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string first = bytes("a.h5");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5 counts seconds.
  EXPECT_TRUE(first == bytes("b.h5"));
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

// What a header promises and the file does not hold is refused before memory is asked for.
TEST(Hdf5, SizesThatNoFileHasAreRefused) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "large.h5";
  {
    const H5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    const H5Handle chunked(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    const hsize_t extent[] = {1ull << 31, 1ull << 31, 4},
                  chunk[] = {1, 1, 4};  // 2^64 values: 0 where integers wrap
    H5Pset_chunk(chunked.id(), 3, chunk);
    const H5Handle space(H5Screate_simple(3, extent, nullptr), H5Sclose);
    const H5Handle made(H5Dcreate2(file.id(), "/x", H5T_NATIVE_DOUBLE, space.id(), H5P_DEFAULT,
                                   chunked.id(), H5P_DEFAULT),
                        H5Dclose);
    ASSERT_GE(made.id(), 0);
  }
  try {
    H5Reader(path).doubles("/x");
    FAIL() << "read";
  } catch (const InvalidInput& failure) {
    EXPECT_NE(
        std::string(failure.what()).find("dataset '/x' says that it has 18446744073709551616"),
        std::string::npos)
        << failure.what();
  }
}

// A text is one: of a list of texts, reading the first alone is not what HDF5 would do.
TEST(Hdf5, TextsThatAreNotOneTextAreRefused) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "texts.h5";
  {
    const H5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    const H5Handle fixed(H5Tcopy(H5T_C_S1), H5Tclose), variable(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(fixed.id(), 64);
    H5Tset_size(variable.id(), H5T_VARIABLE);
    const hsize_t many = 256;
    const H5Handle list(H5Screate_simple(1, &many, nullptr), H5Sclose),
        empty(H5Screate(H5S_NULL), H5Sclose), one(H5Screate(H5S_SCALAR), H5Sclose);
    for (const auto& [name, type, space] : {std::tuple{"/fixed", fixed.id(), list.id()},
                                            {"/variable", variable.id(), list.id()},
                                            {"/nothing", fixed.id(), empty.id()},
                                            {"/unset", variable.id(), one.id()}}) {
      const H5Handle dataset(
          H5Dcreate2(file.id(), name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
          H5Dclose);
      const H5Handle attribute(H5Acreate2(dataset.id(), "a", type, space, H5P_DEFAULT, H5P_DEFAULT),
                               H5Aclose);
    }
    const H5Handle number(H5Dcreate2(file.id(), "/number", H5T_NATIVE_DOUBLE, one.id(), H5P_DEFAULT,
                                     H5P_DEFAULT, H5P_DEFAULT),
                          H5Dclose);
  }
  const H5Reader reader(path);
  for (const auto& [name, words] : {std::pair{"/fixed", "must hold one text, holds 256"},
                                    {"/variable", "must hold one text, holds 256"},
                                    {"/nothing", "must hold one text, holds 0"},
                                    {"/number", "is not text"}})
    for (const bool of_attribute : {false, true}) {
      if (of_attribute && std::string(name) == "/number") continue;
      try {
        of_attribute ? reader.text_attribute(name, "a") : reader.text(name);
        ADD_FAILURE() << name << " was taken for a text";
      } catch (const InvalidInput& failure) {
        EXPECT_NE(std::string(failure.what()).find(words), std::string::npos) << failure.what();
        EXPECT_NE(std::string(failure.what()).find("texts.h5"), std::string::npos)
            << failure.what();
      }
    }
  EXPECT_EQ(reader.text("/unset"), "");
}

}  // namespace
}  // namespace quasi
