// Tests numbers, tables and live lines as text.

#include <gtest/gtest.h>

#include <cmath>

#include "client/diagnose/bug_report.hpp"
#include "client/views/job_view.hpp"
#include "client/views/live_view.hpp"
#include "client/views/readable.hpp"
#include "client/views/table.hpp"

namespace quasi::client {
namespace {

Console silent_console() { return {Format::kTable, Terminal{}, true, false}; }

v1::Job running_job(const std::string& id, const std::string& name, std::int64_t done,
                    std::int64_t total) {
  v1::Job job;
  job.set_id(id);
  job.mutable_spec()->set_name(name);
  job.set_state(v1::JOB_STATE_RUNNING);
  job.mutable_progress()->set_phase("scattering 3ph");
  job.mutable_progress()->set_done(done);
  job.mutable_progress()->set_total(total);
  return job;
}

TEST(ClientText, SizesHaveThreeDigitsAtMost) {
  EXPECT_EQ(readable_bytes(0), "0 B");
  EXPECT_EQ(readable_bytes(1023), "1023 B");
  EXPECT_EQ(readable_bytes(1024), "1.0 KiB");
  EXPECT_EQ(readable_bytes(4404019), "4.2 MiB");
  EXPECT_EQ(readable_bytes(std::uint64_t{1023} << 10 | 1000), "1.0 MiB");  // 1023.98 KiB
  EXPECT_EQ(readable_bytes(std::uint64_t{64} << 30), "64 GiB");
  EXPECT_EQ(readable_bytes(~std::uint64_t{0}), "16 EiB");
}

TEST(ClientText, DurationsReadAsPeopleSayThem) {
  EXPECT_EQ(readable_seconds(0.84), "0.8 s");
  EXPECT_EQ(readable_seconds(42.4), "42 s");
  EXPECT_EQ(readable_seconds(59.7), "1 min 00 s");
  EXPECT_EQ(readable_seconds(252), "4 min 12 s");
  EXPECT_EQ(readable_seconds(11100), "3 h 05 min");
  EXPECT_EQ(readable_seconds(187200), "2 d 4 h");
  EXPECT_EQ(readable_seconds(-3), "0 s");
  EXPECT_EQ(readable_seconds(std::nan("")), "0 s");
}

TEST(ClientText, DurationsAreReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_duration_seconds("90"), 90.0);
  EXPECT_EQ(parse_duration_seconds("90s"), 90.0);
  EXPECT_EQ(parse_duration_seconds("15m"), 900.0);
  EXPECT_EQ(parse_duration_seconds("15min"), 900.0);
  EXPECT_EQ(parse_duration_seconds("1.5h"), 5400.0);
  EXPECT_EQ(parse_duration_seconds("1h30m"), 5400.0);
  EXPECT_EQ(parse_duration_seconds("2d"), 172800.0);
  EXPECT_EQ(parse_duration_seconds("250ms"), 0.25);
  for (const char* wrong :
       {"", "h", "1h30", "30m1h", "1x", "-5s", "1..5s", "5 s", "0x10", "nan", "1e3"})
    EXPECT_FALSE(parse_duration_seconds(wrong)) << wrong;
}

TEST(ClientText, TimesAreUtcInDocuments) {
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(rfc3339(1772368205250), "2026-03-01T12:30:05.250Z");
  EXPECT_EQ(rfc3339(-1), "1969-12-31T23:59:59.999Z");
}

// A name or a log line from another machine must not move the cursor or change the title of a
// terminal.
TEST(ClientText, NothingFromOutsideReachesTheTerminalAsControl) {
  EXPECT_EQ(printable("a\x1b[31mb\x07\x7f"), "a?[31mb??");
  EXPECT_EQ(printable("a\xC2\x9B"
                      "31m"),
            "a?31m");  // the one-byte form of ESC [
  EXPECT_EQ(printable("\xC3\xA4\tx\n"), "\xC3\xA4 x\n");
}

TEST(ClientText, TablesAlignByCharactersNotBytes) {
  Table table({{"NAME"}, {"SIZE", Table::Align::kRight}});
  table.add({"κ of Si", "7"});
  table.add({"a", "1234"});
  EXPECT_EQ(table.text(),
            "NAME     SIZE\n"
            "κ of Si     7\n"
            "a        1234\n");
}

// A narrow window loses the columns of least interest. State and name stay.
TEST(ClientText, ColumnsAreDroppedInOrderUntilALineFits) {
  Table table({{"ID"}, {"NAME"}, {"AGE", Table::Align::kRight}, {"STATE"}});
  table.add({"j_1", "silicon", "3 min", "running"});
  table.fit(30, {2, 1});
  EXPECT_EQ(table.text(), "ID   NAME       AGE  STATE\nj_1  silicon  3 min  running\n");
  table.fit(25, {2, 1});
  EXPECT_EQ(table.text(), "ID   NAME     STATE\nj_1  silicon  running\n");
  std::vector<std::size_t> painted;
  table.text([&](int, std::size_t column, const std::string& cell) {
    painted.push_back(column);
    return cell;
  });
  EXPECT_EQ(painted, (std::vector<std::size_t>{0, 1, 3, 0, 1, 3})) << "columns keep their numbers";
  table.fit(2, {2, 1});
  EXPECT_EQ(table.text(), "ID   STATE\nj_1  running\n") << "other columns are never dropped";
}

// A window that became narrower has wrapped the drawn lines, so the cursor must go up further.
TEST(ClientText, DrawnLinesAreCountedAsTheWindowWrapsThem) {
  EXPECT_EQ(rows_on_terminal({}, 80), 0u);
  EXPECT_EQ(rows_on_terminal({79, 40, 0}, 80), 3u);
  EXPECT_EQ(rows_on_terminal({79, 40, 0}, 40), 4u);
  EXPECT_EQ(rows_on_terminal({79, 40, 0}, 30), 6u);
}

TEST(ClientText, RowsStayOneLineWhateverACellHolds) {
  Table table({{"NAME"}});
  table.add({"two\nlines\x1b[2J"});
  EXPECT_EQ(table.text(), "NAME\ntwo lines?[2J\n");
}

TEST(ClientText, ShortIdsGrowUntilTheyDiffer) {
  EXPECT_EQ(short_ids({"j_01J9QK3V8NAAAAAAAAAAAAAAAA"}),
            (std::vector<std::string>{"j_01J9QK3V8N"}));
  EXPECT_EQ(short_ids({"j_01J9QK3V8NAAAAAAAAAAAAAAAA", "j_01J9QK3V8NAABAAAAAAAAAAAAA"}),
            (std::vector<std::string>{"j_01J9QK3V8NAAA", "j_01J9QK3V8NAAB"}));
}

TEST(ClientText, ProgressBarsStayInTheirBounds) {
  EXPECT_EQ(progress_bar(0.0, 12), "[..........]");
  EXPECT_EQ(progress_bar(0.5, 12), "[#####.....]");
  EXPECT_EQ(progress_bar(1.0, 12), "[##########]");
  EXPECT_EQ(progress_bar(7.0, 12), "[##########]");
  EXPECT_EQ(progress_bar(std::nan(""), 12), "[..........]");
}

TEST(ClientText, TimeLeftComesFromThePaceSinceThePhaseWasSeen) {
  PaceOfJob pace;
  v1::Progress progress;
  progress.set_phase("a");
  progress.set_total(100);
  progress.set_done(40);  // work done before this client looked does not count for the pace
  pace.see(progress, 1'000'000);
  EXPECT_LT(pace.seconds_left(1'000'000), 0.0);
  progress.set_done(60);
  pace.see(progress, 1'010'000);
  EXPECT_NEAR(pace.seconds_left(1'010'000), 20.0, 1e-9);
  EXPECT_NEAR(pace.seconds_left(1'015'000), 15.0, 1e-9);
  progress.set_phase("b");
  progress.set_done(0);
  pace.see(progress, 1'020'000);
  EXPECT_LT(pace.seconds_left(1'020'000), 0.0);
}

TEST(ClientText, LiveLinesFitTheTerminal) {
  Console console = silent_console();
  const std::string id = "j_01J9QK3V8NAAAAAAAAAAAAAAAA";
  const LiveView view(console, {id});
  const std::map<std::string, v1::Job> jobs{{id, running_job(id, "silicon κ", 52, 100)}};
  const auto wide = view.lines(jobs, 0, 200, 20);
  ASSERT_EQ(wide.size(), 1u);
  EXPECT_EQ(wide[0], "j_01J9QK3V8N  silicon κ  running    scattering 3ph [######......]  52 %");
  for (std::size_t columns = 1; columns < 90; ++columns)
    EXPECT_LE(display_width(view.lines(jobs, 0, columns, 20).at(0)), columns);
}

TEST(ClientText, ACrowdOfJobsIsSummedUpWithTheRunningOnesShown) {
  Console console = silent_console();
  std::vector<std::string> ids;
  std::map<std::string, v1::Job> jobs;
  for (int i = 0; i < 30; ++i) {
    const std::string id = "j_01J9QK3V8N" + std::string(14, 'A') + static_cast<char>('0' + i / 10) +
                           static_cast<char>('0' + i % 10);
    ids.push_back(id);
    jobs[id] = running_job(id, "n", 1, 2);
    if (i != 29) jobs[id].set_state(v1::JOB_STATE_QUEUED);
  }
  const LiveView view(console, ids);
  const auto lines = view.lines(jobs, 0, 120, 10);
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_NE(lines[0].find("running"), std::string::npos);
  EXPECT_EQ(lines[9], "and 21 more: 21 queued");
}

TEST(ClientText, ColoursObeyEveryWayOfSayingNo) {
  const auto with = [](const char* term, const char* no_color) {
    return [term, no_color](const char* name) -> const char* {
      if (std::string(name) == "TERM") return term;
      if (std::string(name) == "NO_COLOR") return no_color;
      return nullptr;
    };
  };
  EXPECT_TRUE(Terminal::detect(false, with("xterm", nullptr)).colour);
  EXPECT_TRUE(Terminal::detect(false, with("xterm", "")).colour);
  EXPECT_FALSE(Terminal::detect(false, with("xterm", "1")).colour);
  EXPECT_FALSE(Terminal::detect(false, with("dumb", nullptr)).colour);
  EXPECT_FALSE(Terminal::detect(false, with(nullptr, nullptr)).colour);
  EXPECT_FALSE(Terminal::detect(true, with("xterm", nullptr)).colour);

  const Console coloured(Format::kTable, Terminal{.out = true, .err = false, .colour = true}, false,
                         false);
  EXPECT_EQ(coloured.paint(Colour::kRed, "x"), "\033[31mx\033[0m");
  EXPECT_EQ(coloured.paint_err(Colour::kRed, "x"), "x");
  const Console plain(Format::kTable, Terminal{.out = true, .err = true, .colour = false}, false,
                      false);
  EXPECT_EQ(plain.paint(Colour::kRed, "x"), "x");
}

TEST(ClientText, LiveLinesNameTheBiasPointAndTheReasonToWait) {
  Console console = silent_console();
  const std::string id = "j_01J9QK3V8NAAAAAAAAAAAAAAAA";
  LiveView view(console, {id});
  std::map<std::string, v1::Job> jobs{{id, running_job(id, "iv", 52, 100)}};
  auto& metrics = *jobs[id].mutable_progress()->mutable_metrics();
  metrics["current_a_per_m"] = 28.066;
  metrics["bias_vgs_v"] = 0.4;
  metrics["bias_vds_v"] = 0.05;
  EXPECT_NE(view.lines(jobs, 0, 200, 20)
                .at(0)
                .find("  bias vds 0.05 V  bias vgs 0.4 V  current 28.07 A/m"),
            std::string::npos)
      << view.lines(jobs, 0, 200, 20).at(0);
  jobs[id].set_state(v1::JOB_STATE_QUEUED);
  view.set_waiting(id, "2 jobs are ahead of it");
  EXPECT_NE(view.lines(jobs, 0, 200, 20).at(0).find("queued     2 jobs are ahead of it"),
            std::string::npos)
      << view.lines(jobs, 0, 200, 20).at(0);
  view.set_waiting(id, "");
  EXPECT_EQ(view.lines(jobs, 0, 200, 20).at(0).find("ahead"), std::string::npos);
}

TEST(ClientText, NamesGiveUpTheirUnits) {
  const auto says = [](const char* key, const char* name, const char* unit) {
    const NamedUnit split = split_unit(key);
    EXPECT_EQ(split.name, name) << key;
    EXPECT_EQ(split.unit, unit) << key;
  };
  says("highest_omega_rad_ps", "highest omega", "rad/ps");
  says("current_a_per_m", "current", "A/m");
  says("bias_vgs_v", "bias vgs", "V");
  says("temperatures_k", "temperatures", "K");
  says("points_k", "points k", "");  // a number of k-points has no unit
  says("mesh", "mesh", "");
}

TEST(ClientText, AReportHidesTheHomeFolder) {
  EXPECT_EQ(without_home("/home/a/x /home/a/y", "/home/a/"), "~/x ~/y");
  EXPECT_EQ(without_home("/x", "/"), "/x");
  EXPECT_EQ(without_home("/x", ""), "/x");
}

}  // namespace
}  // namespace quasi::client
