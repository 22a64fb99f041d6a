#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/three_phonon/tetrahedra/mesh_tetrahedra.hpp"
#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/harmonic_options.hpp"
#include "workers/thermal/model/modes.hpp"

namespace quasi::thermal {

/// Returns the broadening of elastic scattering and of spectra for every mode
/// (docs/theory/thermal.md 9): the base width of its own velocity (sb = 1), at least exp(p25 −
/// 1.5 (p75 − p25)) of ln σ. [n_modes] in rad/ps.
std::vector<double> elastic_widths_rad_ps(const Modes& modes, const HarmonicOptions& options);

/// The δ(ω − ω') of elastic scattering and of densities of states (docs/theory/thermal.md 9):
/// a Gaussian of width σ' within 2.5σ', or linear tetrahedra.
class ElasticDelta {
 public:
  /// @param modes  must outlive the object
  ElasticDelta(const Crystal& crystal, const QMesh& mesh, const Modes& modes,
               const HarmonicOptions& options);
  // The tetrahedra hold views of the arrays, which a copy would not own.
  ElasticDelta(const ElasticDelta&) = delete;
  ElasticDelta& operator=(const ElasticDelta&) = delete;

  /// Returns the weight of λ' at ω, in ps.
  double operator()(double omega_rad_ps, std::int64_t mode) const;

 private:
  void add_tetrahedra(const Crystal& crystal, const QMesh& mesh);

  const Modes& modes_;
  std::vector<double> width_;  ///< [n_modes] rad/ps; empty with tetrahedra
  MeshTetrahedra shapes_;
  std::vector<std::int32_t> neighbours_, tied_;
  std::vector<double> lowest_, highest_;  ///< [n_modes] ω' of a mode and its neighbours
  TetrahedraView3 tetrahedra_;
};

}  // namespace quasi::thermal
