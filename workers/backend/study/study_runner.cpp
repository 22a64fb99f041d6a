#include "workers/backend/study/study_runner.hpp"

#include "workers/backend/error.hpp"

namespace quasi {

std::filesystem::path StudyRunner::begin(const std::string& name) {
  const int index = n_begun_++;
  progress_.log("convergence study, calculation " + std::to_string(index + 1) + ": " + name);
  if (directory_.empty()) return {};
  const std::filesystem::path directory = directory_ / ("study_" + std::to_string(index));
  std::error_code failure;
  if (ranks_.leads()) std::filesystem::create_directories(directory, failure);
  if (failure)
    throw StorageError("cannot create '" + directory.string() + "': " + failure.message());
  return directory;
}

}  // namespace quasi
