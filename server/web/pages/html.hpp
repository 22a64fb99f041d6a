#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Begin here: server/web/pages writes the status page. html.hpp escapes, page_frame.hpp is what
/// all pages share, and overview_page.hpp and job_page.hpp are the pages. They take plain values
/// and read nothing.
namespace quasi::server {

/// Text for a page: control characters, bytes that are no UTF-8, and the characters that change the
/// direction of a text become U+FFFD. Line ends and tabs stay.
std::string visible(std::string_view text);

/// A document that grows. Markup comes from literals of this program alone; everything else is
/// text and is escaped, in elements and in attributes with double quotes.
class Html {
 public:
  template <std::size_t N>
  Html& markup(const char (&literal)[N]) {
    out_.append(literal, N - 1);
    return *this;
  }
  Html& text(std::string_view text);
  Html& number(std::int64_t number) { return text(std::to_string(number)); }
  /// Adds another document.
  Html& add(const Html& other) {
    out_ += other.out_;
    return *this;
  }
  const std::string& str() const { return out_; }

 private:
  std::string out_;
};

/// "3 d 4 h", "12 min 5 s" or "0.4 s".
std::string shown_duration(std::int64_t ms);
/// "812 B" or "1.3 GB".
std::string shown_bytes_of(std::int64_t bytes);
/// "2026-11-26 21:38:34 UTC"; "–" for 0.
std::string shown_time(std::int64_t wall_ms);
/// "85 %".
std::string shown_share(double share);
/// A number with six significant digits.
std::string shown_number_of(double value);

}  // namespace quasi::server
