#pragma once

#include <vector>

#include "workers/mosfet/kernels/beam/beam_geometry.hpp"

namespace quasi::mosfet {

/// Changes of the band edges of all states, eV.
struct LevelShift {
  std::vector<double> node, face;  ///< [n_states][nx] and [n_states][nx+1]
};

/// Derivatives of the band edges at faces by those at nodes [n_states][nx+1][nx]. The rules for
/// faces have kinks where neighbours are nearly equal, as in flat contacts. One fixed derivative
/// keeps the response linear there.
class FaceSlopes {
 public:
  /// Computes them by central differences of 1e-6 eV.
  explicit FaceSlopes(const BeamLevels& levels);
  double at(std::size_t state, std::size_t face, std::size_t node) const {
    return slopes_[(state * (nx_ + 1) + face) * nx_ + node];
  }
  /// Returns half of the differences between two sets of levels, and the changes of the faces.
  LevelShift shift_between(const BeamLevels& low, const BeamLevels& high) const;

 private:
  std::size_t nx_;
  std::vector<double> slopes_;
};

/// First-order changes of volumes, areas and stored electrons with the band edges
/// (docs/theory/mosfet.md 17.8). A cell that is closed or fully open stays so.
class CellSlopes {
 public:
  /// Computes the slopes of every cell by central differences of 1e-6 eV. `base` must outlive this.
  CellSlopes(const BeamGeometry& base, const BeamLevels& levels);

  /// Derivatives of the volumes by the band edges of the face before the cell, of its node and of
  /// the face behind it, in the layout of BeamGeometry::volume; zero for closed cells.
  struct VolumeSlopes {
    std::vector<double> before, node, behind;
  };
  VolumeSlopes volume_slopes() const;
  /// Returns the derivatives of the areas, in the layout of BeamGeometry::area, √eV.
  const std::vector<double>& area_slopes() const { return area_; }

  /// Returns the geometry with volumes and areas changed by `factor` times a shift.
  BeamGeometry shifted(const LevelShift& shift, double factor) const;
  /// Returns δV g plus the sweep of a shift: rising levels lift electrons through the upper edges
  /// of their cells of H, X_{k+½} ĝ out and X_{k−½} ĝ in, with X_{k+½} = −Σ_{k'≤k}
  /// δV⁰.
  /// @param g  in the layout of BeamOperator @return in that layout, eV
  std::vector<double> storage(const LevelShift& shift, const std::vector<double>& g) const;

  /// Returns the derivatives by the band edges of a function with these derivatives by areas,
  /// volumes and volumes of the shape ω = 1, in the layouts of BeamGeometry; empty: none.
  LevelShift level_slopes(const std::vector<double>& area, const std::vector<double>& volume,
                          const std::vector<double>& count) const;
  /// Derivatives of Σ w Ψ storage() by volumes and by volumes of the shape ω = 1.
  struct StorageSlopes {
    std::vector<double> volume, count;
  };
  /// @param g  in the layout of BeamOperator @param weighted  w Ψ in that layout
  StorageSlopes storage_slopes(const std::vector<double>& g,
                               const std::vector<double>& weighted) const;

 private:
  /// Weights of the occupations below and above the upper edge of every cell of H.
  struct EdgeWeights {
    std::vector<double> below, above;
  };
  EdgeWeights edge_weights() const;
  /// Returns Simpson's mean of changes at the faces and the node of a cell: of the volume, which is
  /// zero for closed cells, and of the volume for ω = 1.
  double volume_change(const LevelShift& shift, int state, int i, std::int64_t line) const;
  double count_change(const LevelShift& shift, int state, int i, std::int64_t line) const;

  const BeamGeometry& base_;
  /// Slopes in the layouts of BeamGeometry. `face` and `node` are those of the volume at one
  /// energy; `count` are volumes with the shape ω = 1.
  std::vector<double> face_, node_, count_face_, count_node_, area_;
};

}  // namespace quasi::mosfet
