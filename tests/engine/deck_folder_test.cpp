// Tests which files of a folder that a deck names are sent to a server with the deck.

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_directory.hpp"
#include "workers/engine/deck_files.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_of(const std::string& kind, const fs::path& deck) {
  std::vector<std::string> names;
  for (const DeckFile& file : deck_files(kind, deck)) names.push_back(file.path.string());
  return names;
}

void write(const fs::path& path, const std::string& text = "x") { std::ofstream(path) << text; }

// A folder of Quantum ESPRESSO belongs to the deck with all its plain files. Another folder that a
// text happens to name does not.
TEST(DeckFolder, AMarkedFolderIsSentWithItsFiles) {
  const test::TemporaryDirectory directory;
  const fs::path deck = directory.path() / "deck.toml", save = directory.path() / "si.save";
  write(deck, "kind = \"gw\"\n[meanfield]\nsave = \"si.save/\"\ncrystal = \"silicon\"\n");
  fs::create_directories(save / "inner");
  fs::create_directories(directory.path() / "silicon");
  write(directory.path() / "silicon/WFN");
  for (const char* name : {"wfc1.dat", "Si.pz", ".hidden", "inner/wfc2.dat"}) write(save / name);
  EXPECT_EQ(names_of("gw", deck), std::vector<std::string>{"deck.toml"});
  write(save / "data-file-schema.xml");
  EXPECT_EQ(names_of("gw", deck),
            (std::vector<std::string>{"deck.toml", "si.save/Si.pz", "si.save/data-file-schema.xml",
                                      "si.save/wfc1.dat"}));
}

// The folders of displaced crystals in a list of the deck belong to it, too.
TEST(DeckFolder, FoldersOfDisplacedCrystalsAreSent) {
  const test::TemporaryDirectory directory;
  const fs::path deck = directory.path() / "deck.toml";
  write(deck, "kind = \"gw\"\n[perturbation]\ndisplaced = [\"z+\", \"z-\"]\n");
  for (const char* folder : {"z+", "z-"}) {
    fs::create_directories(directory.path() / folder);
    for (const char* name : {"VSC", "VKB"}) write(directory.path() / folder / name);
  }
  EXPECT_EQ(names_of("gw", deck),
            (std::vector<std::string>{"deck.toml", "z+/VKB", "z+/VSC", "z-/VKB", "z-/VSC"}));
}

}  // namespace
}  // namespace quasi
