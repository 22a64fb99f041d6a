#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "workers/gw/model/state_coefficients.hpp"
#include "workers/gw/physics/crystal.hpp"

/// The mean-field calculation that a GW job starts from, with the data of BerkeleyGW's files
/// (docs/theory/gw.md 1).
namespace quasi::gw {

using Cplx = std::complex<double>;

/// Header that all files of one mean-field calculation share.
struct MeanFieldHeader {
  std::string title;     ///< "WFN-Complex", "RHO-Real", …
  bool is_real = false;  ///< coefficients are stored as reals (inversion about the origin)
  int n_spins = 1;
  int n_spinor = 1;  ///< components of a state; 2: spinors, with n_spins = 1 (docs/theory/gw.md 15)
  Crystal crystal;
  double density_cutoff_ry = 0.0;
  IVec3 fft_grid{};
  std::vector<IVec3> g;  ///< master list, in the writer's order

  /// Returns the electrons of one occupied band: two, or one if spins or spinors are told apart.
  double electrons_per_band() const { return n_spins * n_spinor == 1 ? 2.0 : 1.0; }
};

/// Plane-wave coefficients of all bands at one k-point.
struct KPointWaves {
  std::vector<IVec3> g;                         ///< [n_pw], in the writer's order
  std::vector<StateCoefficients> coefficients;  ///< [spin] → [n_bands][n_spinor][n_pw], ↑ first
};

struct Wavefunctions {
  MeanFieldHeader header;
  int n_bands = 0;
  double wavefunction_cutoff_ry = 0.0;
  IVec3 k_grid{};
  Vec3 k_shift{};
  std::vector<Vec3> k;              ///< [n_k]; may lie outside [0, 1)
  std::vector<double> weight;       ///< [n_k]
  std::vector<int> first_occupied;  ///< ifmin, [spin][n_k], 1-based
  std::vector<int> last_occupied;   ///< ifmax, [spin][n_k], 1-based; 0: none
  std::vector<double> energy_ry;    ///< [spin][n_k][n_bands]
  std::vector<double> occupation;   ///< [spin][n_k][n_bands]
  std::vector<KPointWaves> waves;   ///< [n_k]

  int n_k() const { return static_cast<int>(k.size()); }
  double energy(int spin, int ik, int band) const {
    return energy_ry[(static_cast<std::size_t>(spin) * k.size() + static_cast<std::size_t>(ik)) *
                         static_cast<std::size_t>(n_bands) +
                     static_cast<std::size_t>(band)];
  }
  /// Returns the occupation of a band, between 0 and 1.
  double occupied(int spin, int ik, int band) const {
    return occupation[(static_cast<std::size_t>(spin) * k.size() + static_cast<std::size_t>(ik)) *
                          static_cast<std::size_t>(n_bands) +
                      static_cast<std::size_t>(band)];
  }
};

/// A periodic function on the master list: density (electrons), V_xc or V_scf (Ry).
struct PlaneWaveField {
  MeanFieldHeader header;
  std::vector<std::vector<Cplx>> values;  ///< [spin][n_g]
};

/// Kleinman–Bylander projectors of the non-local pseudopotential [kleinman1982].
struct Projectors {
  MeanFieldHeader header;
  double wavefunction_cutoff_ry = 0.0;
  std::vector<Vec3> k;
  std::vector<int> species;                ///< [n_atoms], 0-based
  std::vector<int> projectors_of_species;  ///< [n_species]
  int n_projectors = 0;
  int max_projectors = 0;             ///< nhm: edge of each D matrix
  std::vector<double> d_ry;           ///< D^a_pq, [spin][atom][q][p] (p fastest)
  std::vector<std::vector<IVec3>> g;  ///< [n_k][n_pw]
  /// Projectors β, [n_k] → [spin][n_projectors][n_pw]; they include 1/√Ω and e^{iGR}.
  std::vector<std::vector<Cplx>> beta;
};

}  // namespace quasi::gw
