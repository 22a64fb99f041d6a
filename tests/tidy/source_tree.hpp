#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quasi::test {

/// One text file of the project.
struct SourceFile {
  std::string path;  ///< from the root of the tree, e.g. "workers/io/hdf5.cpp"
  std::vector<std::string> lines;

  std::string text() const;
};

/// True if the path ends with one of the suffixes.
bool has_suffix(std::string_view path, const std::vector<std::string>& suffixes);

/// True for C++ and CUDA sources and headers.
bool is_cpp(std::string_view path);

/// True for a file that authors write: code, build files, scripts, pages, configuration. It is
/// false for data (tables of numbers, pictures, force constants, recorded messages).
bool is_written_by_people(const SourceFile& file);

/// Paths of all files of the project's folders and of its root, sorted, including data. Build
/// folders and hidden files except those of .ci are left out.
const std::vector<std::string>& all_paths();

/// The text files among them, read once.
const std::vector<SourceFile>& all_text_files();

/// The C++ and CUDA files among them.
const std::vector<SourceFile>& all_cpp_files();

}  // namespace quasi::test
