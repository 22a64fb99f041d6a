#include "workers/thermal/input/displacements/force_document.hpp"

#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <utility>

#include "workers/backend/error.hpp"

namespace quasi::thermal {

ForceDocument::ForceDocument(const std::filesystem::path& file, std::string program)
    : name_(file.string()), program_(std::move(program)) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw InvalidInput("'" + name_ + "' is missing or cannot be read");
  std::ostringstream text;
  text << in.rdbuf();
  text_ = text.str();
}

void ForceDocument::fail(const std::string& what) const {
  throw InvalidInput("'" + name_ + "': " + what);
}

std::string_view ForceDocument::between(std::string_view part, std::string_view open,
                                        std::string_view close) const {
  const std::size_t start = part.find(open);
  const std::size_t end =
      start == std::string_view::npos ? start : part.find(close, start + open.size());
  if (end == std::string_view::npos)
    fail("no complete " + std::string(open) + " was found; did " + program_ + " end early?");
  return part.substr(start + open.size(), end - start - open.size());
}

std::string_view ForceDocument::take_line(std::string_view& part) {
  const std::size_t end = part.find('\n');
  std::string_view line = part.substr(0, end);
  part = end == std::string_view::npos ? std::string_view() : part.substr(end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

double ForceDocument::real(std::string_view word) const {
  double value = 0.0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
    fail(std::string("'").append(word) + "' is not a finite number");
  return value;
}

std::vector<double> ForceDocument::reals(std::string_view part) const {
  std::string spaced;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const bool digit_before = i > 0 && std::isdigit(static_cast<unsigned char>(part[i - 1])) != 0;
    if (part[i] == '-' && digit_before) spaced += ' ';
    spaced += part[i];
  }
  std::istringstream words(spaced);
  std::vector<double> numbers;
  for (std::string word; words >> word;) numbers.push_back(real(word));
  return numbers;
}

Vec3 ForceDocument::vector(std::string_view part, const std::string& name) const {
  const std::vector<double> numbers = reals(part);
  if (numbers.size() < 3) fail("a vector of '" + name + "' has no three numbers");
  return {numbers[0], numbers[1], numbers[2]};
}

std::string element_of_label(std::string_view label) {
  const std::size_t first = label.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  std::string element(1, label[first]);
  if (first + 1 < label.size() && std::islower(static_cast<unsigned char>(label[first + 1])) != 0)
    element += label[first + 1];
  return element;
}

}  // namespace quasi::thermal
