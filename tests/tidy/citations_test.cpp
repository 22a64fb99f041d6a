// Tests that every citation resolves: sections of docs/theory, invariants, decisions, papers and
// pages that code, pages and SQL name.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/reference_data.hpp"
#include "tests/tidy/source_tree.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

/// False for this file and the other tests of this folder, which hold examples of broken citations.
bool is_searched(const SourceFile& file) {
  return is_written_by_people(file) && !file.path.starts_with("tests/tidy/");
}

const SourceFile& page(const std::string& path) {
  for (const SourceFile& file : all_text_files())
    if (file.path == path) return file;
  throw std::runtime_error("no page " + path);
}

/// The groups `group` of all matches of a pattern.
std::vector<std::string> matches(const std::string& text, const std::regex& pattern,
                                 std::size_t group = 1) {
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match)
    found.push_back((*match)[group]);
  return found;
}

/// Numbers of the sections of a theory page: "7" and "7.1" of its headings, and the items of
/// numbered lists below a heading. Item 3 below 12.3 is "12.3.3", and below 13 it is "13.3".
Names sections_of(const SourceFile& theory) {
  static const std::regex heading("^##+ ([0-9]+(\\.[0-9]+)*)\\.? .*"), item("^([0-9]+)\\. .*");
  Names sections;
  std::string section;
  std::smatch match;
  for (const std::string& line : theory.lines) {
    if (std::regex_match(line, match, heading))
      sections.insert(section = match[1]);
    else if (std::regex_match(line, match, item) && !section.empty())
      sections.insert(section + "." + match[1].str());
  }
  return sections;
}

/// The section numbers in the text after a page's name: "7.2–7.5", "1.3, 1.4", "6.2 and 6.5".
std::vector<std::string> cited_sections(const std::string& after) {
  static const std::regex list(
      "^,? ?(?:[Ss]ections? )?([0-9]+(?:\\.[0-9]+)*(?:(?:, | and |–)[0-9]+(?:\\.[0-9]+)*)*)");
  static const std::regex number("([0-9]+(?:\\.[0-9]+)*)");
  std::smatch match;
  return std::regex_search(after, match, list) ? matches(match[1], number)
                                               : std::vector<std::string>{};
}

/// Joins comment lines, because a citation may be broken between two lines.
std::string running_text(const SourceFile& file) {
  static const std::regex line_break("\\s*\\n\\s*(?:///?<?|#|--)?\\s*");
  return std::regex_replace(file.text(), line_break, " ");
}

/// Lists broken citations of sections in a text.
std::vector<std::string> broken_sections(const std::string& text) {
  static const std::regex citation("docs/theory/([a-z]+)\\.md");
  static std::map<std::string, Names> sections;
  std::vector<std::string> broken;
  for (std::sregex_iterator match(text.begin(), text.end(), citation), end; match != end; ++match) {
    const std::string path = match->str();
    if (!fs::exists(source_dir() / path)) {
      broken.push_back(path);
      continue;
    }
    if (!sections.contains(path)) sections[path] = sections_of(page(path));
    const std::string after = match->suffix().str().substr(0, 60);
    for (const std::string& number : cited_sections(after))
      if (!sections[path].contains(number)) broken.push_back(path + " " + number);
  }
  return broken;
}

/// Lists citations of documents that are not in the tree, or by a name that no reader can open.
std::vector<std::string> citations_without_page(const std::string& text) {
  static const std::regex bare(
      "((?:^|[^/a-z0-9_-])(?:thermal|gw|mosfet|device|service)(?:-2)?\\.md,? [0-9][0-9.]*"
      "|\\b[Ss]pec(?:ification)? [0-9][0-9.]*"
      "|\\b[Ss]ections? [0-9][0-9.]*(?: and [0-9.]+)? of the documentation)");
  return matches(text, bare);
}

std::vector<std::string> broken_invariants(const std::string& text, const Names& known) {
  static const std::regex citation("\\b(I[0-9]{1,2})\\b");
  std::vector<std::string> broken;
  for (const std::string& name : matches(text, citation))
    if (!known.contains(name)) broken.push_back(name);
  return broken;
}

std::vector<std::string> broken_decisions(const std::string& text) {
  static const std::regex citation("\\b[Dd]ecisions? ([0-9]{1,4})\\b|docs/decisions/([0-9]{4})");
  std::vector<std::string> broken;
  for (std::sregex_iterator match(text.begin(), text.end(), citation), end; match != end; ++match) {
    std::string number = (*match)[1].matched ? (*match)[1] : (*match)[2];
    number.insert(0, 4 - number.size(), '0');
    bool found = false;
    for (const std::string& path : all_paths())
      found = found || path.starts_with("docs/decisions/" + number + "-");
    if (!found) broken.push_back(match->str());
  }
  return broken;
}

/// Lists keys in brackets, e.g. [li2014] and [feng2016, feng2017].
std::vector<std::string> cited_keys(const std::string& text) {
  static const std::regex brackets(
      "\\[([a-z]+[12][0-9]{3}[a-z]?(?:[,;] [a-z]+[12][0-9]{3}[a-z]?)*)\\]");
  static const std::regex key("([a-z]+[12][0-9]{3}[a-z]?)");
  std::vector<std::string> keys;
  for (const std::string& list : matches(text, brackets))
    for (const std::string& one : matches(list, key)) keys.push_back(one);
  return keys;
}

TEST(Citations, SectionsOfTheTheoryExist) {
  for (const SourceFile& file : all_text_files()) {
    if (!is_searched(file)) continue;
    for (const std::string& broken : broken_sections(running_text(file)))
      ADD_FAILURE() << file.path << " cites " << broken << ", which is not there";
  }
}

