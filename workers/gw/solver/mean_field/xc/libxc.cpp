#include "workers/gw/solver/mean_field/xc/libxc.hpp"

#include <dlfcn.h>

#include <string>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

constexpr int kOldestVersion = 5;
// These are the file names of libxc 5, 6 and 7, and the name without a version of an installation
// with headers.
constexpr const char* kFiles[] = {"libxc.so.9", "libxc.so.12", "libxc.so.15", "libxc.so"};

/// Holds the addresses of the functions of libxc that this program calls.
class Libxc {
 public:
  static const Libxc& loaded() {
    static const Libxc library;
    return library;
  }
  void* (*allocate)();
  int (*initialise)(void*, int, int);
  void (*end)(void*);
  void (*release)(void*);
  void (*set_least_density)(void*, double);
  void (*lda)(const void*, std::size_t, const double*, double*);
  void (*lda_second)(const void*, std::size_t, const double*, double*, double*);
  void (*gga)(const void*, std::size_t, const double*, const double*, double*, double*);

 private:
  Libxc() {
    for (const char* file : kFiles)
      if (handle_ == nullptr) handle_ = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    if (handle_ == nullptr)
      throw BackendAbsent(
          "V_xc of meanfield.save and meanfield.vxc = \"lda\" needs libxc, and no libxc.so was "
          "found on this machine; install the package libxc9 (version 5 or later), or give V_xc "
          "as a file");
    void (*version)(int*, int*, int*) = nullptr;
    find("xc_version", version);
    int major = 0, minor = 0, micro = 0;
    version(&major, &minor, &micro);
    if (major < kOldestVersion)
      throw BackendAbsent("libxc has version " + std::to_string(major) +
                          "; V_xc needs version 5 or later, so install one");
    find("xc_func_alloc", allocate);
    find("xc_func_init", initialise);
    find("xc_func_end", end);
    find("xc_func_free", release);
    find("xc_func_set_dens_threshold", set_least_density);
    find("xc_lda_vxc", lda);
    find("xc_lda_vxc_fxc", lda_second);
    find("xc_gga_vxc", gga);
  }
  template <typename Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function == nullptr)
      throw BackendAbsent("libxc lacks the function " + std::string(name) +
                          "; install version 5 or later");
  }
  void* handle_ = nullptr;
};

}  // namespace

LibxcFunctional::LibxcFunctional(int number, int n_spins) : self_(Libxc::loaded().allocate()) {
  if (self_ == nullptr || Libxc::loaded().initialise(self_, number, n_spins) != 0)
    throw BackendAbsent("libxc has no functional number " + std::to_string(number) +
                        "; install version 5 or later");
}

LibxcFunctional::~LibxcFunctional() {
  Libxc::loaded().end(self_);
  Libxc::loaded().release(self_);
}

void LibxcFunctional::set_least_density(double per_bohr3) {
  Libxc::loaded().set_least_density(self_, per_bohr3);
}

void LibxcFunctional::local(std::size_t n, const double* density, double* potential) const {
  Libxc::loaded().lda(self_, n, density, potential);
}

void LibxcFunctional::local(std::size_t n, const double* density, double* potential,
                            double* derivative) const {
  Libxc::loaded().lda_second(self_, n, density, potential, derivative);
}

void LibxcFunctional::gradient(std::size_t n, const double* density, const double* products,
                               double* by_density, double* by_products) const {
  Libxc::loaded().gga(self_, n, density, products, by_density, by_products);
}

}  // namespace quasi::gw
