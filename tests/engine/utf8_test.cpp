#include "workers/engine/utf8.hpp"

#include <gtest/gtest.h>

namespace quasi {
namespace {

TEST(Utf8, TextThatIsUtf8StaysAsItIs) {
  const std::string text = "κ = 3 W/m/K, “a\\b”\n\tℏω ≤ 4 meV";
  EXPECT_EQ(as_utf8(text, 1000), text);
  EXPECT_EQ(as_utf8("", 10), "");
}

// A deck in Latin-1 can bring such bytes into an error message. protobuf refuses them.
TEST(Utf8, AnotherEncodingIsShownAsReplaced) {
  EXPECT_EQ(as_utf8("element 'S\xfc'", 100), "element 'S\xef\xbf\xbd'");
  EXPECT_EQ(nlohmann::json::parse(indented({{"name", "S\xfc"}}))["name"], "S\xef\xbf\xbd");
}

TEST(Utf8, IsCutBetweenCharacters) {
  const std::string text = "aκκκ";  // one byte and three times two bytes
  for (std::size_t limit = 0; limit <= text.size(); ++limit)
    EXPECT_EQ(as_utf8(text, limit), text.substr(0, limit == 0 ? 0 : 1 + (limit - 1) / 2 * 2))
        << limit;
  const std::string foreign = as_utf8(std::string(1000, '\xff'), 1000);
  EXPECT_EQ(foreign.size(), 999u);  // 333 replacements of three bytes
}

}  // namespace
}  // namespace quasi
