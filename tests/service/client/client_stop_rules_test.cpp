// Tests the text of stop rules, and the figures of results that they name.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/failure.hpp"
#include "client/input/sweeps/stop_rules.hpp"

namespace quasi::client {
namespace {

std::string read(const std::string& text) {
  return wire::text_of(condition_of(stop_rule_of(text)));
}

std::string refusal(const std::string& text) {
  try {
    stop_rule_of(text);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.status, ExitStatus::kUsage);
    return failure.what();
  }
  return "";
}

TEST(StopRuleText, IsReadInAllForms) {
  EXPECT_EQ(read("kappa.xx<50"), "kappa.xx < 50");
  EXPECT_EQ(read(" gap_ev >= 1.1e0 : 3 "), "gap_ev >= 1.1 in 3 jobs");
  EXPECT_EQ(read("x<=-0.1"), "x <= -0.1");
  EXPECT_EQ(read("x>0:1"), "x > 0");
}

TEST(StopRuleText, IsRefusedWithTheReason) {
  EXPECT_EQ(refusal("kappa"), "--stop-when 'kappa': it has none of <, <=, > and >=");
  EXPECT_EQ(refusal("<5"), "--stop-when '<5': it names no figure");
  EXPECT_EQ(refusal("x<five"), "--stop-when 'x<five': 'five' is not a number");
  EXPECT_EQ(refusal("x<nan"), "--stop-when 'x<nan': 'nan' is not a number");
  EXPECT_EQ(refusal("x<5:0"), "--stop-when 'x<5:0': the number of jobs must be 1 or more");
  EXPECT_EQ(refusal("x<"), "--stop-when 'x<': '' is not a number");
}

// A summary comes from a worker. Deep nesting ends neither the server nor the client.
TEST(Figures, AreReadFromAnyDocument) {
  const wire::Figures figures = wire::figures_in(
      R"({"summary": {"a": {"b": 2.5}, "one": [7], "many": [1, 2], "word": "w", "none": null,
          "k": [[1, 0, 0], [0, 2, 0], [0, 0, 3]], "seconds": 9}})");
  EXPECT_EQ(wire::number_of(figures, "a.b"), 2.5);
  EXPECT_EQ(wire::number_of(figures, "one"), 7.0);
  EXPECT_EQ(wire::number_of(figures, "k.zz"), 3.0);
  for (const char* name : {"many", "word", "none", "seconds", "a", "k"})
    EXPECT_FALSE(wire::number_of(figures, name)) << name;
  EXPECT_TRUE(wire::figures_in("").empty());
  EXPECT_TRUE(wire::figures_in("[1]").empty());
  const std::string deep = std::string(100'000, '[') + "1" + std::string(100'000, ']');
  EXPECT_TRUE(wire::figures_in("{\"x\": " + deep + "}").empty());
}

}  // namespace
}  // namespace quasi::client
