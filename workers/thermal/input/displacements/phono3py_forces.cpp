#include "workers/thermal/input/displacements/phono3py_forces.hpp"

#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, long line, const std::string& what) {
  throw InvalidInput(file.filename().string() + " line " + std::to_string(line) + ": " + what);
}

/// Reads three finite numbers. @return false if the line has something else
bool read_vector(const std::string& line, Vec3& vector) {
  std::istringstream in(line);
  std::string word;
  std::size_t count = 0;
  while (in >> word) {
    double value = 0.0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (count == 3 || failure != std::errc() || end != word.data() + word.size() ||
        !std::isfinite(value))
      return false;
    vector[count++] = value;
  }
  return count == 3;
}

}  // namespace

std::vector<ForceFrame> read_phono3py_forces(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw InvalidInput("'" + file.string() + "' is missing or cannot be read");
  std::vector<ForceFrame> frames;
  long number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    if (line[first] == '#') {
      if (line.find("File:", first) != std::string::npos) frames.emplace_back();
      continue;
    }
    if (frames.empty())
      fail(file, number, "a comment '# File: 1' was expected before the forces of a supercell");
    Vec3 force{};
    if (!read_vector(line, force))
      fail(file, number, "three finite numbers were expected, found '" + line.substr(0, 40) + "'");
    frames.back().force_ev_per_angstrom.push_back(force);
  }
  return frames;
}

}  // namespace quasi::thermal
