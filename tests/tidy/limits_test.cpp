// The limits of size and the format: widths of lines, lengths of functions and files, numbers of
// parameters and of files in a folder, and clang-format 14. What exceeds a limit stands in
// limits_exceptions.txt with its reason.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/reference_data.hpp"
#include "tests/tidy/cpp_functions.hpp"
#include "tests/tidy/source_tree.hpp"

namespace quasi::test {
namespace {

constexpr std::size_t kColumns = 100;
constexpr int kFunctionLines = 70;
constexpr int kKernelLines = 120;
constexpr int kParameters = 6;
constexpr std::size_t kFileLines = 400;
constexpr std::size_t kFolderFiles = 25;
// The list holds at most so many entries, over all limits and tests included.
constexpr std::size_t kExceptions = 15;

/// Something that may exceed a limit.
struct Exception {
  std::string rule;   ///< "function", "parameters", "file", "folder" or "width"
  std::string place;  ///< "path: name" of a function, else the path
  std::string reason;
};

/// Entries of limits_exceptions.txt: "rule | place | reason", one a line.
std::vector<Exception> read_exceptions() {
  const auto trimmed = [](const std::string& text) {
    const auto begin = text.find_first_not_of(' ');
    return begin == std::string::npos ? std::string()
                                      : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
  };
  std::vector<Exception> found;
  std::ifstream in(source_dir() / "tests/tidy/limits_exceptions.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const auto first = line.find('|');
    const auto second = line.find('|', first + 1);
    if (second == std::string::npos) {
      ADD_FAILURE() << "an exception is 'rule | place | reason': " << line;
      continue;
    }
    found.push_back({trimmed(line.substr(0, first)),
                     trimmed(line.substr(first + 1, second - first - 1)),
                     trimmed(line.substr(second + 1))});
  }
  return found;
}

const std::vector<Exception>& exceptions() {
  static const std::vector<Exception> list = read_exceptions();
  return list;
}

/// The violations of one rule, as "place" and a sentence for people.
using Violations = std::multimap<std::string, std::string>;

/// Fails for every violation that no exception names, and for every exception without a violation.
void expect_only_exceptions(const std::string& rule, const Violations& found) {
  std::set<std::string> allowed;
  for (const Exception& exception : exceptions())
    if (exception.rule == rule) allowed.insert(exception.place);
  for (const auto& [place, sentence] : found) {
    EXPECT_TRUE(allowed.contains(place)) << place << " " << sentence;
  }
  for (const std::string& place : allowed)
    EXPECT_TRUE(found.contains(place))
        << place << " obeys the rule '" << rule << "' now: remove its exception";
}

/// Columns that a line takes on a terminal: code points, combining marks aside.
std::size_t columns_of(const std::string& line) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    const bool continues = (byte & 0xC0U) == 0x80U;
    // U+0300 to U+036F are CC 80 to CD AF in UTF-8.
    const bool combining =
        i + 1 < line.size() &&
        (byte == 0xCCU || (byte == 0xCDU && static_cast<unsigned char>(line[i + 1]) <= 0xAFU));
    if (!continues && !combining) ++columns;
  }
  return columns;
}

/// Tables and lines that hold an address cannot be broken.
bool may_be_wide(const std::string& path, const std::string& line) {
  const auto begin = line.find_first_not_of(' ');
  const bool table = path.ends_with(".md") && begin != std::string::npos && line[begin] == '|';
  return table || line.find("://") != std::string::npos;
}

std::vector<std::string> wide_lines(const SourceFile& file) {
  std::vector<std::string> wide;
  for (std::size_t i = 0; i < file.lines.size(); ++i)
    if (columns_of(file.lines[i]) > kColumns && !may_be_wide(file.path, file.lines[i]))
      wide.push_back(file.path + ":" + std::to_string(i + 1));
  return wide;
}

Violations long_functions(const SourceFile& file) {
  Violations found;
  for (const CppFunction& function : functions_of(file.text())) {
    const int limit = function.is_kernel ? kKernelLines : kFunctionLines;
    if (function.lines > limit)
      found.emplace(file.path + ": " + function.name,
                    "has " + std::to_string(function.lines) + " lines, at most " +
                        std::to_string(limit) + " (line " + std::to_string(function.line) + ")");
  }
  return found;
}

Violations wide_interfaces(const SourceFile& file) {
  Violations found;
  for (const CppFunction& function : functions_of(file.text()))
    if (function.parameters > kParameters)
      found.emplace(file.path + ": " + function.name, "has " + std::to_string(function.parameters) +
                                                          " parameters, at most " +
                                                          std::to_string(kParameters) + " (line " +
                                                          std::to_string(function.line) + ")");
  return found;
}

/// Output of a shell command.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) output += buffer.data();
  return output;
}

TEST(Limits, ClangFormatChangesNothing) {
  if (output_of("clang-format --version 2>/dev/null").find("version 14.") == std::string::npos)
    GTEST_SKIP() << "clang-format 14 is not here: deploy/dependencies.txt names its package";
  const std::string jobs = std::to_string(std::max(1U, std::thread::hardware_concurrency()));
  const std::string changed = output_of(
      "cd '" + source_dir().string() +
      "' && find bench client examples proto server tests workers -name '*.[ch]pp' -o -name '*.cu'"
      " -o -name '*.cuh' | xargs -P " +
      jobs + " -n 32 clang-format --dry-run 2>&1 | grep -oE '^[^ :]+:' | sort -u");
  EXPECT_EQ(changed, "") << "run clang-format -i on these files";
}

