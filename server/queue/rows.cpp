#include "server/queue/rows.hpp"

#include <bit>
#include <charconv>
#include <stdexcept>

namespace quasi::server {

std::int32_t memory_class_of(std::int64_t bytes) {
  return bytes <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(bytes)) - 1;
}

Placement JobRow::placement() const {
  return {
      .kind = kind, .device = device, .gpus = gpus, .memory_class = memory_class_of(memory_bytes)};
}

std::string encode(const Placement& placement) {
  return placement.kind + "/" + std::to_string(static_cast<int>(placement.device)) + "/" +
         std::to_string(placement.gpus) + "/" + std::to_string(placement.memory_class);
}

Placement decode_placement(std::string_view text) {
  Placement placement;
  const std::size_t slash = text.find('/');
  placement.kind = text.substr(0, slash);
  std::int32_t numbers[3] = {};
  std::size_t start = slash;
  for (std::int32_t& number : numbers) {
    if (start == std::string_view::npos)
      throw std::logic_error(
          "the placement in the store cannot be read; restore the database from a backup");
    const auto [end, error] =
        std::from_chars(text.data() + start + 1, text.data() + text.size(), number);
    if (error != std::errc())
      throw std::logic_error(
          "the placement in the store cannot be read; restore the database from a backup");
    const auto position = static_cast<std::size_t>(end - text.data());
    start = position < text.size() ? position : std::string_view::npos;
  }
  placement.device = static_cast<Preference>(numbers[0]);
  placement.gpus = numbers[1];
  placement.memory_class = numbers[2];
  return placement;
}

}  // namespace quasi::server
