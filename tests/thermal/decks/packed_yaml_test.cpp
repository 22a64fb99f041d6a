// Tests yaml files of phono3py that are packed by xz or gzip.

#include <gtest/gtest.h>

#include <lzma.h>
#include <zlib.h>

#include <fstream>
#include <iterator>

#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/phonopy_twin.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/phonopy/phonopy_deck.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string packed_by_xz(const std::string& text) {
  std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(
                6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()),
                text.size(), reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size()),
            LZMA_OK);
  packed.resize(size);
  return packed;
}

std::string packed_by_gzip(const std::string& text, const fs::path& file) {
  const gzFile out = gzopen(file.c_str(), "wb");
  EXPECT_EQ(gzwrite(out, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  gzclose(out);
  return text_of(file);
}

PhonopyDeck read(const fs::path& place) {
  return read_phonopy_deck(place, assignments_of({{"ngrid", "4 4 4"}, {"T", "300"}}));
}

// A packed yaml gives the bits of the plain one. A file that is cut off or changed is refused by
// name, and a plain file goes before a packed one.
TEST(PackedYaml, GivesTheSameBitsOrIsRefused) {
  const test::OwnDeck own;
  const quasi::test::TemporaryDirectory directory;
  const fs::path place = directory.path(), plain = place / "phono3py_disp.yaml";
  const test::PhonopyTwin twin(own, place, true);
  const PhonopyDeck wanted = read(place);
  const std::string text = text_of(plain);
  std::ofstream(place / "phono3py_disp.yaml.xz") << "no archive";
  EXPECT_EQ(read(place).files.front(), plain);
  fs::remove(place / "phono3py_disp.yaml.xz");
  fs::remove(plain);
  for (const char* ending : {".xz", ".gz"}) {
    const fs::path file = place / (std::string("phono3py_params.yaml") + ending);
    const std::string packed =
        ending == std::string(".xz") ? packed_by_xz(text) : packed_by_gzip(text, place / "packed");
    std::ofstream(file, std::ios::binary) << packed;
    const PhonopyDeck deck = read(place);
    EXPECT_EQ(deck.files.front(), file);
    EXPECT_EQ(deck.crystal.lattice_nm, wanted.crystal.lattice_nm);
    EXPECT_EQ(deck.crystal.mass_amu, wanted.crystal.mass_amu);
    ASSERT_EQ(deck.second.images.size(), wanted.second.images.size());
    for (std::size_t i = 0; i < deck.second.images.size(); ++i)
      EXPECT_EQ(deck.second.images[i].value, wanted.second.images[i].value);
    for (const std::string& broken :
         {packed.substr(0, packed.size() / 2), packed.substr(0, 30) + "x" + packed.substr(31)}) {
      std::ofstream(file, std::ios::binary) << broken;
      try {
        read(place);
        ADD_FAILURE() << "no refusal of a damaged " << ending;
      } catch (const InvalidInput& refusal) {
        EXPECT_NE(std::string(refusal.what()).find(file.filename().string()), std::string::npos)
            << refusal.what();
      }
    }
    fs::remove(file);
  }
}

}  // namespace
}  // namespace quasi::thermal
