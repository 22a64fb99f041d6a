// Tests that the documentation agrees with the tree: links, files, tests, keys of decks and of
// configurations, in both directions.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/reference_data.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The text of all .cpp files below a folder.
std::string code_below(const std::string& folder) {
  std::string code;
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() / folder))
    if (entry.path().extension() == ".cpp") code += text_of(entry.path());
  return code;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> found{source_dir() / "README.md"};
  for (const char* room : {"docs", "examples", "deploy"})
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() / room))
      if (entry.path().extension() == ".md") found.push_back(entry.path());
  return found;
}

std::string name_of(const fs::path& page) { return fs::relative(page, source_dir()).string(); }

/// The first group of every match.
Names matches(const std::string& text, const std::string& pattern) {
  Names found;
  const std::regex regex(pattern);
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    found.insert((*match)[1]);
  return found;
}

Names backtick_words(const std::string& text) { return matches(text, "`([^`\n]+)`"); }

/// The anchor of a heading, as common viewers form it.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading)
    if (c == ' ')
      anchor += '-';
    else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
             static_cast<unsigned char>(c) >= 128)
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return anchor;
}

Names anchors_of(const fs::path& page) {
  Names anchors;
  for (const std::string& heading : matches(text_of(page), "(?:^|\n)#+ ([^\n]+)"))
    anchors.insert(anchor_of(heading));
  return anchors;
}

TEST(Docs, LinksAndPicturesLeadSomewhere) {
  for (const fs::path& page : pages())
    for (const std::string& target : matches(text_of(page), "\\]\\(([^)\\s]+)\\)")) {
      if (target.find("://") != std::string::npos ||
          target.find_first_of("./#") == std::string::npos)
        continue;  // [Σ](E) is no link
      const auto hash = target.find('#');
      const fs::path file = hash == 0 ? page : page.parent_path() / target.substr(0, hash);
      EXPECT_TRUE(fs::exists(file)) << name_of(page) << " links to " << target;
      if (hash != std::string::npos && fs::exists(file)) {
        EXPECT_TRUE(anchors_of(file).contains(target.substr(hash + 1)))
            << name_of(page) << " links to " << target;
      }
    }
}

/// questions.txt lists frequent questions and the heading that answers each.
TEST(Docs, QuestionsHaveAnAnswer) {
  std::ifstream table(source_dir() / "tests/tidy/questions.txt");
  int questions = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    ++questions;
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(line, parts, std::regex("(.+) \\| ([^#]+)#(.+)"))) << line;
    EXPECT_TRUE(anchors_of(source_dir() / parts[2].str()).contains(parts[3])) << line;
  }
  EXPECT_GE(questions, 12);
}

/// Sentences of a page's prose, without code, tables, headings, pictures and formulas.
std::vector<std::string> sentences_of(const std::string& page) {
  const std::string prose = std::regex_replace(page, std::regex("```[^`]*```"), "");
  std::vector<std::string> sentences;
  std::istringstream lines(prose);
  std::string sentence;
  const auto end = [&] {
    if (sentence.find(" = ") == std::string::npos) sentences.push_back(sentence);
    sentence.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    const std::regex own("\\s*(\\| |[#!]|[-*] |[0-9]+\\. ).*");
    if (line.empty() || std::regex_match(line, own)) end();
    if (line.empty() || line.starts_with("| ") || line.find_first_of("#!") == 0) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      sentence += word + ' ';
      if (std::string(".:;?!").find(word.back()) != std::string::npos) end();
    }
  }
  end();
  return sentences;
}

TEST(Docs, SentencesAreShort) {
  constexpr std::ptrdiff_t kWords = 30;
  for (const fs::path& page : pages())
    for (const std::string& sentence : sentences_of(text_of(page))) {
      EXPECT_LE(std::count(sentence.begin(), sentence.end(), ' '), kWords)
          << name_of(page) << ": " << sentence;
    }
}

TEST(Docs, FilesThatAreNamedExist) {
  const std::regex path(
      "(bench|examples|docs|deploy|tests|workers|server|client|proto)/[A-Za-z0-9_./-]+");
  for (const fs::path& page : pages())
    for (const std::string& name : backtick_words(text_of(page)))
      if (std::regex_match(name, path)) {
        const bool is_program =
            fs::exists(source_dir() / (name + ".cpp")) || fs::exists(source_dir() / (name + ".cu"));
        EXPECT_TRUE(is_program || fs::exists(source_dir() / name) ||
                    fs::exists(page.parent_path() / name))
            << name_of(page) << " names " << name;
      }
}

