#pragma once

#include <memory>
#include <vector>

#include "workers/mosfet/model/device_model.hpp"
#include "workers/mosfet/model/structure.hpp"
#include "workers/mosfet/solver/transport/partial_waves.hpp"

namespace quasi::mosfet {

/// Returns Ŝ_ν(w,w'), nm⁴ [n][n] at n energies, the mean over both angles of
/// S(|k−k'|)(1−cos(φ−φ')). With this weight an isotropic rate relaxes momentum like the true
/// angular kernel. It is symmetric in w and w', so that links stay balanced
/// (docs/theory/mosfet.md 15.2) [goodnick1985]. The angles belong to the axes of the valley's
/// ellipse, so that the rate does not depend on the direction of transport.
std::vector<double> roughness_spectrum(const Roughness& roughness, const ValleyPair& valley,
                                       double alpha_per_ev, const std::vector<double>& w_ev);

/// Holds the ionised donors of every column and the screening of their potential.
struct Impurities {
  std::vector<double> donors_nm3;      ///< [nx]
  std::vector<double> screening2_nm2;  ///< 1/λ² of the donors' potential [nx]
  std::vector<double> mass_m0;         ///< [n_valleys]
  double eps_r = 0;
  /// Corrections to Born's approximation [n_valleys][nx]; empty for Brooks and Herring.
  std::vector<std::shared_ptr<const PartialWaveTable>> partial_waves;

  /// Returns the rate of momentum relaxation in a column, 1/fs; zero for w ≤ 0
  /// (docs/theory/mosfet.md 15.3).
  double rate_fs(int valley, int column, double w_ev) const;
};

/// Returns the donors of a device. The carriers that screen them have Fermi statistics and the
/// levels of the source's contact column. With ImpurityModel::kPartialWaves the mass is that of
/// the bulk, ∛(m_x m_y m_z), because the potential is short compared with the film, and λ is at
/// least multi_ion_length_nm().
/// @throws NotConverged as solve_contact()
Impurities make_impurities(const DeviceModel& model, const Structure& structure);

}  // namespace quasi::mosfet
