#pragma once

#include <array>
#include <complex>
#include <vector>

#include "tests/oracle/thermal/oracle_tetrahedra.hpp"

/// Three-phonon scattering in literal form: every q', every pair of branches, every block, without
/// symmetry and without factorisation. It includes nothing of the program that it checks.
namespace quasi::oracle {

struct Block3ph {
  std::array<int, 3> atom;
  std::array<std::array<int, 3>, 3> cell;  ///< cells of all three atoms; the first is the origin
  std::array<double, 27> tensor;           ///< eV/Å³
};

struct Crystal3ph {
  std::array<int, 3> mesh;
  int n_atoms = 0;
  std::vector<double> mass_amu;
  std::vector<Block3ph> block;
  std::vector<std::vector<double>> omega;  ///< [point][branch], rad/ps; point = (k N2 + j) N1 + i
  std::vector<std::vector<std::vector<std::complex<double>>>> e;  ///< [point][branch][3κ+α]
  std::vector<std::vector<std::array<double, 3>>> p;  ///< [point][branch] spread vectors
  std::vector<std::array<int, 3>> zone;  ///< [point] coordinates of the shortest image of q
  std::vector<Steps3ph> steps;           ///< divisions into tetrahedra
};

enum class Width3ph { kSymmetric, kMax, kRms, kFixed, kTetrahedra };

struct Settings3ph {
  Width3ph width = Width3ph::kSymmetric;
  double scale_broad = 1.0;
  double cut = 2.0;
  double delta_factor = 1.0;
  double temperature_k = 300.0;
  double hbar_over_kb = 7.638232582257738;
  double rate_constant = 4.64343678e8;
};

/// Sums of one mode.
struct Sums3ph {
  double absorption = 0.0;         ///< ΣΓ+
  double emission = 0.0;           ///< ½ΣΓ−
  double normal_absorption = 0.0;  ///< their shares without a reciprocal vector
  double normal_emission = 0.0;
  double weighted_absorption = 0.0;  ///< ΣW+/Nq
  double weighted_emission = 0.0;    ///< ½ΣW−/Nq
  double phase_space_absorption = 0.0;
  double phase_space_emission = 0.0;
  long n_absorption = 0;
  long n_emission = 0;
  std::array<double, 3> in_scattering{};  ///< Σ Γ+ (F''−F') + ½ΣΓ−(F''+F')
};

std::complex<double> matrix_element_3ph(const Crystal3ph& crystal, bool emission, int q0, int s0,
                                        int q1, int s1, int q2, int s2);

/// @param f  vector field, [point][branch][3]; may be empty
Sums3ph three_phonon_sums(const Crystal3ph& crystal, const Settings3ph& settings, int point,
                          int branch, const std::vector<std::vector<std::array<double, 3>>>& f);

}  // namespace quasi::oracle
