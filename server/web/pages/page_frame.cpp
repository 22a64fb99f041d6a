#include "server/web/pages/page_frame.hpp"

#include <algorithm>
#include <cmath>

namespace quasi::server {
namespace {

constexpr float kWidth = 120;
constexpr float kHeight = 24;

}  // namespace

std::string whole_page(const PageFrame& frame, const Html& content) {
  Html page;
  page.markup("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
      .markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
      .markup("<meta name=\"referrer\" content=\"no-referrer\">\n");
  if (frame.refreshes) page.markup("<meta http-equiv=\"refresh\" content=\"10\">\n");
  page.markup("<title>").text(frame.title).markup(" – Quasi</title>\n");
  page.markup("<link rel=\"stylesheet\" href=\"/style.css\">\n</head>\n<body>\n<header>\n");
  page.markup("<a class=\"brand\" href=\"/\">Quasi</a>\n<p>");
  if (frame.visitor.empty())
    page.markup("Sums only. <a href=\"/sign-in\">Sign in with a token</a> to see jobs.");
  else
    page.text(frame.visitor);
  page.markup("</p>\n<p><a href=\"").text(frame.path);
  if (frame.refreshes)
    page.markup("\">Stop refreshing</a>");
  else
    page.markup("?refresh=1\">Refresh every 10 s</a>");
  page.markup("</p>\n</header>\n<main>\n").add(content).markup("</main>\n<footer>\n<p>");
  page.text(shown_time(frame.now_ms)).markup("</p>\n<p>quasi-server ").text(frame.version);
  page.markup("</p>\n</footer>\n</body>\n</html>\n");
  return page.str();
}

void add_spark_line(Html& html, const Series& series, float top, const std::string& label) {
  const auto& values = series.values();
  if (values.size() < 2) {
    html.markup("<span class=\"soft none\">no history yet</span>");
    return;
  }
  const float largest =
      top > 0 ? top : std::max(1.0F, *std::max_element(values.begin(), values.end()));
  html.markup(
          "<svg class=\"spark\" viewBox=\"0 0 120 24\" preserveAspectRatio=\"none\" role=\"img\"")
      .markup(" aria-label=\"")
      .text(label)
      .markup("\"><line x1=\"0\" y1=\"23.5\" x2=\"120\" y2=\"23.5\"/><polyline points=\"");
  // The newest value is at the right edge; a short series leaves the left empty.
  const float step = kWidth / static_cast<float>(Series::kMost - 1);
  float x = kWidth - step * static_cast<float>(values.size() - 1);
  for (const float value : values) {
    const float share = std::clamp(value / largest, 0.0F, 1.0F);
    html.number(std::lround(x))
        .markup(",")
        .text(shown_number_of(std::round(10 * (kHeight - 1 - (kHeight - 2) * share)) / 10.0));
    html.markup(" ");
    x += step;
  }
  html.markup("\"/></svg>");
}

void add_bar(Html& html, double part, double whole, const std::string& label) {
  const double share = whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0.0;
  html.markup("<progress max=\"100\" value=\"")
      .number(std::lround(100 * share))
      .markup("\" aria-label=\"")
      .text(label)
      .markup("\">")
      .text(shown_share(share))
      .markup("</progress>");
}

}  // namespace quasi::server
