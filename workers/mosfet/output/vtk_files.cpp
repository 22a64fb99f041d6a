#include "workers/mosfet/output/vtk_files.hpp"

#include <cstdio>
#include <fstream>
#include <string>

#include "workers/backend/error.hpp"

namespace quasi::mosfet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeader =
    "<?xml version=\"1.0\"?>\n<VTKFile type=\"%s\" version=\"0.1\" byte_order=\"LittleEndian\">\n";

void write_header(std::ofstream& out, const char* type) {
  char text[160];
  std::snprintf(text, sizeof text, kHeader, type);
  out << text;
}

/// Writes one array as text that gives the same double when it is read.
/// @param value  called with 0 ≤ i < n
template <typename Value>
void write_array(std::ofstream& out, const std::string& name, std::size_t n, const Value& value) {
  out << "<DataArray type=\"Float64\" Name=\"" << name << "\" format=\"ascii\">\n";
  char text[32];
  for (std::size_t i = 0; i < n; ++i) {
    std::snprintf(text, sizeof text, "%.17g", value(i));
    out << text << ((i + 1) % 8 == 0 || i + 1 == n ? '\n' : ' ');
  }
  out << "</DataArray>\n";
}

void write_coordinates(std::ofstream& out, const std::vector<double>& x_nm,
                       const std::vector<double>& z_nm) {
  out << "<Coordinates>\n";
  write_array(out, "x (nm)", x_nm.size(), [&](std::size_t i) { return x_nm[i]; });
  write_array(out, "z (nm)", z_nm.size(), [&](std::size_t j) { return z_nm[j]; });
  write_array(out, "-", 1, [](std::size_t) { return 0.0; });
  out << "</Coordinates>\n";
}

void finish(std::ofstream& out, const std::string& name) {
  out << "</VTKFile>\n";
  if (!out.flush())
    throw StorageError("cannot write " + name + "; is the disk full? output.vtk = false leaves " +
                       "these files out");
}

void write_point_file(const fs::path& directory, const std::string& name,
                      const PointResult& point) {
  const std::vector<double>& x_nm = point.arrays.at("x").values;
  const std::vector<double>& z_nm = point.arrays.at("z").values;
  const std::size_t nx = x_nm.size(), nz = z_nm.size();
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(nx),
                                        static_cast<std::int64_t>(nz)};
  std::ofstream out(directory / name);
  write_header(out, "RectilinearGrid");
  const std::string extent =
      "Extent=\"0 " + std::to_string(nx - 1) + " 0 " + std::to_string(nz - 1) + " 0 0\"";
  out << "<RectilinearGrid Whole" << extent << ">\n<Piece " << extent << ">\n";
  write_coordinates(out, x_nm, z_nm);
  out << "<PointData>\n";
  for (const auto& [field, array] : point.arrays)
    if (array.shape == shape)  // VTK runs through x first, our arrays through z
      write_array(out, field + " (" + array.units + ")", nx * nz,
                  [&](std::size_t i) { return array.values[i % nx * nz + i / nx]; });
  out << "</PointData>\n</Piece>\n</RectilinearGrid>\n";
  finish(out, name);
}

}  // namespace

void write_vtk(const fs::path& directory, const std::vector<PointResult>& points) {
  std::ofstream list(directory / "points.pvd");
  write_header(list, "Collection");
  list << "<Collection>\n";
  for (std::size_t k = 0; k < points.size(); ++k) {
    const std::string name = "point_" + std::to_string(k) + ".vtr";
    write_point_file(directory, name, points[k]);
    char name_of_bias[80];
    std::snprintf(name_of_bias, sizeof name_of_bias, "V_GS %g V, V_DS %g V", points[k].bias.vgs_v,
                  points[k].bias.vds_v);
    list << "<DataSet timestep=\"" << k << "\" part=\"0\" name=\"" << name_of_bias << "\" file=\""
         << name << "\"/>\n";
  }
  list << "</Collection>\n";
  finish(list, "points.pvd");
}

}  // namespace quasi::mosfet
