#include "workers/backend/device/late_library.hpp"

#include <dlfcn.h>

#include <utility>

#include "workers/backend/error.hpp"

namespace quasi {
namespace {

/// Returns the loader's reason for the last failure.
std::string loader_reason() {
  const char* reason = dlerror();
  return reason ? reason : "the loader gave no reason";
}

}  // namespace

LateLibrary::LateLibrary(std::string title, std::string file)
    : title_(std::move(title)), file_(std::move(file)) {}

void* LateLibrary::symbol(const char* name) {
  const std::lock_guard lock(mutex_);
  if (!handle_) handle_ = dlopen(file_.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!handle_)
    throw BackendAbsent(title_ + " cannot be loaded: " + loader_reason() + ". Install " + file_ +
                        " or add its folder to LD_LIBRARY_PATH of the worker, or take --device "
                        "cpu");
  void* address = dlsym(handle_, name);
  if (!address)
    throw BackendAbsent(title_ + " (" + file_ + ") lacks " + name + ": " + loader_reason() +
                        ". Install the version that this program was built with");
  return address;
}

}  // namespace quasi