TEST(Docs, TestsThatAreNamedExist) {
  Names tests;
  const std::regex macro("TEST(?:_F|_P)?\\(\\s*(\\w+),\\s*(\\w+)\\)");
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() / "tests")) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = text_of(entry.path());
    for (std::sregex_iterator match(text.begin(), text.end(), macro), end; match != end; ++match)
      tests.insert((*match)[1].str() + "." + (*match)[2].str());
  }
  const std::regex reference("[A-Z][A-Za-z0-9]*\\*?\\.[A-Z*][A-Za-z0-9*]*");
  for (const fs::path& page : pages())
    for (const std::string& name : backtick_words(text_of(page))) {
      if (!std::regex_match(name, reference) || name == "BTE.*") continue;  // those are files
      std::string pattern;
      for (const char c : name) pattern += c == '*' ? ".*" : c == '.' ? "\\." : std::string(1, c);
      const std::regex wanted(pattern);
      EXPECT_TRUE(std::any_of(tests.begin(), tests.end(),
                              [&](const auto& test) { return std::regex_match(test, wanted); }))
          << name_of(page) << " names a test " << name;
    }
}

// Each of the thirty promises has a row with its tests and a figure, or says that there is none.
TEST(Docs, PromisesHaveATestAndAFigure) {
  std::istringstream lines(text_of(source_dir() / "docs/reference/promises.md"));
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_search(line, std::regex("^\\| \\d"))) continue;
    std::vector<std::string> cells;
    std::istringstream parts(line.substr(1));
    for (std::string cell; std::getline(parts, cell, '|');) cells.push_back(cell);
    ASSERT_EQ(cells.size(), 5u) << line;
    EXPECT_EQ(std::stoi(cells[0]), ++rows) << line;
    const bool has_test = !backtick_words(cells[2]).empty();
    EXPECT_TRUE(has_test || cells[2] == " none ") << line;
    const bool is_unmeasured = cells[4].find("not measured") != std::string::npos;
    EXPECT_TRUE(is_unmeasured || std::regex_search(cells[4], std::regex("\\d|each|every"))) << line;
    if (!has_test) EXPECT_EQ(cells[4], " not measured ") << line;
  }
  EXPECT_EQ(rows, 30);
}

/// Words in backticks in one column of the tables with this header. A list between backticks counts
/// as several words.
Names words_of_tables(const std::string& text, const std::string& header, int column) {
  Names words;
  std::istringstream lines(text);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(header))
      inside = true;
    else if (!line.starts_with("|"))
      inside = false;
    if (!inside) continue;
    std::istringstream cells(line.substr(1));
    std::string cell;
    for (int at = 0; at <= column; ++at) std::getline(cells, cell, '|');
    for (const std::string& list : backtick_words(cell)) {
      std::istringstream items(list);
      for (std::string item; std::getline(items, item, ',');) {
        std::erase_if(item, [](char c) { return c == ' ' || c == '[' || c == ']'; });  // [[valley]]
        item.resize(std::min(item.size(), item.find('(')));                            // ngrid(3)
        if (const auto dot = item.rfind('.'); dot != std::string::npos)
          item.erase(0, dot + 1);  // sigma.bands, .bands
        if (!item.empty() && std::all_of(item.begin(), item.end(), [](unsigned char c) {
              return std::isalnum(c) != 0 || c == '_';
            }))
          words.insert(item);
      }
    }
  }
  return words;
}

Names lower(const Names& names) {
  Names result;
  for (std::string name : names) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    result.insert(name);
  }
  return result;
}

Names together(std::initializer_list<Names> all) {
  Names result;
  for (const Names& names : all) result.insert(names.begin(), names.end());
  return result;
}

/// Expects that the names in `read` and the documented ones are equal. Names in `beside` may be
/// documented without being read.
void expect_same(const Names& read, const Names& documented, const std::string& page,
                 const Names& beside = {}) {
  EXPECT_GT(read.size(), 15u) << page << ": the keys are read in another way than this test knows";
  for (const std::string& key : read)
    EXPECT_TRUE(documented.contains(key)) << page << " does not name the key " << key;
  for (const std::string& key : documented)
    EXPECT_TRUE(read.contains(key) || beside.contains(key))
        << page << " names a key " << key << " that nothing reads";
}

const std::string kReads =
    "(?:reader|entry|root)\\.(?:number|integer|boolean|text|choice|numbers|texts|pairs|vectors|"
    "table|tables|word|has)\\(\\s*\"(\\w+)\"";

/// Keys that the TOML decks of all kinds share.
Names common_keys() {
  return matches(text_of(source_dir() / "workers/io/common_keys.cpp"), kReads);
}

TEST(Docs, KeysOfMosfetDecks) {
  const std::string code = code_below("workers/mosfet/input"),
                    page = text_of(source_dir() / "docs/reference/mosfet_keys.md");
  const Names read = together({common_keys(), matches(code, kReads),
                               matches(code, "read_waveform\\(\\s*reader,\\s*\"(\\w+)\"")});
  Names keys = read;
  for (const char* table :
       {"bias", "contact", "doping", "gate", "geometry", "material", "mesh", "output", "process",
        "roughness", "run", "scattering", "small_signal", "statistics", "valley"})
    keys.erase(table);  // tables are named with their keys
  expect_same(keys, words_of_tables(page, "| key | type", 0), "docs/reference/mosfet_keys.md");
}

