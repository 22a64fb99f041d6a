// Tests rules of docs/architecture.md that no linter checks.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "tests/tidy/source_tree.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

std::string included(const std::string& line) {
  if (!line.starts_with("#include ")) return {};
  const auto open = line.find_first_of("\"<");
  const auto close = line.find_first_of("\">", open + 1);
  return open == std::string::npos || close == std::string::npos
             ? std::string()
             : line.substr(open + 1, close - open - 1);
}

/// A rule: files below `room` may include, of the project's own rooms, only those in `may`.
struct Direction {
  std::string room;
  std::vector<std::string> may;
};

std::vector<Direction> directions() {
  std::vector<Direction> table{
      {"workers/units/", {"workers/units/"}},
      {"workers/files/", {"workers/files/"}},
      {"workers/backend/", {"workers/backend/", "workers/files/", "workers/units/"}},
      {"workers/io/", {"workers/io/", "workers/backend/", "workers/files/"}},
      // The message for "unknown key, did you mean" has one source for all programs. This part of
      // workers/io needs neither HDF5 nor messages, and a build without the service has it.
      {"workers/cage/", {"workers/cage/"}},
      {"workers/daemon/",
       {"workers/daemon/", "proto/", "workers/files/", "workers/backend/device/host.hpp"}},
      {"server/access/", {"server/access/", "server/queue/refused.hpp", "proto/wire/"}},
      {"server/store/",
       {"server/store/", "server/access/", "server/queue/", "proto/", "workers/files/"}},
      {"server/queue/", {"server/queue/", "server/store/", "proto/"}},
      {"server/figures/", {"server/figures/"}},
      {"server/", {"server/", "proto/"}},
      {"client/", {"client/", "proto/", "workers/files/", "workers/io/settings.hpp"}},
      {"proto/", {"proto/", "workers/files/"}},
      {"proto/wire/config/", {"proto/", "workers/io/settings.hpp"}},
      {"tests/oracle/", {"tests/oracle/"}},
  };
  for (const std::string kind : {"thermal", "mosfet", "gw"}) {
    const std::string room = "workers/" + kind + "/";
    std::vector<std::string> below{"workers/backend/", "workers/units/"};
    const auto add = [&](const std::string& layer, const std::vector<std::string>& more = {}) {
      std::vector<std::string> may = below;
      may.push_back(room + layer + "/");
      may.insert(may.end(), more.begin(), more.end());
      table.push_back({room + layer + "/", may});
    };
    const auto rise = [&](const std::string& layer) { below.push_back(room + layer + "/"); };
    add("physics");
    rise("physics");
    add("model");
    rise("model");
    add("kernels");
    add("input", {"workers/io/"});
    rise("kernels");
    rise("input");
    below.emplace_back("workers/io/");
    add("solver");
    rise("solver");
    add("output");
    table.push_back(
        {room,
         {room, "workers/backend/", "workers/units/", "workers/io/", "workers/engine/task.hpp"}});
  }
  return table;
}

bool is_ours(const std::string& name) {
  static const std::vector<std::string> rooms{"proto/", "server/", "workers/", "client/",
                                              "tests/", "bench/",  "quasi/v1/"};
  return std::any_of(rooms.begin(), rooms.end(),
                     [&](const std::string& room) { return name.starts_with(room); });
}

TEST(Tidy, IncludesPointOneWay) {
  const auto table = directions();
  for (const SourceFile& file : all_cpp_files()) {
    const Direction* rule = nullptr;
    for (const Direction& candidate : table)
      if (file.path.starts_with(candidate.room) &&
          (rule == nullptr || candidate.room.size() > rule->room.size()))
        rule = &candidate;
    if (rule == nullptr) continue;
    for (const std::string& line : file.lines) {
      std::string name = included(line);
      if (name.starts_with("quasi/v1/")) name = "proto/" + name;
      if (name.empty() || !is_ours(name)) continue;
      EXPECT_TRUE(std::any_of(rule->may.begin(), rule->may.end(),
                              [&](const std::string& may) { return name.starts_with(may); }))
          << file.path << " must not include " << name
          << ": docs/architecture.md lists what this room may include";
    }
  }
}

