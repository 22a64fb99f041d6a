#include "workers/engine/input_record.hpp"

#include <algorithm>
#include <fstream>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/engine/deck_files.hpp"
#include "workers/engine/utf8.hpp"
#include "workers/io/sha256.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kHashedBytes = std::uintmax_t{256} << 20;
constexpr std::uintmax_t kTextBytes = 64 << 10;

/// Adds one file, unless it is absent or unreadable.
void add_file(const fs::path& directory, const fs::path& name, InputRecord* record) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(directory / name, error);
  if (error) return;
  InputRecord::File file{
      .name = name.lexically_normal().generic_string(), .sha256 = {}, .text = {}};
  if (size <= kHashedBytes) {
    std::ifstream in(directory / name, std::ios::binary);
    Sha256 digest;
    std::vector<char> block(1 << 20);
    while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
      const std::string_view bytes(block.data(), static_cast<std::size_t>(in.gcount()));
      digest.update(bytes);
      if (size <= kTextBytes) file.text += bytes;
    }
    file.sha256 = digest.hex();
  }
  const bool is_text = file.text.find('\0') == std::string::npos &&
                       as_utf8(file.text, file.text.size()) == file.text;
  if (!is_text) file.text.clear();
  record->files.push_back(std::move(file));
}

}  // namespace

InputRecord read_input_record(const std::string& kind, const DeckSource& deck) {
  InputRecord record{.files = {}, .settings = deck.settings};
  std::error_code ignored;
  const fs::path directory =
      fs::is_directory(deck.path, ignored) ? deck.path : deck.path.parent_path();
  try {
    for (const DeckFile& file : deck_files(kind, deck.path))
      // A path that leads out of the deck's directory has no name in it.
      if (file.path.is_relative() && *file.path.lexically_normal().begin() != "..")
        add_file(directory, file.path, &record);
  } catch (const InvalidInput&) {
    record.files.clear();
  }
  std::sort(record.files.begin(), record.files.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return record;
}

}  // namespace quasi
