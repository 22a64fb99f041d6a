#include "workers/gw/input/inp_file.hpp"

#include <fstream>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/io/input_path.hpp"

namespace quasi::gw {

InpFile::InpFile(const std::filesystem::path& path) : name_(path.filename().string()) {
  std::ifstream in(input_file(path));
  if (!in) throw InvalidInput("'" + path.string() + "' cannot be read");
  std::string block, text;
  for (int number = 1; std::getline(in, text); ++number) {
    text = text.substr(0, text.find_first_of("#!"));
    std::istringstream fields(text);
    InpLine line{.number = number};
    if (!(fields >> line.keyword)) continue;
    for (std::string value; fields >> value;) line.values.push_back(value);
    if (line.keyword == "begin") {
      if (line.values.size() != 1 || !block.empty())
        fail(line, "a block begins with 'begin NAME' and ends with 'end'");
      block = line.values[0];
      blocks_[block];
      block_line_[block] = number;
    } else if (line.keyword == "end") {
      if (block.empty()) fail(line, "'end' without 'begin'");
      block.clear();
    } else if (!block.empty()) {
      line.values.insert(line.values.begin(), line.keyword);
      blocks_[block].push_back(line);
    } else {
      lines_.push_back(line);
    }
  }
  if (!block.empty()) throw InvalidInput(name_ + ": the block '" + block + "' has no 'end'");
}

void InpFile::fail(const InpLine& line, const std::string& problem) const {
  fail(line.number, problem);
}

void InpFile::fail(int line, const std::string& problem) const {
  throw InvalidInput(name_ + ":" + std::to_string(line) + ": " + problem);
}

double InpFile::number(const InpLine& line, std::size_t i) const {
  if (i >= line.values.size()) fail(line, "'" + line.keyword + "' needs a number");
  std::string text = line.values[i];
  for (char& c : text)
    if (c == 'd' || c == 'D') c = 'e';  // Fortran writes exponents with d
  std::size_t used = 0;
  double value = 0.0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  if (used != text.size() || text.empty()) fail(line, "'" + line.values[i] + "' is not a number");
  return value;
}

int InpFile::integer(const InpLine& line, std::size_t i) const {
  const double value = number(line, i);
  if (value != static_cast<double>(static_cast<int>(value)))
    fail(line, "'" + line.values[i] + "' is not a whole number");
  return static_cast<int>(value);
}

}  // namespace quasi::gw