TEST(Tidy, ForeignApisStayInTheirRooms) {
  struct Fence {
    std::string header;
    std::vector<std::string> rooms;
  };
  const std::vector<Fence> fences{
      {"sqlite3.h", {"server/store/", "tests/", "bench/"}},
      {"grpcpp/", {"server/", "client/", "workers/daemon/", "proto/wire/", "tests/", "bench/"}},
      {"hdf5.h", {"workers/io/"}},
      {"CLI/",
       {"server/", "client/", "workers/cage/", "workers/daemon/", "workers/engine/", "tests/",
        "bench/", "examples/"}},
      {"seccomp.h", {"workers/cage/"}},
      {"microhttpd.h", {"server/web/"}},
  };
  for (const SourceFile& file : all_cpp_files()) {
    for (const std::string& line : file.lines) {
      const std::string name = included(line);
      for (const Fence& fence : fences)
        if (name.starts_with(fence.header)) {
          EXPECT_TRUE(std::any_of(fence.rooms.begin(), fence.rooms.end(),
                                  [&](const auto& room) { return file.path.starts_with(room); }))
              << file.path << " includes " << name;
        }
      const bool cuda = name.starts_with("thrust/") || name.starts_with("cub/") ||
                        name.starts_with("cuda") || name.starts_with("cublas") ||
                        name.starts_with("cufft") || name.starts_with("cusolver");
      EXPECT_FALSE(cuda && has_suffix(file.path, {".hpp", ".cpp"}))
          << file.path << " includes " << name << ": CUDA types live in .cu and .cuh files";
    }
  }
}

// docs/decisions/0014-one-place-for-each-primitive.md. Tests replace these functions.
TEST(Tidy, SyncsHaveOnePlace) {
  for (const SourceFile& file : all_cpp_files()) {
    if (file.path.starts_with("workers/files/") || file.path.starts_with("tests/")) continue;
    for (const std::string& line : file.lines)
      EXPECT_TRUE(line.find("fsync(") == std::string::npos &&
                  line.find("fdatasync(") == std::string::npos)
          << file.path << ": use workers/files/durable_file.hpp";
  }
}

TEST(Tidy, OnlyOneConditionalOnTheCompiler) {
  for (const SourceFile& file : all_cpp_files()) {
    if (file.path == "workers/backend/host_device.hpp" || file.path.starts_with("tests/tidy/"))
      continue;
    for (const std::string& line : file.lines)
      EXPECT_FALSE(line.starts_with("#if") && (line.find("CUDA") != std::string::npos))
          << file.path << ": " << line;
  }
}

TEST(Tidy, NoDrawersAndGuardedHeaders) {
  for (const SourceFile& file : all_cpp_files()) {
    const std::string stem = fs::path(file.path).stem().string();
    for (const char* drawer : {"util", "utils", "common", "helpers", "misc"})
      EXPECT_NE(stem, drawer) << file.path << ": name the idea";
    const bool header = has_suffix(file.path, {".hpp", ".cuh"});
    if (header) {
      EXPECT_TRUE(std::find(file.lines.begin(), file.lines.end(), "#pragma once") !=
                  file.lines.end())
          << file.path;
    }
  }
}

// A sanitizer stops every program if a line of its suppressions is not "TYPE:PATTERN".
TEST(Tidy, SuppressionsOfSanitizersAreRules) {
  const std::regex rule("[a-z_]+:[^ ]+");
  int rules = 0;
  for (const SourceFile& file : all_text_files()) {
    if (!file.path.ends_with(".supp")) continue;
    for (const std::string& line : file.lines) {
      if (line.empty() || line.starts_with("#")) continue;
      EXPECT_TRUE(std::regex_match(line, rule)) << file.path << ": " << line;
      ++rules;
    }
  }
  EXPECT_GE(rules, 10) << "no file of suppressions was found";
}

TEST(Tidy, NothingIsLeftUnfinished) {
  // The marks are split in halves, because this file would otherwise violate its own rule.
  const std::vector<std::string> marks{std::string("TO") + "DO", std::string("FIX") + "ME",
                                       std::string("DISABLED") + "_"};
  for (const SourceFile& file : all_cpp_files())
    for (std::size_t at = 0; at < file.lines.size(); ++at)
      for (const std::string& mark : marks)
        EXPECT_EQ(file.lines[at].find(mark), std::string::npos) << file.path << ":" << at + 1;
}

}  // namespace
}  // namespace quasi::test
