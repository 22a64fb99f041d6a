#include "workers/io/input_path.hpp"

#include <algorithm>

#include "workers/backend/error.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path>& allowed_roots() {
  static std::vector<fs::path> roots;
  return roots;
}

bool lies_below(const fs::path& path, const fs::path& root) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

}  // namespace

void confine_inputs(const std::vector<fs::path>& roots) {
  allowed_roots().clear();
  for (const fs::path& root : roots) {
    fs::path resolved = fs::weakly_canonical(root);
    // The path "in/" has an empty last part, which no path below it has.
    if (!resolved.has_filename()) resolved = resolved.parent_path();
    allowed_roots().push_back(std::move(resolved));
  }
}

const fs::path& input_file(const fs::path& path) {
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(path, error);
  const auto& roots = allowed_roots();
  const bool allowed =
      roots.empty() ||
      (!error && std::any_of(roots.begin(), roots.end(),
                             [&](const fs::path& root) { return lies_below(resolved, root); }));
  if (!allowed)
    throw InvalidInput("'" + path.string() +
                       "' lies outside the deck's directory; put the file beside the deck and name "
                       "it there");
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))
    throw InvalidInput("'" + path.string() + "' is not a plain file; copy what it holds into one");
  return path;
}

}  // namespace quasi
