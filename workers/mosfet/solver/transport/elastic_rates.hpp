#pragma once

#include <vector>

#include "workers/mosfet/model/device_model.hpp"
#include "workers/mosfet/model/structure.hpp"

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
  std::vector<double> screening2_nm2;  ///< β² of the carriers that neutralise the donors [nx]
  double eps_r = 0;

  /// Returns the rate of momentum relaxation in a column, 1/fs; zero for w ≤ 0
  /// (brooks_herring_rate()).
  double rate_fs(const ValleyPair& valley, int column, double w_ev) const;
};

/// Returns the donors of a device. The carriers that screen them have Fermi statistics and the
/// levels of the source's contact column.
/// @throws NotConverged as solve_contact()
Impurities make_impurities(const DeviceModel& model, const Structure& structure);

}  // namespace quasi::mosfet
