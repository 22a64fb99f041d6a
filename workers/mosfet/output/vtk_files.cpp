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

// Opens a rectilinear grid over x and z with its coordinates and the element of its fields.
void begin_grid(std::ofstream& out, const std::vector<double>& x_nm,
                const std::vector<double>& z_nm) {
  write_header(out, "RectilinearGrid");
  const std::string extent = "Extent=\"0 " + std::to_string(x_nm.size() - 1) + " 0 " +
                             std::to_string(z_nm.size() - 1) + " 0 0\"";
  out << "<RectilinearGrid Whole" << extent << ">\n<Piece " << extent << ">\n<Coordinates>\n";
  write_array(out, "x (nm)", x_nm.size(), [&](std::size_t i) { return x_nm[i]; });
  write_array(out, "z (nm)", z_nm.size(), [&](std::size_t j) { return z_nm[j]; });
  write_array(out, "-", 1, [](std::size_t) { return 0.0; });
  out << "</Coordinates>\n<PointData>\n";
}

void finish(std::ofstream& out, const std::string& name) {
  out << "</VTKFile>\n";
  if (!out.flush())
    throw StorageError("cannot write " + name + "; is the disk full? output.vtk = false leaves " +
                       "these files out");
}

void end_grid(std::ofstream& out, const std::string& name) {
  out << "</PointData>\n</Piece>\n</RectilinearGrid>\n";
  finish(out, name);
}

void write_point_file(const fs::path& directory, const std::string& name,
                      const PointResult& point) {
  const std::vector<double>& x_nm = point.arrays.at("x").values;
  const std::vector<double>& z_nm = point.arrays.at("z").values;
  const std::size_t nx = x_nm.size(), nz = z_nm.size();
  const std::vector<std::int64_t> shape{std::ssize(x_nm), std::ssize(z_nm)};
  std::ofstream out(directory / name);
  begin_grid(out, x_nm, z_nm);
  for (const auto& [field, array] : point.arrays)
    if (array.shape == shape)  // VTK runs through x first, our arrays through z
      write_array(out, field + " (" + array.units + ")", nx * nz,
                  [&](std::size_t i) { return array.values[i % nx * nz + i / nx]; });
  end_grid(out, name);
}

// Returns true for an array over x, of up to two further indices: process, or valley and subband.
bool is_over_x(const std::string& field, const std::vector<std::int64_t>& shape, std::int64_t nx,
               std::int64_t nz) {
  if (field == "x" || shape.empty() || shape.size() > 3 || shape.back() != nx) return false;
  return field != "z" && shape != std::vector<std::int64_t>{nx, nz};
}

// Writes the fields over x alone, one array for each process, valley or subband. Indices follow the
// name of the field.
void write_line_file(const fs::path& directory, const std::string& name, const PointResult& point) {
  const std::vector<double>& x_nm = point.arrays.at("x").values;
  const std::size_t nx = x_nm.size();
  const std::int64_t nz = std::ssize(point.arrays.at("z").values);
  std::ofstream out(directory / name);
  begin_grid(out, x_nm, {0.0});
  for (const auto& [field, array] : point.arrays) {
    const std::vector<std::int64_t>& shape = array.shape;
    if (!is_over_x(field, shape, std::ssize(x_nm), nz)) continue;
    for (std::size_t row = 0; row < array.values.size() / nx; ++row) {
      std::string title = field;
      if (shape.size() == 2) title += " " + std::to_string(row);
      if (shape.size() == 3) {
        const auto inner = static_cast<std::size_t>(shape[1]);
        title += " " + std::to_string(row / inner) + " " + std::to_string(row % inner);
      }
      write_array(out, title + " (" + array.units + ")", nx,
                  [&](std::size_t i) { return array.values[row * nx + i]; });
    }
  }
  end_grid(out, name);
}

}  // namespace

void write_vtk(const fs::path& directory, const std::vector<PointResult>& points) {
  std::ofstream list(directory / "points.pvd");
  write_header(list, "Collection");
  list << "<Collection>\n";
  for (std::size_t k = 0; k < points.size(); ++k) {
    const std::string name = "point_" + std::to_string(k) + ".vtr",
                      line = "line_" + std::to_string(k) + ".vtr";
    write_point_file(directory, name, points[k]);
    write_line_file(directory, line, points[k]);
    char name_of_bias[80];
    std::snprintf(name_of_bias, sizeof name_of_bias, "V_GS %g V, V_DS %g V", points[k].bias.vgs_v,
                  points[k].bias.vds_v);
    int part = 0;
    for (const std::string& file : {name, line})
      list << "<DataSet timestep=\"" << k << "\" part=\"" << part++ << "\" name=\"" << name_of_bias
           << "\" file=\"" << file << "\"/>\n";
  }
  list << "</Collection>\n";
  finish(list, "points.pvd");
}

}  // namespace quasi::mosfet
