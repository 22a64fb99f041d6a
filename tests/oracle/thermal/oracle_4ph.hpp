#pragma once

#include <array>
#include <complex>
#include <vector>

/// Four-phonon scattering in literal form: every ordered tuple and every block of the force
/// constants, without symmetry and without factorisation, in the simplest order. It includes
/// nothing of the program that it checks.
namespace quasi::oracle {

struct Block4ph {
  std::array<int, 4> atom;
  std::array<std::array<int, 3>, 4> cell;  ///< cells of all four atoms; the first is the origin
  std::array<double, 81> tensor;           ///< eV/Å⁴
};

struct Crystal4ph {
  std::array<int, 3> mesh;
  int n_atoms = 0;
  std::vector<double> mass_amu;
  std::vector<Block4ph> block;
  std::vector<std::vector<double>> omega;  ///< [point][branch], rad/ps; point = (k N2 + j) N1 + i
  std::vector<std::vector<int>> set;       ///< [point][branch] first branch of the degenerate set
  std::vector<std::vector<std::vector<std::complex<double>>>> e;  ///< [point][branch][3κ+α]
  std::vector<std::vector<std::array<double, 3>>> p;  ///< [point][branch] spread vectors
  std::vector<std::array<int, 3>> zone;  ///< [point] coordinates of the shortest image of q
};

enum class Convention {
  kFormal,     ///< ordered tuples with ½, ½, 1/6; σ² mean over the six pairs of |p−p'|²/6
  kReference,  ///< unordered tuples, weight 1, by point number then branch; σ from the last two,
               ///< largest axis
};

struct Settings4ph {
  Convention convention = Convention::kFormal;
  double scale_broad = 1.0;
  double cut = 1.0;
  double delta_divisor = 1.0;
  double least_sigma = 0.0;            ///< kFormal: σ is at least this
  double reference_small_sigma = 0.0;  ///< kReference: a σ up to this becomes 1/√π
  double slowest_partner = 0.0;        ///< W is zero when a partner is not faster
  double temperature_k = 300.0;
  double hbar_over_kb = 7.638232582257738;
  bool symmetric_occupation = false;  ///< B := √(n'(n'+1)n''(n''+1)n'''(n'''+1)/(n(n+1)))
};

/// Sums of one mode over one channel.
struct Sums4ph {
  double rate = 0.0;         ///< Σ weight·W·|V|²
  double normal = 0.0;       ///< its share without a reciprocal vector
  double phase_space = 0.0;  ///< Σ weight·W
  double tuples = 0.0;       ///< Σ weight
  /// Number of tuples in which two interchangeable phonons coincide: λ' = λ'' (++ and --), λ'' =
  /// λ''' (+-).
  long two_coincide = 0;
  long three_coincide = 0;  ///< number of tuples whose three created phonons coincide (--)
};

/// V of one tuple: four points, four branches, and a flag for each created phonon.
std::complex<double> matrix_element_4ph(const Crystal4ph& crystal, const std::array<int, 4>& point,
                                        const std::array<int, 4>& branch,
                                        const std::array<bool, 4>& created);

/// Channels in the order ++, +-, --.
/// @param in_scattering  if not null: [n_modes], to which every process adds weight·W·|V|² at its
/// created
///                       partners and −weight·W·|V|² at those destroyed with the mode
std::array<Sums4ph, 3> four_phonon_sums(const Crystal4ph& crystal, const Settings4ph& settings,
                                        int point, int branch,
                                        std::vector<double>* in_scattering = nullptr);

}  // namespace quasi::oracle
