#include "workers/thermal/input/control/namelist.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

constexpr std::size_t kMaxValues = 1
                                   << 20;  // of one assignment: "999999999*0" must not fill memory

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Reads the text of namelist groups character by character, counting lines.
class Parser {
 public:
  Parser(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  std::vector<NamelistAssignment> groups() {
    std::vector<NamelistAssignment> assignments;
    for (skip_blank(); !at_end(); skip_blank()) {
      if (peek() != '&' && peek() != '$')
        fail("expected a namelist group such as '&crystal', found '" + rest_of_line() + "'");
      ++at_;
      const std::string group = name();
      if (group.empty()) fail("'&' is not followed by a group's name");
      group_line_ = line_;
      while (!group_ends(group)) assignments.push_back(assignment(group));
    }
    return assignments;
  }

  NamelistAssignment single() {
    skip_blank();
    NamelistAssignment result = assignment("");
    skip_separators();
    if (!at_end()) fail("'" + rest_of_line() + "' follows the value");
    return result;
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  std::string where() const {
    return file_.starts_with("--set") ? file_ : file_ + " line " + std::to_string(line_);
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InvalidInput(where() + ": " + what);
  }
  std::string rest_of_line() const {
    const auto end = text_.find('\n', at_);
    std::string rest(text_.substr(at_, end == std::string_view::npos ? end : end - at_));
    rest = rest.substr(0, 40);
    for (char& c : rest)
      if (std::iscntrl(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) > 126)
        c = '?';
    return rest;
  }

  void skip_blank() {
    for (; !at_end(); ++at_) {
      if (peek() == '!') {
        while (!at_end() && peek() != '\n') ++at_;
        if (at_end()) return;
      }
      if (peek() == '\n')
        ++line_;
      else if (!std::isspace(static_cast<unsigned char>(peek())))
        return;
    }
  }
  void skip_separators() {
    for (skip_blank(); peek() == ','; skip_blank()) ++at_;
  }

  std::string name() {
    const std::size_t start = at_;
    if (is_name_start(peek()))
      while (is_name(peek())) ++at_;
    return lower(text_.substr(start, at_ - start));
  }

  bool group_ends(const std::string& group) {
    skip_separators();
    if (at_end())
      fail("group '&" + group + "' opened on line " + std::to_string(group_line_) +
           " is not closed; end it with '/' or '&end'");
    if (peek() == '/') {
      ++at_;
      return true;
    }
    if (peek() == '&' || peek() == '$') {
      ++at_;
      const std::string word = name();
      if (word == "end") return true;
      fail("group '&" + group + "' is not closed before '&" + word +
           "'; end it with '/' or '&end'");
    }
    return false;
  }

  /// True if a key (a name, perhaps with subscripts, then '=') starts here.
  bool key_starts() const {
    std::size_t i = at_;
    if (i >= text_.size() || !is_name_start(text_[i])) return false;
    while (i < text_.size() && is_name(text_[i])) ++i;
    const auto blanks = [&] {
      while (i < text_.size() && std::isspace(static_cast<unsigned char>(text_[i]))) ++i;
    };
    blanks();
    if (i < text_.size() && text_[i] == '(') return true;
    return i < text_.size() && text_[i] == '=';
  }

  NamelistAssignment assignment(const std::string& group) {
    NamelistAssignment result;
    result.group = group;
    result.where = where();
    if (!is_name_start(peek())) fail("expected a key, found '" + rest_of_line() + "'");
    result.key = name();
    skip_blank();
    if (peek() == '(') result.subscripts = subscripts(result.key);
    skip_blank();
    if (peek() != '=') fail("key '" + result.key + "' is not followed by '='");
    ++at_;
    values(result);
    return result;
  }

  std::vector<NamelistSubscript> subscripts(const std::string& key) {
    std::vector<NamelistSubscript> result;
    do {
      ++at_;  // '(' or ','
      NamelistSubscript subscript;
      skip_blank();
      subscript.first = index(key);
      skip_blank();
      if (peek() == ':') {
        ++at_;
        skip_blank();
        subscript.last = index(key);
        skip_blank();
      } else {
        if (!subscript.first) fail("subscript of '" + key + "' is not a number, a range or ':'");
        subscript.last = subscript.first;
        subscript.single = true;
      }
      result.push_back(subscript);
    } while (peek() == ',');
    if (peek() != ')') fail("subscripts of '" + key + "' are not closed by ')'");
    ++at_;
    return result;
  }

  std::optional<int> index(const std::string& key) {
    const std::size_t start = at_;
    if (peek() == '+' || peek() == '-') ++at_;
    while (std::isdigit(static_cast<unsigned char>(peek()))) ++at_;
    if (start == at_) return std::nullopt;
    int value = 0;
    const auto [end, error] = std::from_chars(text_.data() + start + (text_[start] == '+' ? 1 : 0),
                                              text_.data() + at_, value);
    if (error != std::errc() || end != text_.data() + at_)
      fail("subscript '" + std::string(text_.substr(start, at_ - start)) + "' of '" + key +
           "' is not an integer");
    return value;
  }

  void values(NamelistAssignment& result) {
    bool value_expected = true;  // a comma with no value before it is a null value
    for (;;) {
      skip_blank();
      if (at_end() || peek() == '/' || peek() == '&' || peek() == '$' || key_starts()) return;
      if (peek() == ',') {
        if (value_expected) append(result, 1, {});
        value_expected = true;
        ++at_;
        continue;
      }
      if (peek() == '=') fail("'=' follows the values of '" + result.key + "'");
      value(result);
      value_expected = false;
    }
  }

  void append(NamelistAssignment& result, std::size_t count, const NamelistValue& value) {
    if (result.values.size() + count > kMaxValues)
      fail("'" + result.key + "' is given more than " + std::to_string(kMaxValues) + " values");
    result.values.insert(result.values.end(), count, value);
  }

  void value(NamelistAssignment& result) {
    std::size_t count = 1;
    std::size_t i = at_;
    while (i < text_.size() && std::isdigit(static_cast<unsigned char>(text_[i]))) ++i;
    if (i > at_ && i < text_.size() && text_[i] == '*') {
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + i, count);
      if (error != std::errc() || end != text_.data() + i || count == 0)
        fail("repeat count '" + std::string(text_.substr(at_, i - at_)) + "' of '" + result.key +
             "' is not a positive integer");
      at_ = i + 1;
      const char c = peek();
      if (at_end() || std::isspace(static_cast<unsigned char>(c)) || c == ',' || c == '/') {
        append(result, count, {});
        return;
      }
    }
    NamelistValue value;
    if (peek() == '"' || peek() == '\'') {
      value = {quoted(result.key), true};
    } else {
      const std::size_t start = at_;
      while (!at_end() && !std::isspace(static_cast<unsigned char>(peek())) &&
             std::string_view(",/!&$=\"'").find(peek()) == std::string_view::npos)
        ++at_;
      if (start == at_)
        fail("unexpected '" + rest_of_line() + "' in the values of '" + result.key + "'");
      value = {std::string(text_.substr(start, at_ - start)), false};
    }
    append(result, count, value);
  }

  std::string quoted(const std::string& key) {
    const char quote = peek();
    std::string result;
    for (++at_; !at_end() && peek() != '\n'; ++at_) {
      if (peek() == quote) {
        if (peek(1) != quote) {
          ++at_;
          return result;
        }
        ++at_;  // a doubled quote stands for itself
      }
      result += peek();
    }
    fail("string of '" + key + "' is not closed by " + quote);
  }

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  int line_ = 1;
  int group_line_ = 1;
};

[[noreturn]] void fail_value(const NamelistValue& value, const NamelistAssignment& assignment,
                             const char* expected) {
  throw InvalidInput(assignment.where + ": '" + assignment.key + "' must be " + expected +
                     ", got '" + value.text.value_or("") + "'");
}

}  // namespace

