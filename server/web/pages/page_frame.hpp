#pragma once

#include <cstdint>
#include <string>

#include "server/web/pages/html.hpp"
#include "server/web/series.hpp"

namespace quasi::server {

/// Values that the head and the foot of every page show.
struct PageFrame {
  std::string title;
  std::string path;     ///< of the page itself
  std::string visitor;  ///< name and role; "" without a token
  bool refreshes = false;
  std::int64_t now_ms = 0;
  std::string version;
};

/// A whole HTML document without scripts. Its style is /style.css alone.
std::string whole_page(const PageFrame& frame, const Html& content);

/// The style sheet of all pages.
std::string style_sheet();

/// A small diagram of a series as inline SVG, with a sentence for those who do not see it.
/// @param top  value at the upper edge; 0: the largest of the series
void add_spark_line(Html& html, const Series& series, float top, const std::string& label);

/// A bar that shows the share `part` / `whole`.
void add_bar(Html& html, double part, double whole, const std::string& label);

}  // namespace quasi::server
