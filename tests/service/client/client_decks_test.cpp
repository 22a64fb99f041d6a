// Tests which files of a deck are uploaded.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "client/input/deck.hpp"
#include "tests/service/support/client_files.hpp"

namespace quasi::client {
namespace {

/// Hides the engine of this machine during its life.
class WithoutEngine {
 public:
  WithoutEngine() { ::setenv("QUASI_ENGINE", "/nonexistent/quasi-engine", 1); }
  ~WithoutEngine() { ::unsetenv("QUASI_ENGINE"); }
};

TEST_F(ClientFiles, ADeckDirectoryTravelsWithoutItsResults) {
  for (const char* name : {"CONTROL", "FORCE_CONSTANTS_2ND", "FORCE_CONSTANTS_3RD", "BTE.kappa",
                           "README.md", ".hidden", "T300K/BTE.w"})
    file(std::string("si/") + name, name);
  const Deck deck = collect_deck("thermal", path("si"));
  EXPECT_EQ(deck.slot, "deck");
  std::vector<std::string> slots;
  for (const LocalInput& input : deck.inputs) slots.push_back(input.slot);
  EXPECT_EQ(slots, (std::vector<std::string>{"deck/CONTROL", "deck/FORCE_CONSTANTS_2ND",
                                             "deck/FORCE_CONSTANTS_3RD"}));
  EXPECT_EQ(deck.inputs[0].size_bytes, 7u);
  EXPECT_SAYS(failure_in([&] { collect_deck("gw", path("si")); }), "holds no file of a gw deck");
}

TEST_F(ClientFiles, LinksAreFollowedWhereTheyLeadToPlainFiles) {
  file("scf/WFN", "data");
  fs::create_directories(path("gw"));
  fs::create_symlink("../scf/WFN", path("gw/WFN"));
  const Deck deck = collect_deck("gw", path("gw"));
  ASSERT_EQ(deck.inputs.size(), 1u);
  EXPECT_EQ(deck.inputs[0].slot, "deck/WFN");
  // The file that was examined is the file that is sent, even if the link changes.
  EXPECT_EQ(deck.inputs[0].path, fs::canonical(path("scf/WFN")));
}

TEST_F(ClientFiles, LinksToPrivateFilesAndToNothingAreRefused) {
  file("home/.ssh/id_rsa", "secret");
  fs::create_directories(path("gw"));
  for (const fs::path& target : {path("home/.ssh/id_rsa"), fs::path("/etc/passwd"),
                                 fs::path("/proc/self/environ"), path("nothing")}) {
    fs::create_symlink(target, path("gw/WFN"));
    const Failure failure = failure_in([&] { collect_deck("gw", path("gw")); });
    EXPECT_EQ(failure.status, ExitStatus::kInvalidInput) << target;
    EXPECT_SAYS(failure, "symbolic link");
    EXPECT_NE(failure.remedy.find("cp --remove-destination"), std::string::npos);
    fs::remove(path("gw/WFN"));
  }
  // A hidden folder above the deck itself is no reason to refuse.
  file(".work/gw/kept", "data");
  fs::create_symlink("kept", path(".work/gw/WFN"));
  EXPECT_EQ(collect_deck("gw", path(".work/gw")).inputs.size(), 1u);
}

TEST_F(ClientFiles, ATomlDeckBringsTheFilesItNames) {
  file("d/deck.toml",
       "kind = \"gw\"\n[meanfield]\nwfn = \"WFN\"\nrho = \"sub/RHO\"\nmethod = \"none\"\n");
  file("d/WFN", "w");
  file("d/sub/RHO", "r");
  file("d/other", "o");
  const Deck deck = collect_deck("gw", path("d/deck.toml"));
  EXPECT_EQ(deck.slot, "deck/deck.toml");
  std::vector<std::string> slots;
  for (const LocalInput& input : deck.inputs) slots.push_back(input.slot);
  EXPECT_EQ(slots, (std::vector<std::string>{"deck/WFN", "deck/deck.toml", "deck/sub/RHO"}));

  file("outside", "x");
  file("d/bad.toml", "kind = \"gw\"\nwfn = \"../outside\"\n");
  const Failure failure = failure_in([&] { collect_deck("gw", path("d/bad.toml")); });
  EXPECT_SAYS(failure, "bad.toml:2: '../outside' lies outside the deck's directory");
  EXPECT_EQ(collect_deck("gw", file("d/my deck.toml", "a = 1")).slot, "deck/deck.toml");
}

// A thermal deck in TOML: the files of its directory are uploaded; results and other decks there
// are not.
TEST_F(ClientFiles, ATomlDeckBringsTheDirectoryItNames) {
  file("t/deck.toml", "kind = \"thermal\"\ndirectory = \"si\"\nT = 300\n");
  for (const char* name :
       {"t/si/POSCAR", "t/si/fc2.hdf5", "t/si/fc3.hdf5", "t/si/BORN", "t/si/phono3py_disp.yaml",
        "t/si/result.h5", "t/si/other.toml", "t/unrelated"})
    file(name, "x");
  const auto slots_of = [&](const fs::path& deck) {
    std::vector<std::string> slots;
    for (const LocalInput& input : collect_deck("thermal", deck).inputs)
      slots.push_back(input.slot);
    return slots;
  };
  EXPECT_EQ(slots_of(path("t/deck.toml")),
            (std::vector<std::string>{"deck/deck.toml", "deck/si/BORN", "deck/si/POSCAR",
                                      "deck/si/fc2.hdf5", "deck/si/fc3.hdf5",
                                      "deck/si/phono3py_disp.yaml"}));
  EXPECT_EQ(slots_of(file("t/si/here.toml", "kind = \"thermal\"\ndirectory = \".\"\n")),
            (std::vector<std::string>{"deck/BORN", "deck/POSCAR", "deck/fc2.hdf5", "deck/fc3.hdf5",
                                      "deck/here.toml", "deck/phono3py_disp.yaml"}));
  file("t2/POSCAR", "x");
  EXPECT_SAYS(
      failure_in([&] { collect_deck("thermal", file("t/a.toml", "directory = \"../t2\"")); }),
      "lies outside the deck's directory");
  EXPECT_SAYS(
      failure_in([&] { collect_deck("thermal", file("t/b.toml", "directory = \"gone\"")); }),
      "no directory");
}

std::vector<std::string> slots_of(const Deck& deck) {
  std::vector<std::string> slots;
  for (const LocalInput& input : deck.inputs) slots.push_back(input.slot);
  return slots;
}

// Without an engine the client does not know which files a kind reads. It uploads the whole
// directory of a deck, or all files that a TOML deck names.
TEST_F(ClientFiles, WithoutAnEngineEveryFileOfTheDeckTravels) {
  const WithoutEngine nothing_knows_the_kind;
  for (const char* name : {"a/CONTROL", "a/results/out", "a/.hidden", "a/.git/config"})
    file(name, "x");
  EXPECT_EQ(slots_of(collect_deck("thermal", path("a"))),
            (std::vector<std::string>{"deck/CONTROL", "deck/results/out"}));
  file("t/deck.toml", "directory = \"si\"\nfile = \"table.csv\"\nmethod = \"none\"\n");
  for (const char* name : {"t/si/POSCAR", "t/si/other.toml", "t/table.csv", "t/unrelated"})
    file(name, "x");
  EXPECT_EQ(slots_of(collect_deck("thermal", path("t/deck.toml"))),
            (std::vector<std::string>{"deck/deck.toml", "deck/si/POSCAR", "deck/table.csv"}));
  EXPECT_SAYS(failure_in([&] {
                file("outside", "x");
                collect_deck("gw", file("t/bad.toml", "\nwfn = \"../outside\"\n"));
              }),
              "bad.toml:2: '../outside' lies outside the deck's directory");
  fs::create_directories(path("empty"));
  EXPECT_SAYS(failure_in([&] { collect_deck("gw", path("empty")); }), "holds no file of a gw deck");
  for (int i = 0; i < 65; ++i) file("many/" + std::to_string(i), "x");
  EXPECT_SAYS(failure_in([&] { collect_deck("gw", path("many")); }), "holds 65 files");
  fs::create_directory_symlink(path("t/si"), path("t/link"));
  EXPECT_EQ(slots_of(collect_deck("thermal", file("t/l.toml", "directory = \"link/POSCAR\"\n"))),
            (std::vector<std::string>{"deck/l.toml", "deck/link/POSCAR"}));
}

TEST_F(ClientFiles, NamesThatCannotBeSlotsAreSaidToBeSo) {
  EXPECT_EQ(slot_problem("deck/WFN_2-x.h5"), "");
  for (const char* wrong : {"", "/a", "a//b", "a/", ".a", "a/..", "a b", "a/b/c/d/e/f/g/h/i", "κ"})
    EXPECT_NE(slot_problem(wrong), "") << wrong;
  const WithoutEngine every_file_travels;
  file("d/in put", "x");
  EXPECT_SAYS(failure_in([&] { collect_deck("gw", path("d")); }), "cannot be sent to the server");
  EXPECT_EQ(failure_in([&] { local_input("a", path("nothing")); }).status, ExitStatus::kLocalFile);
  EXPECT_EQ(failure_in([&] { local_input("a b", path("d")); }).status, ExitStatus::kUsage);
}

}  // namespace
}  // namespace quasi::client
