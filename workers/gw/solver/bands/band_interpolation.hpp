#pragma once

#include <vector>

#include "workers/gw/model/band_path.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

struct PathBands {
  std::vector<Vec3> k;
  std::vector<double> distance_per_bohr;       ///< along the path
  std::vector<std::vector<double>> energy_ev;  ///< [band][point]
};

/// Returns the points of a path and their distances, without energies.
PathBands points_of(const BandPath& path, const Crystal& crystal);

/// Interpolates energies between the k-points of the grid by star functions (docs/theory/gw.md 10)
/// [koelling1986] with the roughness of [pickett1988]. The result is the smoothest sum of 30 star
/// functions for each point that passes through the given energies. It has the symmetry of the
/// crystal and of time reversal. Bands are taken by their rank, so that crossings become rounded.
/// @param energy_ev  [band][irreducible k]
PathBands interpolate_bands(const MeanField& field,
                            const std::vector<std::vector<double>>& energy_ev,
                            const BandPath& path);

}  // namespace quasi::gw
