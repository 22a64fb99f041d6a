#include "tests/tidy/cpp_functions.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>

namespace quasi::test {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// Overwrites [from, to) with blanks, except line breaks.
void blank(std::string& text, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < std::min(to, text.size()); ++i)
    if (text[i] != '\n') text[i] = ' ';
}

/// End of a string or character literal that begins at `at`.
std::size_t end_of_literal(const std::string& text, std::size_t at) {
  const char quote = text[at];
  std::size_t i = at + 1;
  while (i < text.size() && text[i] != quote && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
  return i + 1;
}

/// End of the raw string whose R stands at `at`.
std::size_t end_of_raw_string(const std::string& text, std::size_t at) {
  const std::size_t open = text.find('(', at);
  std::string close(1, ')');
  close.append(text, at + 2, open - at - 2).push_back('"');
  const std::size_t end = text.find(close, open);
  return end == std::string::npos ? text.size() : end + close.size();
}

/// End of a preprocessor directive, continuation lines included.
std::size_t end_of_directive(const std::string& text, std::size_t at) {
  std::size_t end = text.find('\n', at);
  while (end != std::string::npos && end > 0 && text[end - 1] == '\\')
    end = text.find('\n', end + 1);
  return end == std::string::npos ? text.size() : end;
}

/// Reads the statements of a file's namespaces and classes.
class Scanner {
 public:
  explicit Scanner(std::string text) : text_(std::move(text)) {}

  std::vector<CppFunction> run() {
    while (at_ < text_.size()) step();
    return std::move(found_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '(' || c == '[') {
      at_ = end_of_group(at_);
    } else if (c == ';') {
      declaration();
      begin_statement(at_ + 1);
    } else if (c == '}') {
      begin_statement(at_ + 1);
    } else if (c == '{') {
      open_brace();
    } else if (c == ':' && is_access_label()) {
      begin_statement(at_ + 1);
    } else {
      ++at_;
    }
  }

  void begin_statement(std::size_t at) { start_ = at_ = at; }

  std::string_view statement() const {
    return std::string_view(text_).substr(start_, at_ - start_);
  }

  /// Index after the bracket that closes the one at `open`.
  std::size_t end_of_group(std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; i < text_.size(); ++i) {
      if (text_[i] == '(' || text_[i] == '[' || text_[i] == '{') ++depth;
      if (text_[i] == ')' || text_[i] == ']' || text_[i] == '}')
        if (--depth == 0) return i + 1;
    }
    return text_.size();
  }

  bool is_access_label() const {
    std::string_view words = statement();
    while (!words.empty() && is_blank(words.back())) words.remove_suffix(1);
    return words.ends_with("public") || words.ends_with("private") || words.ends_with("protected");
  }

  static bool has_word(std::string_view text, std::string_view word) {
    for (std::size_t at = text.find(word); at != std::string_view::npos;
         at = text.find(word, at + 1)) {
      const bool before = at == 0 || !is_word(text[at - 1]);
      const std::size_t after = at + word.size();
      if (before && (after >= text.size() || !is_word(text[after]))) return true;
    }
    return false;
  }

  /// Start of a function's own line, after `template <…>`.
  std::size_t end_of_template(std::size_t from) const {
    while (from < at_ && is_blank(text_[from])) ++from;
    if (std::string_view(text_).substr(from, 8) != "template") return from;
    int depth = 0;
    for (std::size_t i = from; i < at_; ++i) {
      if (text_[i] == '<') ++depth;
      if (text_[i] == '>' && --depth == 0) return end_of_template(i + 1);
    }
    return from;
  }

  struct Head {
    bool is_function = false;
    std::string name;
    std::size_t begin = 0, open = 0;  ///< positions of the declarator and of the parameter list
    bool has_type = false;            ///< true if a type or specifier precedes the name
  };

  /// The function that the present statement declares, if it declares one.
  Head head() const {
    Head head{.begin = end_of_template(start_)};
    int angles = 0;
    for (std::size_t i = head.begin; i < at_; ++i) {
      const char c = text_[i];
      const bool of_operator =
          has_word(std::string_view(text_).substr(head.begin, i - head.begin), "operator");
      if (c == '=' && !of_operator) return head;
      if (c == '<' && !of_operator) ++angles;
      if (c == '>' && !of_operator && text_[i - 1] != '-') --angles;
      if (c == '[' && !of_operator) {
        i = end_of_group(i) - 1;
        continue;
      }
      if (c != '(') continue;
      std::size_t end = i;
      while (end > head.begin && is_blank(text_[end - 1])) --end;
      std::size_t name = end;
      while (name > head.begin &&
             (is_word(text_[name - 1]) || text_[name - 1] == ':' || text_[name - 1] == '~'))
        --name;
      head.name = text_.substr(name, end - name);
      const bool skipped = angles > 0 || is_attribute(head.name);
      if (of_operator && std::string_view(text_).substr(end - 8, 8) == "operator") continue;
      if (skipped) {
        i = end_of_group(i) - 1;
        continue;
      }
      head.open = i;
      head.is_function = of_operator || !head.name.empty();
      if (of_operator) head.name = "operator";
      head.has_type = has_any_word(std::string_view(text_).substr(head.begin, name - head.begin));
      return head;
    }
    return head;
  }

  static bool is_attribute(std::string_view name) {
    constexpr std::array<std::string_view, 9> kNames{
        "__cluster_dims__", "__launch_bounds__", "__attribute__", "alignas",      "decltype",
        "explicit",         "noexcept",          "requires",      "static_assert"};
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
  }

  static bool has_any_word(std::string_view text) {
    return std::any_of(text.begin(), text.end(), is_word);
  }

  int count_parameters(std::size_t open) const {
    int depth = 0, count = 0;
    bool any = false;
    for (std::size_t i = open; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
      if (c == ')' || (c == '>' && text_[i - 1] != '-') || c == ']' || c == '}')
        if (--depth == 0) break;
      if (depth == 1 && c == ',') ++count;
      if (i > open && !is_blank(c)) any = true;
    }
    return any ? count + 1 : 0;
  }

  /// "Suite.Name" of TEST(Suite, Name).
  std::string test_name(std::size_t open) const {
    std::string name;
    for (std::size_t i = open + 1; i < text_.size() && text_[i] != ')'; ++i)
      if (!is_blank(text_[i])) name += text_[i] == ',' ? '.' : text_[i];
    return name;
  }

  int line_of(std::size_t at) const {
    return 1 + static_cast<int>(std::count(text_.begin(),
                                           text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  }

  void add(const Head& head, std::size_t end) {
    CppFunction function{
        .name = head.name, .line = line_of(head.begin), .parameters = count_parameters(head.open)};
    if (end != 0) function.lines = line_of(end - 1) - function.line + 1;
    if (head.name.starts_with("TEST")) function.name = test_name(head.open);
    function.is_kernel =
        has_word(std::string_view(text_).substr(start_, head.open - start_), "__global__");
    found_.push_back(std::move(function));
  }

  void declaration() {
    const Head h = head();
    const bool is_use =
        h.name.find("::") != std::string::npos;  // std::call(…); in the body of a macro
    if (h.is_function && h.has_type && !is_use && !has_word(statement(), "using")) add(h, 0);
  }

  void open_brace() {
    const std::string_view words = statement();
    const Head h = head();
    const bool opens_scope =
        has_word(words, "namespace") || has_word(words, "extern") ||
        (!h.is_function &&
         (has_word(words, "class") || has_word(words, "struct") || has_word(words, "union")));
    if (opens_scope && !has_word(words, "enum")) {
      begin_statement(at_ + 1);
      return;
    }
    if (!h.is_function || is_member_initializer(h.open)) {
      at_ = end_of_group(at_);
      return;
    }
    const std::size_t end = end_of_group(at_);
    add(h, end);
    begin_statement(end);
  }

  /// True for the brace of `a_{…}` in the initialisers of a constructor.
  bool is_member_initializer(std::size_t open) const {
    bool has_colon = false;
    for (std::size_t i = end_of_group(open); i < at_; ++i) {
      if (text_[i] == ':' && text_[i + 1] != ':' && text_[i - 1] != ':') has_colon = true;
      if (text_[i] == '(' || text_[i] == '{') i = end_of_group(i) - 1;
    }
    std::size_t last = at_;
    while (last > 0 && is_blank(text_[last - 1])) --last;
    return has_colon && last > 0 && (is_word(text_[last - 1]) || text_[last - 1] == '>');
  }

  std::string text_;
  std::size_t at_ = 0, start_ = 0;
  std::vector<CppFunction> found_;
};

}  // namespace

std::string without_comments_and_strings(const std::string& text) {
  std::string result = text;
  bool line_begins = true;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (text.compare(i, 2, "//") == 0)
      end = text.find('\n', i);
    else if (text.compare(i, 2, "/*") == 0)
      end = text.find("*/", i + 2) + 2;
    else if (text.compare(i, 2, "R\"") == 0 && (i == 0 || !is_word(text[i - 1])))
      end = end_of_raw_string(text, i);
    else if (text[i] == '"' || (text[i] == '\'' && (i == 0 || !is_word(text[i - 1]))))
      end = end_of_literal(text, i);
    else if (text[i] == '#' && line_begins)
      end = end_of_directive(text, i);
    if (end == std::string::npos) end = text.size();
    if (end > i + 1) blank(result, i, end);
    if (text[i] == '\n') line_begins = true;
    if (!is_blank(text[i])) line_begins = false;
    i = end;
  }
  return result;
}

std::vector<CppFunction> functions_of(const std::string& text) {
  return Scanner(without_comments_and_strings(text)).run();
}

}  // namespace quasi::test
