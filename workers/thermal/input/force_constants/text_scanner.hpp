#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace quasi::thermal {

/// Reads the words of a text file, which white space separates, and counts its lines. Every failure
/// is an InvalidInput "FILE line N: …".
class TextScanner {
 public:
  explicit TextScanner(const std::filesystem::path& file);
  TextScanner(std::string text, std::string name)
      : text_(std::move(text)), name_(std::move(name)) {}

  double real(const char* what);  ///< the next number; 1.0d0 is understood
  std::int64_t integer(const char* what);
  std::int64_t integer(const char* what, std::int64_t low, std::int64_t high);
  std::string_view word(const char* what);  ///< the next token; quoted strings are one token
  /// Tokens of the rest of this line (of the next line that has any, when this one is used up).
  std::vector<std::string_view> line_words(const char* what);
  void skip_line();  ///< skips the rest of this line
  bool at_end();     ///< true if nothing but blanks is left
  [[noreturn]] void fail(const std::string& what) const;
  std::size_t bytes_left() const { return text_.size() - at_; }

 private:
  void skip_blank();
  std::string text_;
  std::string name_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace quasi::thermal