TEST(Limits, LinesFitTheWidth) {
  Violations found;
  for (const SourceFile& file : all_text_files())
    if (is_written_by_people(file))
      for (const std::string& place : wide_lines(file))
        found.emplace(place, "is wider than 100 columns");
  expect_only_exceptions("width", found);
}

TEST(Limits, FunctionsFitAScreen) {
  Violations found;
  for (const SourceFile& file : all_cpp_files()) found.merge(long_functions(file));
  expect_only_exceptions("function", found);
}

TEST(Limits, InterfacesHaveFewParameters) {
  Violations found;
  for (const SourceFile& file : all_cpp_files()) found.merge(wide_interfaces(file));
  expect_only_exceptions("parameters", found);
}

TEST(Limits, FilesAreShort) {
  Violations found;
  for (const SourceFile& file : all_text_files()) {
    const bool code = is_written_by_people(file) && !has_suffix(file.path, {".md", ".bib"});
    if (code && file.lines.size() > kFileLines)
      found.emplace(file.path, "has " + std::to_string(file.lines.size()) + " lines, at most 400");
  }
  expect_only_exceptions("file", found);
}

TEST(Limits, FoldersAreShelves) {
  std::map<std::string, std::size_t> files;
  for (const std::string& path : all_paths()) {
    const auto slash = path.rfind('/');
    ++files[slash == std::string::npos ? "." : path.substr(0, slash)];
  }
  Violations found;
  for (const auto& [folder, count] : files)
    if (count > kFolderFiles)
      found.emplace(folder, "holds " + std::to_string(count) + " files, at most 25");
  expect_only_exceptions("folder", found);
}

TEST(Limits, ExceptionsAreFewAndHaveReasons) {
  EXPECT_LE(exceptions().size(), kExceptions);
  for (const Exception& exception : exceptions())
    EXPECT_GT(exception.reason.size(), 20U) << exception.place;
}

// The scanner itself, on the forms that the tree uses.
TEST(CppFunctions, AreFoundWithTheirSizes) {
  const auto found = functions_of(
      "namespace a {\n"                                      // 1
      "// f(int, int) {\n"                                   // 2
      "template <typename T, int N>\n"                       // 3
      "T f(const std::map<int, T>& m, int (&a)[2]) {\n"      // 4
      "  return g(\"}\", '{', 1'000, R\"(})\");\n"           // 5
      "}\n"                                                  // 6
      "int declared(int a, double b = h(1, 2),\n"            // 7
      "             std::function<void(int, int)> c);\n"     // 8
      "struct S : B<int> {\n"                                // 9
      "  S(int a, int b) : a_(a), b_{b} {\n"                 // 10
      "    if (a) { b_ = 1; }\n"                             // 11
      "  }\n"                                                // 12
      "  bool operator()(int x) const { return x; }\n"       // 13
      "  int a_ = f(1, 2, 3, 4, 5, 6, 7), b_{2};\n"          // 14
      "};\n"                                                 // 15
      "__global__ void __launch_bounds__(128) k(int n) {\n"  // 16
      "}\n"                                                  // 17
      "const auto lambda = [](int, int) {\n"                 // 18
      "};\n"                                                 // 19
      "TEST(Suite, Name) {\n"                                // 20
      "}\n"                                                  // 21
      "}\n");                                                // 22
  struct Wanted {
    std::string name;
    int line, lines, parameters;
    bool is_kernel;
  };
  const std::vector<Wanted> wanted{{"f", 4, 3, 2, false},  {"declared", 7, 0, 3, false},
                                   {"S", 10, 3, 2, false}, {"operator", 13, 1, 1, false},
                                   {"k", 16, 2, 1, true},  {"Suite.Name", 20, 2, 2, false}};
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found[i].name, wanted[i].name);
    EXPECT_EQ(found[i].line, wanted[i].line) << wanted[i].name;
    EXPECT_EQ(found[i].lines, wanted[i].lines) << wanted[i].name;
    EXPECT_EQ(found[i].parameters, wanted[i].parameters) << wanted[i].name;
    EXPECT_EQ(found[i].is_kernel, wanted[i].is_kernel) << wanted[i].name;
  }
}

TEST(Limits, EachRuleNoticesABreach) {
  const auto repeat = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  EXPECT_EQ(columns_of("ω̃ = λ"), 5U);
  EXPECT_TRUE(wide_lines({"a.cpp", {repeat("ω", 100)}}).empty());
  EXPECT_EQ(wide_lines({"a.cpp", {repeat("ω", 101)}}).size(), 1U);
  EXPECT_TRUE(wide_lines({"a.md", {"| " + repeat("a", 101)}}).empty());
  EXPECT_EQ(wide_lines({"a.cpp", {"| " + repeat("a", 101)}}).size(), 1U);
  const auto function = [&](const std::string& head, int lines) {
    SourceFile file{"a.cu", {head + " {"}};
    file.lines.resize(static_cast<std::size_t>(lines) - 1, "  x();");
    file.lines.emplace_back("}");
    return file;
  };
  EXPECT_TRUE(long_functions(function("void f()", 70)).empty());
  EXPECT_EQ(long_functions(function("void f()", 71)).size(), 1U);
  EXPECT_TRUE(long_functions(function("__global__ void f()", 120)).empty());
  EXPECT_EQ(long_functions(function("__global__ void f()", 121)).size(), 1U);
  EXPECT_TRUE(wide_interfaces({"a.hpp", {"int f(A, A, A, A, A, std::pair<A, A>);"}}).empty());
  EXPECT_EQ(wide_interfaces({"a.hpp", {"int f(A, A, A, A, A, A, A);"}}).size(), 1U);
}

}  // namespace
}  // namespace quasi::test