TEST(Citations, NameAPageThatAReaderCanOpen) {
  for (const SourceFile& file : all_text_files()) {
    if (!is_searched(file)) continue;
    for (const std::string& bare : citations_without_page(running_text(file)))
      ADD_FAILURE() << file.path << " cites '" << bare << "'; name the page: docs/theory/….md N.N";
  }
}

TEST(Citations, InvariantsExist) {
  const std::string table = page("docs/invariants.md").text();
  Names known;
  for (const std::string& name : matches(table, std::regex("\\| (I[0-9]+) \\|")))
    EXPECT_TRUE(known.insert(name).second) << name << " is defined twice";
  EXPECT_GE(known.size(), 20U);
  for (const SourceFile& file : all_text_files()) {
    const bool service = file.path.starts_with("server/") || file.path.starts_with("client/") ||
                         file.path.starts_with("proto/") || file.path.starts_with("docs/") ||
                         file.path.starts_with("workers/daemon/") ||
                         file.path.starts_with("tests/service/");
    if (!service || !is_searched(file)) continue;
    for (const std::string& broken : broken_invariants(file.text(), known))
      ADD_FAILURE() << file.path << " cites " << broken << ", which docs/invariants.md lacks";
  }
}

TEST(Citations, DecisionsExist) {
  for (const SourceFile& file : all_text_files()) {
    if (!is_searched(file)) continue;
    for (const std::string& broken : broken_decisions(running_text(file)))
      ADD_FAILURE() << file.path << " cites " << broken << ", which docs/decisions lacks";
  }
}

TEST(Citations, PapersExistAndAreCited) {
  const std::string bibliography = page("docs/references.bib").text();
  Names known, cited;
  for (const std::string& key : matches(bibliography, std::regex("(?:^|\\n)@[a-z]+\\{([^,]+),")))
    EXPECT_TRUE(known.insert(key).second) << key << " is defined twice";
  for (const SourceFile& file : all_text_files()) {
    if (!is_searched(file)) continue;
    for (const std::string& key : cited_keys(running_text(file))) {
      cited.insert(key);
      EXPECT_TRUE(known.contains(key))
          << file.path << " cites [" << key << "], which docs/references.bib lacks";
    }
  }
  for (const std::string& key : known)
    EXPECT_TRUE(cited.contains(key)) << "nothing cites [" << key << "] of docs/references.bib";
}

TEST(Citations, PagesThatCodeNamesExist) {
  const std::regex path("\\b(docs/[A-Za-z0-9_/.-]+\\.(?:md|bib))\\b");
  for (const SourceFile& file : all_text_files()) {
    if (!is_searched(file)) continue;
    for (const std::string& name : matches(file.text(), path)) {
      EXPECT_TRUE(fs::exists(source_dir() / name)) << file.path << " names " << name;
    }
  }
}

TEST(Citations, EachRuleNoticesABreach) {
  using Broken = std::vector<std::string>;
  EXPECT_EQ(broken_sections("docs/theory/thermal.md 7.1, docs/theory/gw.md 6.2 and 6.5"), Broken{});
  EXPECT_EQ(broken_sections("docs/theory/thermal.md 12.3.6 and docs/theory/gw.md 13.8"), Broken{});
  EXPECT_EQ(broken_sections("docs/theory/thermal.md 7.1–7.9"),
            Broken{"docs/theory/thermal.md 7.9"});
  EXPECT_EQ(broken_sections("docs/theory/optics.md 1"), Broken{"docs/theory/optics.md"});
  EXPECT_EQ(citations_without_page("(thermal.md 7.1)").size(), 1U);
  EXPECT_EQ(citations_without_page("docs/theory/thermal.md 7.1").size(), 0U);
  EXPECT_EQ(citations_without_page("Spec 6.2").size(), 1U);
  EXPECT_EQ(broken_invariants("I4 and I21", {"I4"}), Broken{"I21"});
  EXPECT_EQ(broken_decisions("decision 4"), Broken{});
  EXPECT_EQ(broken_decisions("decision 99"), Broken{"decision 99"});
  EXPECT_EQ(cited_keys("[li2014] a[i] [nT][3] [feng2016, feng2017]"),
            (Broken{"li2014", "feng2016", "feng2017"}));
  const SourceFile broken_over_lines{"a.cpp", {"// docs/theory/thermal.md", "// 7.9"}};
  EXPECT_EQ(broken_sections(running_text(broken_over_lines)), Broken{"docs/theory/thermal.md 7.9"});
}

/// Headers of kernels and physics that compute no formula: copies, handles, launches, arithmetic.
Names headers_without_equation() {
  Names listed;
  std::ifstream in(source_dir() / "tests/tidy/headers_without_equation.txt");
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && !line.starts_with('#')) listed.insert(line);
  return listed;
}

TEST(Citations, HeadersOfKernelsAndPhysicsCiteTheirEquations) {
  const std::regex room("workers/(thermal|mosfet|gw)/(kernels|physics)/.*\\.(hpp|cuh)");
  const std::regex citation("docs/theory/[a-z]+\\.md [0-9]");
  Names left = headers_without_equation();
  for (const SourceFile& file : all_cpp_files()) {
    if (!std::regex_match(file.path, room)) continue;
    const bool cites = std::regex_search(running_text(file), citation);
    const bool listed = left.erase(file.path) > 0;
    EXPECT_TRUE(cites || listed) << file.path << " cites no section of docs/theory";
    EXPECT_FALSE(cites && listed) << file.path << " cites an equation; remove it from the list";
  }
  for (const std::string& path : left) ADD_FAILURE() << path << " is listed and does not exist";
}

}  // namespace
}  // namespace quasi::test
