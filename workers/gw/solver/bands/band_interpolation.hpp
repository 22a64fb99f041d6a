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

/// The points of a path and their distances, without energies.
PathBands points_of(const BandPath& path, const Crystal& crystal);

/// Energies between the k-points of the grid by star functions (docs/theory/gw.md 10) with the
/// roughness of [pickett1988]: of all sums of 30 star
/// functions a point that pass through the given energies, the smoothest. It has the crystal's
/// symmetry and that of time reversal. Bands are taken by their rank, so that crossings become
/// rounded.
/// @param energy_ev  [band][irreducible k]
PathBands interpolate_bands(const MeanField& field,
                            const std::vector<std::vector<double>>& energy_ev,
                            const BandPath& path);

}  // namespace quasi::gw
