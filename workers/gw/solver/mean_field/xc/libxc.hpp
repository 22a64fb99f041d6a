#pragma once

#include <cstddef>
#include <span>

// The folder workers/gw/solver/mean_field/xc evaluates functionals of exchange and correlation.
// Begin here.
namespace quasi::gw {

/// Evaluates one functional of the library libxc [lehtola2018]. The library is loaded with the
/// first functional, so that the programs start without it. They call its functions by their C
/// names, so that a build does not need its headers. Energies are in Hartree, densities ρ in
/// Bohr⁻³ and ε is the energy of one electron.
class LibxcFunctional {
 public:
  /// @param number   number of the functional in libxc, such as 1 for the exchange of Slater
  /// @param n_spins  1 or 2; with two, a point has the numbers of ↑ and ↓
  /// @throws BackendAbsent if libxc 5 or later is not installed, or lacks the functional
  LibxcFunctional(int number, int n_spins);
  ~LibxcFunctional();
  LibxcFunctional(const LibxcFunctional&) = delete;
  LibxcFunctional& operator=(const LibxcFunctional&) = delete;

  /// Sets the density below which all results are 0, Bohr⁻³.
  void set_least_density(double per_bohr3);
  /// Calculates d(ρε)/dρ of a local functional at n points.
  /// @param density    ρ, [n][n_spins]
  /// @param potential  receives d(ρε)/dρ, Hartree, [n][n_spins]
  void local(std::size_t n, const double* density, double* potential) const;
  /// Calculates d(ρε)/dρ and d²(ρε)/dρ² of a local functional at n points. @pre n_spins = 1
  /// @param derivative  receives the second derivative, Hartree Bohr³, [n]
  void local(std::size_t n, const double* density, double* potential, double* derivative) const;
  /// Calculates d(ρε)/dρ and d(ρε)/d(∇ρ·∇ρ) of a gradient functional at n points.
  /// @param products     ∇ρ·∇ρ, Bohr⁻⁸, [n], or ↑↑, ↑↓ and ↓↓ with two
  /// spins, [n][3]
  /// @param by_density   receives d(ρε)/dρ, Hartree, [n][n_spins]
  /// @param by_products  receives d(ρε)/d(∇ρ·∇ρ), Hartree Bohr⁵; shape of `products`
  void gradient(std::size_t n, const double* density, const double* products, double* by_density,
                double* by_products) const;

 private:
  void* self_;
};

}  // namespace quasi::gw
