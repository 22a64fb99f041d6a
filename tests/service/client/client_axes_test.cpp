// Tests the axes of sweeps: lists, linear and logarithmic ranges, and tables.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "client/failure.hpp"
#include "client/input/sweeps/sweep_axes.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::client {
namespace {

using Words = std::vector<std::string>;

Words values_of(const v1::SweepAxis& axis) {
  Words values;
  for (const v1::SweepPoint& point : axis.points())
    for (const std::string& value : point.values()) values.push_back(value);
  return values;
}

Words read(const std::string& text) {
  const v1::SweepAxis axis = axis_of(text);
  EXPECT_EQ(axis.keys_size(), 1);
  return values_of(axis);
}

/// The sentence of the refusal of an axis, or of a table if its name is given.
std::string refusal(const std::string& text, const std::string& table = "") {
  try {
    if (table.empty())
      (void)axis_of(text);
    else
      (void)axis_of_table(text, table);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.status, table.empty() ? ExitStatus::kUsage : ExitStatus::kInvalidInput);
    EXPECT_FALSE(failure.remedy.empty()) << text;
    return failure.what();
  }
  ADD_FAILURE() << text << " was accepted";
  return "";
}

void expect_says(const std::string& what, const std::string& words) {
  EXPECT_NE(what.find(words), std::string::npos) << what;
}

TEST(SweepAxes, ListsAreSplitAtTheirSeparator) {
  EXPECT_EQ(read("T=300, 400,500"), (Words{"300", "400", "500"}));
  EXPECT_EQ(read("ngrid=8 8 8;12 12 12"), (Words{"8 8 8", "12 12 12"}));
  EXPECT_EQ(read("point=1,2,3;4,5,6"), (Words{"1,2,3", "4,5,6"})) << "commas of a value";
  EXPECT_EQ(read("name=a:b:c"), (Words{"a:b:c"})) << "no numbers, so no range";
  EXPECT_EQ(axis_of("scheme=weno").keys(0), "scheme");
}

TEST(SweepAxes, ARangeIncludesBothEnds) {
  EXPECT_EQ(read("T=300:500:5"), (Words{"300", "350", "400", "450", "500"}));
  EXPECT_EQ(read("vg=0:-0.3:4"), (Words{"0", "-0.1", "-0.2", "-0.3"}));
  EXPECT_EQ(read("x=1:2:4").at(1), "1.33333333333") << "12 significant digits";
}

// Neighbours of a logarithmic range have one ratio, here the cube root of 1000.
TEST(SweepAxes, ALogarithmicRangeHasEqualRatios) {
  EXPECT_EQ(read("n=log:1e15:1e18:4"), (Words{"1e+15", "1e+16", "1e+17", "1e+18"}));
  EXPECT_EQ(read("n=log:-1:-100:3"), (Words{"-1", "-10", "-100"})) << "two ends of one sign";
  const Words values = read("n=log:2:9:6");
  for (std::size_t i = 1; i < values.size(); ++i)
    EXPECT_NEAR(std::stod(values[i]) / std::stod(values[i - 1]), std::pow(4.5, 0.2), 1e-10);
  EXPECT_EQ(values.back(), "9");
}

TEST(SweepAxes, WrongTextsAreRefusedWithTheForm) {
  expect_says(refusal("300,400"), "has no '=' after a key");
  expect_says(refusal("=300,400"), "has no '=' after a key");
  expect_says(refusal("T=300,,400"), "a value is empty");
  expect_says(refusal("T=1:2:1"), "count must be a whole number of 2...10000, got 1");
  expect_says(refusal("T=1:2:2.5"), "got 2.5");
  expect_says(refusal("T=1:2:10001"), "got 10001");
  expect_says(refusal("T=1:2:many"), "got many");
  expect_says(refusal("T=log:1:100"), "three numbers");
  expect_says(refusal("T=log:one:100:3"), "start and stop must be numbers");
  expect_says(refusal("T=log:-1:100:3"), "two ends of one sign");
  expect_says(refusal("T=log:0:100:3"), "none of them 0");
}

