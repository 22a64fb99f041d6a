#pragma once

#include <filesystem>
#include <pugixml.hpp>
#include <string>
#include <vector>

namespace quasi::gw {

/// Reads elements of one XML file of Quantum ESPRESSO. Every function throws InvalidInput with the
/// file, the path of the element and the remedy if the element is missing or not of its type.
class XmlFile {
 public:
  /// Parses a text that was read from a file.
  /// @param path    path of the file, for messages
  /// @param remedy  end of all messages, such as "rerun pw.x"
  XmlFile(std::filesystem::path path, std::string remedy, const std::string& text);

  pugi::xml_node root() const { return document_.document_element(); }
  /// Returns the element below `from` at a path such as "band_structure/nks".
  pugi::xml_node element(pugi::xml_node from, const char* path) const;
  /// Returns the text of that element as text, as true or false, and as one number.
  std::string text(pugi::xml_node from, const char* path) const;
  bool flag(pugi::xml_node from, const char* path) const;
  double number(pugi::xml_node from, const char* path) const;
  /// Returns an attribute of an element as a number.
  double attribute(pugi::xml_node node, const char* name) const;
  /// Returns the numbers in the text of an element.
  /// @param count  required number of them; −1 accepts any
  std::vector<double> numbers(pugi::xml_node node, std::int64_t count) const;
  /// Throws InvalidInput with the name of the file, `problem` and the remedy.
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  double parsed(const std::string& word, const std::string& of) const;
  std::filesystem::path path_;
  std::string remedy_;
  pugi::xml_document document_;
};

/// Returns the text of a file. @param remedy  end of the message of a failure
/// @throws InvalidInput if the file is missing or has more than 1 GiB
std::string read_xml_text(const std::filesystem::path& path, const std::string& remedy);

/// Returns true for the words "true", "T", ".true." and "1" of Fortran and XML.
bool is_true(std::string word);

}  // namespace quasi::gw
