#include "workers/backend/error.hpp"
#include "workers/gw/input/espresso/espresso_save.hpp"
#include "workers/gw/input/espresso/upf_file.hpp"

// Replaces the readers of XML files in a build without pugixml. Both functions throw BackendAbsent.
namespace quasi::gw {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path) {
  throw BackendAbsent("'" + path.string() +
                      "' is not read, because this program was built without pugixml; install "
                      "libpugixml-dev and build it again, or convert the mean field with pw2bgw.x");
}

}  // namespace

EspressoSave read_espresso_save(const std::filesystem::path& folder) { refuse(folder); }

Pseudopotential read_upf(const std::filesystem::path& path) { refuse(path); }

}  // namespace quasi::gw
