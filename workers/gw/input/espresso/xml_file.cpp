#include "workers/gw/input/espresso/xml_file.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/io/input_path.hpp"

namespace quasi::gw {

std::string read_xml_text(const std::filesystem::path& path, const std::string& remedy) {
  constexpr std::uintmax_t kLimit_bytes = std::uintmax_t{1} << 30;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(input_file(path), error);
  if (error)
    throw InvalidInput("'" + path.string() + "' cannot be read: " + error.message() + "; " +
                       remedy);
  if (size > kLimit_bytes)
    throw InvalidInput("'" + path.string() + "' has " + std::to_string(size) +
                       " bytes, more than 1 GiB; " + remedy);
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_true(std::string word) {
  std::erase_if(word, [](unsigned char c) { return std::isspace(c) || c == '.'; });
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word == "true" || word == "t" || word == "1";
}

XmlFile::XmlFile(std::filesystem::path path, std::string remedy, const std::string& text)
    : path_(std::move(path)), remedy_(std::move(remedy)) {
  const pugi::xml_parse_result result = document_.load_buffer(text.data(), text.size());
  if (!result)
    fail("is no complete XML: " + std::string(result.description()) + " at byte " +
         std::to_string(result.offset));
}

void XmlFile::fail(const std::string& problem) const {
  throw InvalidInput("'" + path_.string() + "' " + problem + "; " + remedy_);
}

pugi::xml_node XmlFile::element(pugi::xml_node from, const char* path) const {
  const pugi::xml_node node = from.first_element_by_path(path);
  if (!node) fail("has no element " + std::string(from.name()) + "/" + path);
  return node;
}

std::string XmlFile::text(pugi::xml_node from, const char* path) const {
  std::istringstream words(element(from, path).child_value());
  std::string joined, word;
  while (words >> word) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

bool XmlFile::flag(pugi::xml_node from, const char* path) const {
  return is_true(text(from, path));
}

double XmlFile::number(pugi::xml_node from, const char* path) const {
  return numbers(element(from, path), 1)[0];
}

double XmlFile::attribute(pugi::xml_node node, const char* name) const {
  const std::string of = std::string(node.name()) + "/@" + name;
  const pugi::xml_attribute found = node.attribute(name);
  if (!found) fail("has no attribute " + of);
  return parsed(found.value(), of);
}

std::vector<double> XmlFile::numbers(pugi::xml_node node, std::int64_t count) const {
  std::vector<double> values;
  std::istringstream words(node.child_value());
  for (std::string word; words >> word;) values.push_back(parsed(word, node.name()));
  if (count >= 0 && static_cast<std::int64_t>(values.size()) != count)
    fail("holds " + std::to_string(values.size()) + " numbers in " + node.name() + ", " +
         std::to_string(count) + " are expected");
  return values;
}

double XmlFile::parsed(const std::string& word, const std::string& of) const {
  std::string plain = word;  // Fortran may write the exponent with the letter D, as in 1.0D+00.
  std::replace(plain.begin(), plain.end(), 'D', 'E');
  std::replace(plain.begin(), plain.end(), 'd', 'e');
  while (!plain.empty() && std::isspace(static_cast<unsigned char>(plain.back()))) plain.pop_back();
  char* end = nullptr;
  const double value = std::strtod(plain.c_str(), &end);
  if (plain.empty() || *end != '\0' || !std::isfinite(value))
    fail("holds '" + word + "' in " + of + ", which is not a finite number");
  return value;
}

}  // namespace quasi::gw