TEST(Docs, KeysOfGwDecks) {
  const std::string code = code_below("workers/gw/input"),
                    page = text_of(source_dir() / "docs/reference/gw_keys.md");
  Names read =
      together({common_keys(), matches(code, kReads), matches(code, "path_of\\(\\s*\"(\\w+)\""),
                matches(code, "(?:vector|grid)_of\\(\\s*reader,\\s*\"(\\w+)\"")});
  for (const char* table : {"meanfield", "epsilon", "sigma", "coulomb", "checks", "converge",
                            "perturbation", "pseudobands"})
    read.erase(table);  // tables are named with their keys
  // A deck may name a file that has keys of its own.
  expect_same(read,
              together({words_of_tables(page, "| key | type", 0),
                        words_of_tables(page, "| key of the file | type", 0)}),
              "docs/reference/gw_keys.md");
}

TEST(Docs, KeysOfThermalDecks) {
  const std::string code = code_below("workers/thermal/input");
  const Names read = together(
      {matches(code,
               "\\b(?:add|flag|integer|at_least|positive|index3)\\(\\s*\"\\w*\",\\s*\"(\\w+)\""),
       matches(code,
               "\\b(?:samples|list_above_zero|list_from_zero|word|add_extent)"
               "\\(\\s*\"(\\w+)\""),
       {"t_min", "t_max", "t_step"}});
  const std::string page = text_of(source_dir() / "docs/reference/thermal_keys.md");
  expect_same(lower(read), lower(words_of_tables(page, "| key | type", 0)),
              "docs/reference/thermal_keys.md", {"kind", "directory", "job"});
}

TEST(Docs, KeysOfTheServerAndTheWorker) {
  const std::string page = text_of(source_dir() / "docs/reference/operations.md");
  const auto worker = page.find("\n## Worker");
  ASSERT_NE(worker, std::string::npos);
  const std::string server_code = text_of(source_dir() / "server/options_table.cpp"),
                    worker_code = text_of(source_dir() / "workers/daemon/worker_config.cpp");
  expect_same(
      together({matches(server_code,
                        "\\b(?:boolean|seconds|integer|addresses|path|quota)\\(\\s*\"(\\w+)\""),
                matches(server_code, "\\{\\s*\\.key = \"(\\w+)\"")}),
      words_of_tables(page.substr(0, worker), "| key | type", 0),
      "docs/reference/operations.md (server)");
  expect_same(matches(worker_code, "\\{\\s*\"(\\w+)\",\\s*\"[^\"]* [^\"]*\""),
              words_of_tables(page.substr(worker), "| key | type", 0),
              "docs/reference/operations.md (worker)");
}

TEST(Docs, EventsOfTheLogThatAreNamedExist) {
  const std::string code = code_below("server") + code_below("workers/daemon");
  const std::string page = text_of(source_dir() / "docs/reference/operations.md");
  const auto begin = page.find("**Set an alarm**");
  ASSERT_NE(begin, std::string::npos);
  const Names events = backtick_words(page.substr(begin, page.find("\n\n", begin) - begin));
  EXPECT_GT(events.size(), 10u);
  for (const std::string& event : events)
    EXPECT_NE(code.find('"' + event + '"'), std::string::npos)
        << "docs/reference/operations.md names an event " << event;
}

// A word after two dashes on a page must be an option of one of the programs, or of one of the
// tools that the page describes.
TEST(Docs, OptionsThatAreNamedExist) {
  std::string code;
  for (const char* room : {"client", "server", "workers/daemon", "workers/engine", "examples",
                           "bench", "deploy", "tests/run"}) {
    if (fs::is_regular_file(source_dir() / room))
      code += text_of(source_dir() / room);
    else
      for (const auto& entry : fs::recursive_directory_iterator(source_dir() / room))
        if (entry.is_regular_file() && entry.path().extension() != ".md" &&
            entry.file_size() < (1 << 20))
          code += text_of(entry.path());
  }
  for (const Names& keys :
       {matches(text_of(source_dir() / "server/options_table.cpp"), "\"(\\w+)\""),
        matches(text_of(source_dir() / "workers/daemon/worker_config.cpp"), "\"(\\w+)\"")})
    for (std::string key : keys) {
      std::replace(key.begin(), key.end(), '_', '-');
      code += " --" + key + ' ';
    }
  const Names foreign{"--preset",
                      "--check",
                      "--append",
                      "--groups",
                      "--system",
                      "--nodes",
                      "--gpus-per-node",
                      "--ntasks-per-node",
                      "--gpus-per-task",
                      "--mpi",
                      "--bind-to",
                      "--map-by",
                      "--kill-on-bad-exit",
                      "--host",
                      "--key-with-dashes",
                      "--from-file",
                      "--prefix",
                      "--br",
                      "--isotope",
                      "--lbte",
                      "--ts",
                      "--wigner"};
  for (const fs::path& page : pages())
    for (const std::string& option : matches(text_of(page), "(?:^|[^-\\w])(--[a-z][a-z0-9-]+)")) {
      if (foreign.contains(option)) continue;
      EXPECT_TRUE(std::regex_search(code, std::regex(option + "(?![a-z0-9-])")))
          << name_of(page) << " names an option " << option;
    }
}

}  // namespace
}  // namespace quasi::test
