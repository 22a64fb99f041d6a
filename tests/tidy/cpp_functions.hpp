#pragma once

#include <string>
#include <vector>

namespace quasi::test {

/// A function that a C++ or CUDA file declares or defines outside of other functions.
struct CppFunction {
  std::string name;
  int line = 0;        ///< first line, without a template line; from 1
  int lines = 0;       ///< from there to the closing brace; 0 for a declaration
  int parameters = 0;  ///< number of entries of its parameter list
  bool is_kernel = false;
};

/// The text with comments, strings and preprocessor lines blanked; line breaks stay.
std::string without_comments_and_strings(const std::string& text);

/// The functions of a file, in order. The scanner knows braces, parentheses and statements but no
/// types. A variable initialised with parentheses at namespace scope may look like a declaration.
std::vector<CppFunction> functions_of(const std::string& text);

}  // namespace quasi::test
