#include "workers/io/replaced_file.hpp"

#include <fcntl.h>

#include "workers/backend/error.hpp"
#include "workers/files/durable_file.hpp"

namespace quasi {

void replace_file(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path aside =
      path.parent_path() / ("." + path.filename().string() + ".new");
  try {
    files::Descriptor file(aside, O_WRONLY | O_CREAT | O_TRUNC, "create", 0666);
    file.write(text);
    file.sync();
    files::publish(aside, path);
  } catch (const files::FileFailure& failure) {
    throw StorageError(failure.sentence());
  }
}

}  // namespace quasi
