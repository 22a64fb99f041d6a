#include "tests/tidy/source_tree.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/support/reference_data.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders[] = {".ci",   "bench",    "client", "deploy", "docs",
                                    "proto", "examples", "server", "tests",  "workers"};

void add_below(const fs::path& folder, std::vector<std::string>& paths) {
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() != ".pyc")
      paths.push_back(fs::relative(entry.path(), source_dir()).string());
}

std::vector<std::string> find_paths() {
  std::vector<std::string> paths;
  for (const char* folder : kFolders)
    if (fs::exists(source_dir() / folder)) add_below(source_dir() / folder, paths);
  for (const auto& entry : fs::directory_iterator(source_dir()))
    if (entry.is_regular_file() && !entry.path().filename().string().starts_with('.'))
      paths.push_back(entry.path().filename().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<SourceFile> read_text_files() {
  std::vector<SourceFile> files;
  for (const std::string& path : all_paths()) {
    std::ifstream in(source_dir() / path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (text.find('\0') == std::string::npos)
      files.push_back({.path = path, .lines = lines_of(text)});
  }
  return files;
}

std::vector<SourceFile> read_cpp_files() {
  std::vector<SourceFile> files;
  for (const SourceFile& file : all_text_files())
    if (is_cpp(file.path)) files.push_back(file);
  return files;
}

}  // namespace

std::string SourceFile::text() const {
  std::string all;
  for (const std::string& line : lines) all += line + '\n';
  return all;
}

bool has_suffix(std::string_view path, const std::vector<std::string>& suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](const std::string& suffix) { return path.ends_with(suffix); });
}

bool is_cpp(std::string_view path) { return has_suffix(path, {".hpp", ".cpp", ".cu", ".cuh"}); }

bool is_written_by_people(const SourceFile& file) {
  if (is_cpp(file.path)) return true;
  if (has_suffix(file.path,
                 {".cmake", "CMakeLists.txt", "CMakePresets.json", ".cmake.in", ".md", ".sh", ".py",
                  ".proto", ".toml", ".bib", ".yaml", ".sbatch", ".service", "Dockerfile"}))
    return true;
  return !file.lines.empty() && file.lines.front().starts_with("#!");
}

const std::vector<std::string>& all_paths() {
  static const std::vector<std::string> paths = find_paths();
  return paths;
}

const std::vector<SourceFile>& all_text_files() {
  static const std::vector<SourceFile> files = read_text_files();
  return files;
}

const std::vector<SourceFile>& all_cpp_files() {
  static const std::vector<SourceFile> files = read_cpp_files();
  return files;
}

}  // namespace quasi::test
