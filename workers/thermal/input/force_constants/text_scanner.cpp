#include "workers/thermal/input/force_constants/text_scanner.hpp"

#include <charconv>
#include <cmath>
#include <fstream>

#include "workers/backend/error.hpp"
#include "workers/io/input_path.hpp"

namespace quasi::thermal {
namespace {

bool blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

std::string printable(std::string_view token) {
  std::string result(token.substr(0, 40));
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126) c = '?';
  return result;
}

}  // namespace

TextScanner::TextScanner(const std::filesystem::path& file) : name_(file.filename().string()) {
  std::error_code failure;
  const auto size = std::filesystem::file_size(input_file(file), failure);
  std::ifstream in(file, std::ios::binary);
  if (failure || !in) throw InvalidInput("'" + file.string() + "' is missing or cannot be read");
  text_.resize(size);
  if (!in.read(text_.data(), static_cast<std::streamsize>(size)))
    throw InvalidInput("'" + file.string() + "' cannot be read to its end");
}

void TextScanner::fail(const std::string& what) const {
  throw InvalidInput(name_ + " line " + std::to_string(line_) + ": " + what);
}

void TextScanner::skip_blank() {
  for (; at_ < text_.size() && blank(text_[at_]); ++at_)
    if (text_[at_] == '\n') ++line_;
}

void TextScanner::skip_line() {
  const std::size_t end = text_.find('\n', at_);
  if (end == std::string::npos) {
    at_ = text_.size();
    return;
  }
  at_ = end + 1;
  ++line_;
}

bool TextScanner::at_end() {
  skip_blank();
  return at_ >= text_.size();
}

std::string_view TextScanner::word(const char* what) {
  if (at_end()) fail(std::string("the file ends where ") + what + " is expected; is it truncated?");
  const std::size_t start = at_;
  if (text_[at_] == '\'' || text_[at_] == '"') {
    const std::size_t close = text_.find(text_[at_], at_ + 1);
    const std::size_t end = text_.find('\n', at_);
    if (close == std::string::npos || close > end)
      fail(std::string("the quotes of ") + what + " are not closed");
    at_ = close + 1;
    return std::string_view(text_).substr(start + 1, close - start - 1);
  }
  while (at_ < text_.size() && !blank(text_[at_])) ++at_;
  return std::string_view(text_).substr(start, at_ - start);
}

double TextScanner::real(const char* what) {
  const std::string_view token = word(what);
  double value = 0.0;
  const char* first = token.data() + (token.size() > 1 && token[0] == '+' ? 1 : 0);
  auto [end, error] = std::from_chars(first, token.data() + token.size(), value);
  if (error == std::errc() && end != token.data() + token.size() && (*end == 'd' || *end == 'D')) {
    std::string copy(token);
    copy[static_cast<std::size_t>(end - token.data())] = 'e';
    const char* begin = copy.data() + (copy[0] == '+' ? 1 : 0);
    const auto again = std::from_chars(begin, copy.data() + copy.size(), value);
    if (again.ec == std::errc() && again.ptr == copy.data() + copy.size() && std::isfinite(value))
      return value;
  } else if (error == std::errc() && end == token.data() + token.size() && std::isfinite(value)) {
    return value;
  }
  fail(std::string(what) + " must be a finite number, got '" + printable(token) + "'");
}

std::int64_t TextScanner::integer(const char* what) {
  const std::string_view token = word(what);
  std::int64_t value = 0;
  const char* first = token.data() + (token.size() > 1 && token[0] == '+' ? 1 : 0);
  const auto [end, error] = std::from_chars(first, token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size())
    fail(std::string(what) + " must be an integer, got '" + printable(token) + "'");
  return value;
}

std::int64_t TextScanner::integer(const char* what, std::int64_t low, std::int64_t high) {
  const std::int64_t value = integer(what);
  if (value < low || value > high)
    fail(std::string(what) + " must lie between " + std::to_string(low) + " and " +
         std::to_string(high) + ", got " + std::to_string(value));
  return value;
}

std::vector<std::string_view> TextScanner::line_words(const char* what) {
  std::vector<std::string_view> words{word(what)};
  for (;;) {
    while (at_ < text_.size() && blank(text_[at_]) && text_[at_] != '\n') ++at_;
    if (at_ >= text_.size() || text_[at_] == '\n') return words;
    words.push_back(word(what));
  }
}

}  // namespace quasi::thermal
