#include "workers/daemon/ports/file_system.hpp"

namespace quasi {

namespace fs = std::filesystem;

void replace_file_durably(FileSystem& files, const fs::path& path, std::string_view bytes) {
  const fs::path temporary = path.string() + ".tmp";
  files.write_file(temporary, bytes);
  files.sync_file(temporary);
  files.rename(temporary, path);
  files.sync_directory(path.parent_path());
}

}  // namespace quasi
