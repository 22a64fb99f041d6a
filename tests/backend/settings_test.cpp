#include "workers/io/settings.hpp"

#include <gtest/gtest.h>

#include "workers/backend/error.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi {
namespace {

TEST(Settings, SplitAtTheFirstEquals) {
  EXPECT_EQ(parse_setting("mesh.nx=65").key, "mesh.nx");
  EXPECT_EQ(parse_setting("name=a=b").value, "a=b");
  EXPECT_THROW(parse_setting("mesh.nx"), InvalidInput);
  EXPECT_THROW(parse_setting("=1"), InvalidInput);
}

TEST(Settings, SuggestTheNearestName) {
  EXPECT_EQ(nearest_name("scalebraod", {"scalebroad", "nticks"}), "scalebroad");
  EXPECT_EQ(nearest_name("qqqqqqqq", {"T"}), "");
}

/// The error for the deck "[a]\nx = 1" with a setting; [a] has one number and one choice.
std::string refusal(const std::string& setting, const std::string& deck = "[a]\nx = 1\n") {
  try {
    const toml::table root = parse_toml(deck, "deck.toml", {parse_setting(setting)});
    TableReader reader(&root, "", "deck.toml");
    TableReader table(reader.table("a"), "a", "deck.toml");
    table.number("x", 0.0, 0.0, 10.0);
    table.choice("way", 0, {"up", "down"});
    table.finish();
    reader.finish();
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

// A wrong setting is named as on the command line; a wrong key of the deck is named with the deck.
TEST(Settings, AreNamedInMessages) {
  EXPECT_EQ(refusal("a.x=2"), "");
  EXPECT_EQ(refusal("a.way=down"), "");
  EXPECT_EQ(refusal("a.y=2"), "unknown key 'y' in --set a.y=2; did you mean 'x'?");
  EXPECT_EQ(refusal("b=2"), "unknown key 'b' in --set b=2; did you mean 'a'?");
  EXPECT_EQ(refusal("b.c.d=word"), "unknown key 'b' in --set b.c.d=word; did you mean 'a'?");
  EXPECT_EQ(refusal("a.x=11"), "--set a.x=11: a.x = 11 is outside 0 … 10");
  EXPECT_EQ(refusal("a.way=\"q\\z"),
            "--set a.way=\"q\\z: a.way = \"\"q\\z\" is not one of \"up\", \"down\"");
  EXPECT_EQ(refusal("a.x=2", "[a]\ny = 1\n"),
            "unknown key 'y' in deck.toml, table [a]; did you mean 'x'?");
  EXPECT_EQ(refusal("a.way=up", "[a]\nx = 11\n"), "deck.toml: a.x = 11 is outside 0 … 10");
}

}  // namespace
}  // namespace quasi
