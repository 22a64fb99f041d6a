#include "workers/thermal/input/displacements/extended_xyz.hpp"

#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

constexpr long kMostAtoms = 1'000'000;

/// Reads the lines of a file and counts them.
class Lines {
 public:
  explicit Lines(const std::filesystem::path& file) : in_(file), name_(file.filename().string()) {
    if (!in_) throw InvalidInput("'" + file.string() + "' is missing or cannot be read");
  }
  bool next(std::string& line) {
    if (!std::getline(in_, line)) return false;
    ++number_;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return true;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InvalidInput(name_ + " line " + std::to_string(number_) + ": " + what);
  }

 private:
  std::ifstream in_;
  std::string name_;
  long number_ = 0;
};

/// Holds the columns of a line of atoms, counted from zero.
struct Columns {
  std::optional<std::size_t> species, position, force;
  std::size_t count = 0;
};

/// Returns the value of `key` in a line of KEY=VALUE or KEY="VALUE"; nothing if the key is absent.
std::optional<std::string> value_of(const std::string& line, const std::string& key) {
  std::size_t at = line.find(key + "=");
  while (at != std::string::npos && at > 0 && line[at - 1] != ' ' && line[at - 1] != '\t')
    at = line.find(key + "=", at + 1);
  if (at == std::string::npos) return {};
  at += key.size() + 1;
  const bool quoted = at < line.size() && line[at] == '"';
  if (quoted) ++at;
  const std::size_t end = quoted ? line.find('"', at) : line.find_first_of(" \t", at);
  return line.substr(at, end == std::string::npos ? end : end - at);
}

double real(const std::string& word, const Lines& lines) {
  double value = 0.0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
    lines.fail("'" + word + "' is not a finite number");
  return value;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

Columns parse_properties(std::string text, const Lines& lines) {
  Columns columns;
  for (char& c : text)
    if (c == ':') c = ' ';
  const std::vector<std::string> words = words_of(text);
  if (words.size() % 3 != 0) lines.fail("'Properties' is not a list of NAME:TYPE:COLUMNS");
  for (std::size_t i = 0; i < words.size(); i += 3) {
    const double width = real(words[i + 2], lines);
    if (!(width >= 1.0 && width <= 100.0))
      lines.fail("'Properties' has " + words[i + 2] + " columns");
    if (words[i] == "species") columns.species = columns.count;
    if (words[i] == "pos" && width == 3.0) columns.position = columns.count;
    if ((words[i] == "forces" || words[i] == "force") && width == 3.0)
      columns.force = columns.count;
    columns.count += static_cast<std::size_t>(width);
  }
  if (!columns.species || !columns.position) lines.fail("'Properties' lacks species or pos");
  if (!columns.force)
    lines.fail("'Properties' lacks forces:R:3; write the frames after the forces were computed");
  return columns;
}

ForceFrame read_frame(long n_atoms, Lines& lines) {
  std::string line;
  if (!lines.next(line)) lines.fail("the file ends after a number of atoms; is it truncated?");
  const auto lattice = value_of(line, "Lattice");
  const auto properties = value_of(line, "Properties");
  if (!lattice || !properties)
    lines.fail("a line with Lattice=\"…\" and Properties=… was expected; write extended XYZ");
  ForceFrame frame;
  const std::vector<std::string> numbers = words_of(*lattice);
  if (numbers.size() != 9) lines.fail("'Lattice' needs 9 numbers");
  for (int e = 0; e < 9; ++e) frame.lattice_angstrom[e / 3][e % 3] = real(numbers[e], lines);
  const Columns columns = parse_properties(*properties, lines);
  for (long atom = 0; atom < n_atoms; ++atom) {
    if (!lines.next(line))
      lines.fail("the file ends after " + std::to_string(atom) + " of " + std::to_string(n_atoms) +
                 " atoms; is it truncated?");
    const std::vector<std::string> words = words_of(line);
    if (words.size() != columns.count)
      lines.fail(std::to_string(words.size()) + " columns, and 'Properties' names " +
                 std::to_string(columns.count));
    const auto vector_at = [&](std::size_t column) {
      return Vec3{real(words[column], lines), real(words[column + 1], lines),
                  real(words[column + 2], lines)};
    };
    frame.symbol.push_back(words[*columns.species]);
    frame.position_angstrom.push_back(vector_at(*columns.position));
    frame.force_ev_per_angstrom.push_back(vector_at(*columns.force));
  }
  return frame;
}

}  // namespace

std::vector<ForceFrame> read_extended_xyz(const std::filesystem::path& file) {
  Lines lines(file);
  std::vector<ForceFrame> frames;
  std::string line;
  while (lines.next(line)) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    const double count = words.size() == 1 ? real(words[0], lines) : 0.0;
    if (!(count >= 1.0 && count <= kMostAtoms) || count != std::floor(count))
      lines.fail("a number of atoms was expected, found '" + line.substr(0, 40) + "'");
    frames.push_back(read_frame(static_cast<long>(count), lines));
  }
  return frames;
}

}  // namespace quasi::thermal
