#pragma once

#include <filesystem>
#include <pugixml.hpp>
#include <string>
#include <vector>

namespace quasi::gw {

/// One XML file of Quantum ESPRESSO. Every failure is an InvalidInput that names the file, the path
/// of the element and the remedy.
class XmlFile {
 public:
  /// Parses the text of `path`. @param remedy  ends the messages, e.g. "rerun pw.x"
  XmlFile(std::filesystem::path path, std::string remedy, const std::string& text);

  pugi::xml_node root() const { return document_.document_element(); }
  /// Returns the element at `path` ("band_structure/nks") below `from`.
  pugi::xml_node element(pugi::xml_node from, const char* path) const;
  std::string text(pugi::xml_node from, const char* path) const;
  bool flag(pugi::xml_node from, const char* path) const;
  double number(pugi::xml_node from, const char* path) const;
  /// Returns an attribute as a number.
  double attribute(pugi::xml_node node, const char* name) const;
  /// Returns the numbers in the text of an element.
  /// @param count  their required number; −1: any
  std::vector<double> numbers(pugi::xml_node node, std::int64_t count) const;
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  double parsed(const std::string& word, const std::string& of) const;
  std::filesystem::path path_;
  std::string remedy_;
  pugi::xml_document document_;
};

/// Reads a file of text. @throws InvalidInput if it is missing or has more than 1 GiB
std::string read_xml_text(const std::filesystem::path& path, const std::string& remedy);

/// True for "true", "T", ".true." and "1", as Fortran and XML write them.
bool is_true(std::string word);

}  // namespace quasi::gw
