#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/phonopy/phonopy_cells.hpp"
#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// A supercell described in the primitive cell's terms.
struct SupercellMap {
  std::vector<int> atom;     ///< [n_s] atom of the primitive cell
  std::vector<Index3> cell;  ///< [n_s] its cell
  IntMat3 lattice{};         ///< row i: supercell vector i in primitive lattice coordinates
  std::vector<int> centre;   ///< [n_p] supercell atom that stands for each primitive atom
  std::int64_t n_cells = 0;
};

/// Finds the primitive atom and cell of every atom of a supercell.
/// @param name  of the file of the cells, for messages
/// @throws InvalidInput if the supercell is not made of primitive cells
SupercellMap map_supercell(const PhonopyCell& primitive, const PhonopyCell& supercell,
                           const std::string& name);

/// Rows of a force-constant dataset: which row belongs to each primitive atom, and which supercell
/// atom that row's displacements were counted from.
struct DatasetRows {
  std::vector<std::int64_t> row;  ///< [n_p]
  std::vector<int> centre;        ///< [n_p]
};

/// The origin of a dataset: the atoms of `p2s_map`, where a file has one.
struct DatasetShape {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> p2s;  ///< empty: not given
};

/// Reads the shape of a dataset and the file's `p2s_map`.
DatasetShape shape_of(const H5Reader& file, const std::string& dataset);

/// Finds the rows of a dataset [n_p or n_s][n_s]…[3]… of order `rank`.
/// @param name  of the file, for messages
/// @throws InvalidInput if the shape does not fit the supercell
DatasetRows find_rows(const DatasetShape& file, const std::string& name, const std::string& dataset,
                      int rank, const SupercellMap& map);

/// @throws InvalidInput if a value is not finite
void require_finite(const std::vector<double>& values, const std::string& name,
                    const std::string& dataset);

/// Returns the unit of a file's constants in eV/Å^order: its own `physical_unit`, or the deck's.
double unit_of(const H5Reader& reader, const std::string& name, int order,
               const PhonopyUnits& units);

/// Cells in which an atom of the supercell is nearest to a centre: its periodic images at the
/// smallest distance (docs/theory/thermal.md 1.6).
class NearestImages {
 public:
  NearestImages(const PhonopyCell& primitive, const SupercellMap& map);

  /// Cells of supercell atom `s`, counted from the cell of the centre (a supercell atom).
  std::vector<Index3> cells(int centre, int s) const;

 private:
  const PhonopyCell& primitive_;
  const SupercellMap& map_;
  std::vector<Index3> shifts_;
};

}  // namespace quasi::thermal