std::vector<NamelistAssignment> parse_namelists(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF"))
    text.remove_prefix(3);  // the mark of UTF-8 that some editors put first
  return Parser(text, file).groups();
}

NamelistAssignment parse_namelist_setting(std::string_view key, std::string_view value) {
  const std::string text = std::string(key) + "=" + std::string(value);
  NamelistAssignment assignment = Parser(text, "--set " + text.substr(0, 60)).single();
  assignment.complete = true;
  return assignment;
}

double namelist_real(const NamelistValue& value, const NamelistAssignment& assignment) {
  std::string text = lower(value.text.value_or(""));
  std::replace(text.begin(), text.end(), 'd', 'e');
  const bool plus = text.starts_with('+');
  double number = 0.0;
  const auto [end, error] =
      std::from_chars(text.data() + (plus ? 1 : 0), text.data() + text.size(), number);
  if (value.quoted || error != std::errc() || end != text.data() + text.size() ||
      !std::isfinite(number))
    fail_value(value, assignment, "a finite real number");
  return number;
}

long long namelist_integer(const NamelistValue& value, const NamelistAssignment& assignment) {
  const std::string text = value.text.value_or("");
  const bool plus = text.starts_with('+');
  long long number = 0;
  const auto [end, error] =
      std::from_chars(text.data() + (plus ? 1 : 0), text.data() + text.size(), number);
  if (value.quoted || error != std::errc() || end != text.data() + text.size())
    fail_value(value, assignment, "an integer");
  return number;
}

bool namelist_logical(const NamelistValue& value, const NamelistAssignment& assignment) {
  const std::string text = lower(value.text.value_or(""));
  if (!value.quoted) {
    if (text == "t" || text == "true" || text == ".t" || text == ".t." || text == ".true.")
      return true;
    if (text == "f" || text == "false" || text == ".f" || text == ".f." || text == ".false.")
      return false;
  }
  fail_value(value, assignment, "a logical (.true. or .false.)");
}

}  // namespace quasi::thermal
