// Tests of the lines of logs and of ids, which server and worker share.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "proto/wire/text/ids.hpp"
#include "proto/wire/text/log_line.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::wire {
namespace {

using Json = nlohmann::ordered_json;

TEST(LogLine, IsOneObjectWithItsTimeFirst) {
  const Json facts{{"path", "a \"name\"\nof two lines"}, {"bytes", 12}, {"raw", "\xff\x1b[2J"}};
  const std::string line = log_line(LogLevel::kWarning, "disk_full", facts, LogForm::kJson);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  const Json read = Json::parse(line);
  std::string keys;
  for (const auto& [key, value] : read.items()) keys += key + " ";
  EXPECT_EQ(keys, "time level event path bytes raw ");
  EXPECT_EQ(read["time"].get<std::string>().size(), std::string("2026-01-01T00:00:00.000Z").size());
  EXPECT_EQ(read["level"], "warning");
  EXPECT_EQ(read["event"], "disk_full");
  EXPECT_EQ(read["path"], facts["path"]);
  EXPECT_EQ(read["bytes"], 12);
  EXPECT_EQ(read["raw"], "\xef\xbf\xbd\x1b[2J") << "a byte that is no UTF-8 is replaced";
}

TEST(LogLine, ForATerminalHasNoControlCharacters) {
  const Json facts{{"name", "\x1b[31mred\n"}, {"bytes", 12}};
  const std::string line = log_line(LogLevel::kInfo, "started", facts, LogForm::kText);
  EXPECT_EQ(line.substr(line.find(' ')), " info started name=\"\\u001b[31mred\\n\" bytes=12\n");
}

TEST(LogLine, WithoutFactsIsAnEvent) {
  const std::string line = log_line(LogLevel::kError, "ended", Json::object(), LogForm::kText);
  EXPECT_EQ(line.substr(line.find(' ')), " error ended\n");
}

TEST(Ids, HoldTheirTimeAndTheirRandomBits) {
  EXPECT_EQ(make_id('j', 0, {0, 0}), "j_" + std::string(26, '0'));
  EXPECT_EQ(make_id('w', 33, {31, 1U << 5}), "w_0000000011Z000000001000000");
  EXPECT_LT(make_id('j', 1'700'000'000'000, {~0ULL, ~0ULL}),
            make_id('j', 1'700'000'000'001, {0, 0}));
  EXPECT_TRUE(is_id(make_id('a', 1'700'000'000'000, {0x0123456789abcdef, ~0ULL}), 'a'));
}

}  // namespace
}  // namespace quasi::wire
