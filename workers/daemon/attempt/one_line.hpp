#pragma once

#include <cstddef>
#include <string>

namespace quasi {

/// Returns the text as one line of at most `most_bytes` bytes, cut between characters. Messages on
/// the wire accept such texts.
inline std::string one_line(std::string text, std::size_t most_bytes) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  if (text.size() > most_bytes) {
    std::size_t end = most_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text.resize(end);
  }
  return text;
}

}  // namespace quasi
