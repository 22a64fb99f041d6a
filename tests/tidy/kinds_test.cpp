// Tests that client and server contain no names of kinds. The messages name the kinds, and the
// engine names their files.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "tests/support/reference_data.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::set<std::string> matches(const std::string& text, const std::string& pattern) {
  std::set<std::string> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    found.insert((*match)[1]);
  return found;
}

/// Kinds that take a deck, as job.proto lists them.
std::set<std::string> kinds() {
  return matches(text_of(source_dir() / "proto/quasi/v1/job.proto"), R"(DeckWork (\w+) = \d)");
}

/// Names of deck files without their wildcards, from the table of the kind's task.
std::set<std::string> deck_file_names(const std::string& kind) {
  const std::string task = text_of(source_dir() / "workers" / kind / (kind + "_task.cpp"));
  const auto begin = task.find("deck_file_patterns()");
  if (begin == std::string::npos) return {};
  const std::string table = task.substr(begin, task.find(';', begin) - begin);
  std::set<std::string> names;
  for (std::string name : matches(table, "\"([^\"]+)\"")) {
    name = name.substr(0, name.find('*'));
    if (!name.empty()) names.insert(name);  // "*.toml" names no kind
  }
  return names;
}

TEST(Kinds, ClientAndServerNameNone) {
  std::set<std::string> words = kinds();
  ASSERT_GE(words.size(), 3U) << "job.proto lists the kinds in another way now";
  for (const std::string& kind : kinds()) {
    const auto names = deck_file_names(kind);
    EXPECT_FALSE(names.empty() && kind != "mosfet") << "no table of deck files in " << kind;
    words.insert(names.begin(), names.end());
  }
  for (const char* room : {"client", "server"})
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() / room)) {
      // The Python package reads results, which differ by kind.
      const bool python = entry.path().string().find("client/python/") != std::string::npos;
      if (!entry.is_regular_file() || python) continue;
      const std::string text = text_of(entry.path());
      for (const std::string& word : words) {
        const std::regex whole("(^|[^A-Za-z0-9_])" +
                               std::regex_replace(word, std::regex(R"(\.)"), "\\.") +
                               "($|[^A-Za-z0-9_])");
        EXPECT_FALSE(std::regex_search(text, whole))
            << fs::relative(entry.path(), source_dir()) << " names '" << word
            << "', which a kind of job owns; ask the messages or the engine for it";
      }
    }
}

}  // namespace
}  // namespace quasi::test
