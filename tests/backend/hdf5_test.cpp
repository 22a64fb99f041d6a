#include "workers/io/hdf5.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
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

// Equal files allow comparing two runs by the digests of their results.
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
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5 stores whole seconds
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

// A file that is shorter than its header states is refused before memory is allocated.
TEST(Hdf5, SizesThatNoFileHasAreRefused) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "large.h5";
  {
    const H5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    const H5Handle chunked(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    const hsize_t extent[] = {1ull << 31, 1ull << 31, 4},
                  chunk[] = {1, 1, 4};  // 2^64 values, which is 0 after integer overflow
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

/// The failure of reading "/x" as numbers; "" if it was read.
std::string failure_of_reading(const std::filesystem::path& path) {
  try {
    H5Reader(path).doubles("/x");
    return "";
  } catch (const InvalidInput& failure) {
    return failure.what();
  }
}

/// Makes "/x" with the properties that `describe` sets.
void write_dataset(const std::filesystem::path& path, hsize_t extent,
                   const std::function<void(hid_t)>& describe) {
  const H5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  const H5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  describe(creation.id());
  const H5Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
  const H5Handle made(H5Dcreate2(file.id(), "/x", H5T_NATIVE_DOUBLE, space.id(), H5P_DEFAULT,
                                 creation.id(), H5P_DEFAULT),
                      H5Dclose);
  ASSERT_GE(made.id(), 0);
}

// A small file could otherwise name any file of the machine, whose bytes would then appear as
// numbers.
TEST(Hdf5, ValuesOfOtherFilesAreRefused) {
  const test::TemporaryDirectory directory;
  const auto secret = directory.path() / "secret";
  std::ofstream(secret) << "TOP-SECRET-VALUE";
  const auto path = directory.path() / "hostile.h5";
  write_dataset(path, 2, [&](hid_t creation) { H5Pset_external(creation, secret.c_str(), 0, 16); });
  EXPECT_NE(failure_of_reading(path).find("external storage"), std::string::npos)
      << failure_of_reading(path);
  EXPECT_THROW(H5Reader(path).shape("/x"), InvalidInput);
  EXPECT_THROW(
      H5Reader(path).slab("/x", std::vector<std::int64_t>{0}, std::vector<std::int64_t>{1}),
      InvalidInput);

  const auto other = directory.path() / "other.h5";
  {
    H5Writer writer(other);
    writer.write_scalar("/x", 1.0, "1");
    writer.write_text("/group/note", "another's");
    writer.commit();
  }
  const hsize_t one = 1;
  const H5Handle source(H5Screate_simple(1, &one, nullptr), H5Sclose);
  write_dataset(path, 1, [&](hid_t creation) {
    H5Pset_virtual(creation, source.id(), other.c_str(), "/x", source.id());
  });
  EXPECT_NE(failure_of_reading(path).find("virtual"), std::string::npos)
      << failure_of_reading(path);

  {
    const H5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    H5Lcreate_external(other.c_str(), "/x", file.id(), "/x", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external(other.c_str(), "/group", file.id(), "/group", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/group/note", file.id(), "/soft", H5P_DEFAULT, H5P_DEFAULT);
  }
  EXPECT_NE(failure_of_reading(path).find("no dataset '/x' of its own"), std::string::npos)
      << failure_of_reading(path);
  EXPECT_THROW(H5Reader(path).children("/group"), InvalidInput);
  EXPECT_THROW(H5Reader(path).text("/group/note"), InvalidInput);
  EXPECT_THROW(H5Reader(path).text("/soft"), InvalidInput);
  EXPECT_FALSE(H5Reader(path).has("/group/note"));
}

// The reader allocates for what a file of this size can hold, not for what its header states.
TEST(Hdf5, ASmallFileThatAnnouncesMuchIsRefused) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "bomb.h5";
  write_dataset(path, 300'000'000, [](hid_t) {});
  EXPECT_NE(failure_of_reading(path).find("says that it has 300000000"), std::string::npos)
      << failure_of_reading(path);
  write_dataset(path, 1'000, [](hid_t) {});
  EXPECT_EQ(failure_of_reading(path), "") << "fill values of a small dataset are no fault";
  {
    H5Writer writer(path);
    const std::vector<float> zeros(4 << 20, 0.0F);
    const std::int64_t extent[] = {4 << 20};
    writer.write_compressed("/x", zeros, extent, "1");
    writer.commit();
  }
  EXPECT_EQ(failure_of_reading(path), "") << "zeros compress as well as anything can";
}

// A list of texts is refused, because reading only its first text would differ from HDF5's
// behaviour.
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
    for (const bool is_attribute : {false, true}) {
      if (is_attribute && std::string(name) == "/number") continue;
      try {
        is_attribute ? reader.text_attribute(name, "a") : reader.text(name);
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
