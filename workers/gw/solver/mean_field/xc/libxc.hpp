#pragma once

#include <cstddef>
#include <span>

// The folder workers/gw/solver/mean_field/xc evaluates functionals of exchange and correlation.
// Begin here.
namespace quasi::gw {

/// One functional of libxc [lehtola2018]. The library is loaded when the first functional is made,
/// so that programs start without it. Its functions have C linkage and plain arguments, so that a
/// build needs no header of it. Energies are in Hartree, densities in Bohr⁻³.
class LibxcFunctional {
 public:
  /// @param number   of libxc, e.g. 1 for the exchange of Slater
  /// @param n_spins  1 or 2; with two, the numbers of a point are those of ↑ and ↓
  /// @throws BackendAbsent if libxc 5 or later is not installed, or lacks the functional
  LibxcFunctional(int number, int n_spins);
  ~LibxcFunctional();
  LibxcFunctional(const LibxcFunctional&) = delete;
  LibxcFunctional& operator=(const LibxcFunctional&) = delete;

  /// Below this density all results are 0.
  void set_least_density(double per_bohr3);
  /// Calculates d(ρε)/dρ of a local functional at `n` points.
  void local(std::size_t n, const double* density, double* potential) const;
  /// Calculates also the second derivative.
  void local(std::size_t n, const double* density, double* potential, double* derivative) const;
  /// Calculates d(ρε)/dρ and d(ρε)/d(∇ρ·∇ρ) of a gradient functional.
  void gradient(std::size_t n, const double* density, const double* products, double* by_density,
                double* by_products) const;

 private:
  void* self_;
};

}  // namespace quasi::gw
