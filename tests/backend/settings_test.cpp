#include "workers/io/settings.hpp"

#include <gtest/gtest.h>

#include "workers/backend/error.hpp"

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

}  // namespace
}  // namespace quasi
