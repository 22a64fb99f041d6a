#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace quasi::gw {

/// One line of an .inp file: a keyword and its values, or a row of a block.
struct InpLine {
  int number = 0;
  std::string keyword;
  std::vector<std::string> values;
};

/// An input file of BerkeleyGW: lines "keyword value …" and blocks "begin NAME … end".
class InpFile {
 public:
  /// @throws InvalidInput with file and line if a block does not end
  explicit InpFile(const std::filesystem::path& path);

  const std::vector<InpLine>& lines() const { return lines_; }
  const std::map<std::string, std::vector<InpLine>>& blocks() const { return blocks_; }
  int line_of_block(const std::string& block) const { return block_line_.at(block); }

  /// @throws InvalidInput "FILE:LINE: PROBLEM"
  [[noreturn]] void fail(const InpLine& line, const std::string& problem) const;
  [[noreturn]] void fail(int line, const std::string& problem) const;

  /// Returns value `i` of a line as a number, with an exponent of C or of Fortran. @throws
  /// InvalidInput with file and line
  double number(const InpLine& line, std::size_t i = 0) const;
  int integer(const InpLine& line, std::size_t i = 0) const;

 private:
  std::string name_;
  std::vector<InpLine> lines_;
  std::map<std::string, std::vector<InpLine>> blocks_;
  std::map<std::string, int> block_line_;
};

/// The effect of each keyword of a file.
using InpActions = std::map<std::string, std::function<void(const InpFile&, const InpLine&)>>;

}  // namespace quasi::gw
