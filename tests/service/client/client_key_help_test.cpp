// Tests `quasi help KEY`: the terminal shows the entry of the reference page.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "client/failure.hpp"
#include "client/input/arguments.hpp"
#include "client/input/key_help.hpp"

namespace quasi::client {
namespace {

std::string help_of(const std::string& key) { return parse_arguments({"help", key}).text; }

TEST(ClientKeyHelp, ShowsTableDefaultAndMeaning) {
  EXPECT_EQ(help_of("lease_ttl"),
            "operations: Configuration of the server\n"
            "  key      lease_ttl\n"
            "  type     number\n"
            "  unit     s\n"
            "  default  60\n"
            "  range    0.5 … 3600\n"
            "  meaning  a worker without a heartbeat for this time loses its jobs\n");
  EXPECT_EQ(help_of("oxide_top_nm"),
            "mosfet_keys: [geometry]\n"
            "  key      geometry.oxide_top_nm\n"
            "  type     number\n"
            "  unit     nm\n"
            "  default  1\n"
            "  range    0.1 … 20\n"
            "  meaning  thickness of the oxide below the top gate\n");
  const std::string boundary = help_of("boundary_length_nm");
  EXPECT_NE(boundary.find("  meaning  adds the rate |v|/L; 0: none\n"), std::string::npos)
      << boundary;
}

TEST(ClientKeyHelp, KeysAreFoundAloneWithTheirTableAndWithTheirKind) {
  EXPECT_EQ(help_of("mesh.nx"), help_of("nx"));
  EXPECT_EQ(help_of("mosfet.mesh.nx"), help_of("nx"));
  EXPECT_EQ(help_of("NGRID"), help_of("thermal.ngrid"));
  EXPECT_EQ(help_of("thermal.cut4"), help_of("cut4"));
  EXPECT_NE(help_of("valley.mx").find("[[valley]]"), std::string::npos);
  // One name may be a key of several kinds; the kind in front chooses one.
  EXPECT_NE(help_of("compat").find("gw_keys: "), std::string::npos);
  EXPECT_NE(help_of("compat").find("thermal_keys: "), std::string::npos);
  EXPECT_EQ(help_of("gw.compat").find("thermal_keys: "), std::string::npos);
}

TEST(ClientKeyHelp, AWordThatIsNeitherCommandNorKeyIsRefused) {
  EXPECT_THROW(parse_arguments({"help", "ngird"}), Failure);
  EXPECT_EQ(key_help("ngird"), "");
  EXPECT_EQ(key_help(""), "");
}

Failure refusal_of(const std::string& word) {
  try {
    help_of(word);
  } catch (const Failure& failure) {
    return failure;
  }
  return {ExitStatus::kOk, "", ""};
}

TEST(ClientKeyHelp, AnUnknownWordSuggestsNearKeysAndCommands) {
  EXPECT_EQ(refusal_of("ngird").what(), std::string("no command and no key 'ngird'; did you mean "
                                                    "'ngrid'?"));
  EXPECT_NE(std::string(refusal_of("sbumit").what()).find("'submit'"), std::string::npos);
  EXPECT_NE(std::string(refusal_of("mesh.nxx").what()).find("'mesh.nx'"), std::string::npos);
  EXPECT_EQ(refusal_of("broad").remedy.find("names with this word: "), 0u);
  EXPECT_NE(refusal_of("broad").remedy.find("scalebroad"), std::string::npos);
  EXPECT_NE(refusal_of("comple").remedy.find("completion"), std::string::npos);
  EXPECT_EQ(refusal_of("zzzzzz").remedy, "see: quasi help");
}

TEST(ClientKeyHelp, EveryKeyOfThePagesHasAnEntry) {
  std::map<std::string, std::set<std::string>> keys;
  for (const ReferencePage& page : reference_pages())
    for (const KeyEntry& entry : key_entries(page))
      for (const std::string& key : entry.keys) {
        keys[page.name].insert(key);
        EXPECT_NE(key_help(key).find("  " + entry.columns.back().first + ' '), std::string::npos)
            << key;
        EXPECT_NE(key_help(key).find(entry.columns.back().second), std::string::npos) << key;
      }
  // A page whose tables are not understood would give few keys.
  EXPECT_GE(keys["gw_keys"].size(), 85u);
  EXPECT_GE(keys["mosfet_keys"].size(), 85u);
  EXPECT_GE(keys["thermal_keys"].size(), 85u);
  EXPECT_GE(keys["operations"].size(), 65u);
  EXPECT_GE(keys["cli"].size(), 7u);
}

TEST(ClientKeyHelp, EmbeddedTablesAreThoseOfThePages) {
  const std::filesystem::path folder = QUASI_EXAMPLES_DIR "/../docs/reference";
  for (const ReferencePage& page : reference_pages()) {
    std::ifstream file(folder / (page.name + ".md"));
    ASSERT_TRUE(file) << page.name;
    for (std::string line; std::getline(file, line);)
      if (line.starts_with('|')) {
        EXPECT_NE(page.text.find(line + '\n'), std::string::npos) << page.name << ": " << line;
      }
  }
}

}  // namespace
}  // namespace quasi::client
