#include "workers/engine/utf8.hpp"

namespace quasi {
namespace {

constexpr auto kReplace = nlohmann::json::error_handler_t::replace;

}  // namespace

std::string as_utf8(std::string_view text, std::size_t limit) {
  using Json = nlohmann::json;
  std::string whole =
      Json::parse(Json(text.substr(0, limit)).dump(-1, ' ', false, kReplace)).get<std::string>();
  if (whole.size() <= limit) return whole;
  std::size_t end = limit;  // A replacement is longer than the byte that it replaces.
  while (end > 0 && (static_cast<unsigned char>(whole[end]) & 0xC0) == 0x80) --end;
  whole.resize(end);
  return whole;
}

std::string indented(const nlohmann::json& document) {
  return document.dump(2, ' ', false, kReplace);
}

}  // namespace quasi
