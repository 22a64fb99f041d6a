#pragma once

#include <complex>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw::test {

/// Unpacks a file of gzip. @throws std::runtime_error if it is absent
void unpack_gzip(const std::filesystem::path& packed, const std::filesystem::path& target);

/// The reference files of one case, unpacked on demand into a temporary directory.
class ReferenceCase {
 public:
  explicit ReferenceCase(const std::string& name)
      : source_(quasi::test::reference_dir() / "gw" / name) {}
  /// Path of a file; gzip'd ones are unpacked first. `name` without ".gz".
  std::filesystem::path file(const std::string& name);
  const std::filesystem::path& directory() const { return unpacked_.path(); }

 private:
  std::filesystem::path source_;
  quasi::test::TemporaryDirectory unpacked_;
};

/// One row of a table of self-energies: columns by their header names, eV.
struct SigmaRow {
  Vec3 k{};
  int band = 0;
  std::map<std::string, double> column;
};
/// Diagonal tables ("n Emf Eo X SX-X CH Sig Vxc Eqp0 Eqp1 …").
std::vector<SigmaRow> read_sigma_table(const std::filesystem::path& path);

/// One state of a table of contour deformation, eV.
struct ContourRow {
  Vec3 k{};
  int band = 0;
  double x = 0.0;
  std::complex<double> residue, integral;
};
std::vector<ContourRow> read_contour_table(const std::filesystem::path& path);

/// Rows of plain numbers; lines that start with anything else are skipped.
std::vector<std::vector<double>> read_number_rows(const std::filesystem::path& path);

}  // namespace quasi::gw::test
