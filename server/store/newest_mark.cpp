#include "server/store/newest_mark.hpp"

#include <cstdio>
#include <string_view>

namespace quasi::server {
namespace {

constexpr std::size_t kMarkBytes = 41;  ///< two numbers of 20 digits and a blank between them

}  // namespace

NewestMark::NewestMark(FileSystem& files, const std::string& root)
    : files_(files), path_(root + "/newest") {}

NewestMark::Newest NewestMark::read() const {
  try {
    if (!files_.exists(path_)) return {};
    char text[kMarkBytes + 1] = {};
    if (files_.open(path_, FileSystem::Open::kRead)->read(0, text, kMarkBytes) != kMarkBytes)
      return {};
    Newest newest;
    long long event = 0, fence = 0;
    if (std::sscanf(text, "%lld %lld", &event, &fence) == 2) newest = {event, fence};
    return newest;
  } catch (const FileError&) {
    return {};
  }
}

void NewestMark::write(const Newest& newest) {
  char text[kMarkBytes + 1];
  std::snprintf(text, sizeof text, "%020lld %020lld", static_cast<long long>(newest.event),
                static_cast<long long>(newest.fence));
  try {
    if (!file_) file_ = files_.open(path_, FileSystem::Open::kCreate);
    file_->write(0, std::string_view(text, kMarkBytes));
  } catch (const FileError&) {
    file_.reset();
  }
}

}  // namespace quasi::server
