#pragma once

#include <vector>

#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

/// Corners of a path through the zone, reduced, and points from one corner to the next.
struct BandPath {
  std::vector<Vec3> corners;
  int points_per_segment = 40;
};

/// What carries the corrections from the grid's points to those of a path.
enum class BandOrder {
  kAutomatic,  ///< character where the mean field's H is known between the points of the grid, else
               ///< energy
  kCharacter,  ///< states of H at the path's points, by their overlaps with those of the grid
               ///< (band_character.hpp)
  kEnergy,     ///< star functions through the energies of each rank
};

struct PathBands {
  std::vector<Vec3> k;
  std::vector<double> distance_per_bohr;       ///< along the path
  std::vector<std::vector<double>> energy_ev;  ///< [band][point]
};

/// The points of a path and their distances, without energies.
PathBands points_of(const BandPath& path, const Crystal& crystal);

/// Energies between the k-points of the grid by symmetrised plane waves in k (Shankland, Koelling
/// and Wood; roughness of Pickett, Krakauer and Allen, PRB 38, 2721): of all sums of 30 star
/// functions a point that pass through the given energies, the smoothest. It has the crystal's
/// symmetry and that of time reversal. Bands are taken by their rank, so that crossings become
/// rounded.
/// @param energy_ev  [band][irreducible k]
PathBands interpolate_bands(const MeanField& field,
                            const std::vector<std::vector<double>>& energy_ev,
                            const BandPath& path);

}  // namespace quasi::gw
