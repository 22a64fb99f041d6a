#pragma once

#include <vector>

#include "workers/mosfet/kernels/beam/beam_geometry.hpp"

namespace quasi::mosfet {

/// Holds one number for the band edges of every state at nodes and faces: either their changes in
/// eV, or the derivatives of a function by them.
struct LevelShift {
  std::vector<double> node, face;  ///< [n_states][nx] and [n_states][nx+1]
};

/// Holds the derivatives of the band edges at faces by those at nodes [n_states][nx+1][nx]. The
/// rules for faces have kinks where neighbours are nearly equal, as in flat contacts. One fixed
/// derivative keeps the response linear there.
class FaceSlopes {
 public:
  /// Computes the derivatives by central differences of 1e-6 eV.
  explicit FaceSlopes(const BeamLevels& levels);
  /// Returns the derivative of the band edge at a face by the band edge at a node.
  double at(std::size_t state, std::size_t face, std::size_t node) const {
    return slopes_[(state * (nx_ + 1) + face) * nx_ + node];
  }
  /// Returns half of the difference `high` − `low` of the band edges at nodes, eV, and the
  /// changes at faces that follow by the derivatives.
  LevelShift shift_between(const BeamLevels& low, const BeamLevels& high) const;

 private:
  std::size_t nx_;
  std::vector<double> slopes_;
};

/// Computes first-order changes of volumes, areas and stored electrons with the band edges
/// (docs/theory/mosfet.md 17.8). A cell that is closed or fully open stays so.
class CellSlopes {
 public:
  /// Computes the slopes of every cell by central differences of 1e-6 eV. `base` must outlive the
  /// object.
  CellSlopes(const BeamGeometry& base, const BeamLevels& levels);

  /// Holds the derivatives of the volumes by the band edges of the face before the cell, of its
  /// node and of the face behind it, in the layout of BeamGeometry::volume. They have no unit and
  /// are zero for closed cells.
  struct VolumeSlopes {
    std::vector<double> before, node, behind;
  };
  /// Returns the derivatives of the volumes.
  VolumeSlopes volume_slopes() const;
  /// Returns the derivatives of the areas by the band edges of their faces, √eV, in the layout of
  /// BeamGeometry::area.
  const std::vector<double>& area_slopes() const { return area_; }

  /// Returns the geometry whose volumes and areas are changed by `factor` times a shift.
  BeamGeometry shifted(const LevelShift& shift, double factor) const;
  /// Returns the electrons that a shift stores in the cells at fixed g, which are δV g and the
  /// sweep, eV. Rising levels lift electrons through the upper edges of their cells of H. The
  /// number that crosses H_{k+½} is X_{k+½} ĝ with X_{k+½} = −Σ_{k'≤k} δV⁰. V⁰ is the
  /// volume for ω = 1, and ĝ is the mean of g in both cells.
  /// @param g  in the layout of BeamOperator
  /// @return in the layout of g
  std::vector<double> storage(const LevelShift& shift, const std::vector<double>& g) const;

  /// Returns the derivatives of a function by the band edges, from its derivatives by areas, by
  /// volumes V and by volumes V⁰ for ω = 1. The three lists have the layouts of BeamGeometry. An
  /// empty list stands for zeros.
  LevelShift level_slopes(const std::vector<double>& area, const std::vector<double>& volume,
                          const std::vector<double>& count) const;
  /// Holds the derivatives of Σ w Ψ storage() by volumes V and by volumes V⁰ for ω = 1, in the
  /// layout of BeamGeometry::volume. w is the weight of a cell (FieldTranspose).
  struct StorageSlopes {
    std::vector<double> volume, count;
  };
  /// Returns the derivatives of Σ w Ψ storage() by volumes.
  /// @param g  in the layout of BeamOperator
  /// @param weighted  w Ψ in the layout of g
  StorageSlopes storage_slopes(const std::vector<double>& g,
                               const std::vector<double>& weighted) const;

 private:
  /// Weights of the occupations below and above the upper edge of every cell of H.
  struct EdgeWeights {
    std::vector<double> below, above;
  };
  EdgeWeights edge_weights() const;
  /// Returns Simpson's mean of the changes of V at the faces and the node of a cell, eV. It is zero
  /// for closed cells.
  double volume_change(const LevelShift& shift, int state, int i, std::int64_t line) const;
  /// Returns Simpson's mean of the changes of V⁰, the volume for ω = 1, at the faces and the
  /// node of a cell, eV.
  double count_change(const LevelShift& shift, int state, int i, std::int64_t line) const;

  const BeamGeometry& base_;
  /// Slopes in the layouts of BeamGeometry. `face` and `node` are those of the volume at one
  /// energy; `count` are volumes with the shape ω = 1.
  std::vector<double> face_, node_, count_face_, count_node_, area_;
};

}  // namespace quasi::mosfet