TEST(SweepTables, HaveAKeyInEachColumn) {
  const v1::SweepAxis axis = axis_of_table(
      "T, ngrid,title\r\n300,\"4,4,4\",\"a \"\"b\"\"\"\n\n400 , 8 8 8,\"two\nlines\"", "grid.csv");
  EXPECT_EQ(Words(axis.keys().begin(), axis.keys().end()), (Words{"T", "ngrid", "title"}));
  EXPECT_EQ(axis.points_size(), 2) << "an empty line is none";
  EXPECT_EQ(values_of(axis), (Words{"300", "4,4,4", "a \"b\"", "400", "8 8 8", "two\nlines"}));
}

TEST(SweepTables, ThatAreWrongAreRefusedByRecord) {
  expect_says(refusal("", "grid.csv"), "grid.csv: has no line with values");
  expect_says(refusal("T,ngrid\n", "grid.csv"), "grid.csv: has no line with values");
  expect_says(refusal("T,ngrid\n300,4\n400\n", "grid.csv"),
              "record 3 has 1 cells, and the first line has 2 keys");
  expect_says(refusal("T\n\"300\n", "grid.csv"), "a quoted cell does not end");
}

v1::JobSpec template_job() {
  v1::JobSpec job;
  job.set_name("grid");
  job.mutable_thermal()->set_deck("deck.toml");
  return job;
}

TEST(Sweeps, CombineTheirAxesAndTheTable) {
  const test::TemporaryDirectory folder;
  const std::string table = (folder.path() / "grid.csv").string();
  std::ofstream(table) << "T,ngrid\n300,4 4 4\n400,8 8 8\n";
  const v1::Sweep sweep = sweep_of({.axes = {"scalebroad=0.1:1:10"},
                                    .table = table,
                                    .max_concurrent = 2,
                                    .stop_after_failures = 3,
                                    .stop_when = {"kappa.xx<50"}},
                                   template_job());
  EXPECT_EQ(sweep.axes_size(), 2);
  EXPECT_EQ(sweep.max_concurrent(), 2u);
  EXPECT_EQ(sweep.stop_after_failures(), 3u);
  EXPECT_EQ(sweep.stop_rules(0).figure(), "kappa.xx");
  EXPECT_EQ(point_text(sweep, 0), "scalebroad=0.1 T=300 ngrid=4 4 4");
  EXPECT_EQ(point_text(sweep, 19), "scalebroad=1 T=400 ngrid=8 8 8") << "the last axis is fastest";
  EXPECT_EQ(point_text(sweep, 1), "scalebroad=0.1 T=400 ngrid=8 8 8");
  // Along each axis from the first job on: eight of ten values with both ends, and both lines of
  // the table.
  EXPECT_EQ(samples_of(sweep), (std::vector<std::size_t>{0, 2, 4, 6, 10, 12, 14, 18, 1}));
}

TEST(Sweeps, BeyondALimitAreRefusedByField) {
  JobRequest request;
  request.spec = template_job();
  request.files = {{.slot = "deck.toml", .path = "deck.toml", .size_bytes = 10}};
  v1::Sweep sweep = sweep_of({.axes = {"a=1:100:100", "b=1:101:101"}}, request.spec);
  try {
    check_sweep_limits(sweep, request);
    FAIL() << "10,100 jobs were accepted";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.status, ExitStatus::kInvalidInput);
    expect_says(failure.what(), "must have at most 10000 combinations");
    ASSERT_FALSE(failure.violations.empty());
    EXPECT_EQ(failure.violations.front().field, "sweep.axes");
  }
  sweep.mutable_axes()->RemoveLast();
  EXPECT_NO_THROW(check_sweep_limits(sweep, request));
}

}  // namespace
}  // namespace quasi::client
