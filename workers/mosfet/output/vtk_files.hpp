#pragma once

#include <filesystem>
#include <vector>

#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Writes the fields of every point over the device for programs that read VTK, such as ParaView.
/// Each point has a file `point_<k>.vtr` (XML, rectilinear grid) with the coordinates x and z in nm
/// and all its arrays of shape [nx][nz]. `line_<k>.vtr` has the arrays over x, such as
/// `phonon_power 2 (W/m^2)` of process 2 or `velocity 0 1 (nm/fs)` of valley 0 and subband 1. The
/// number k is that of /points in result.h5. `points.pvd` lists the files in this order.
/// @throws StorageError
void write_vtk(const std::filesystem::path& directory, const std::vector<PointResult>& points);

}  // namespace quasi::mosfet
