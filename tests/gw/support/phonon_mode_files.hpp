#pragma once

#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "workers/io/dataset_descriptions.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw::test {

/// Modes of zincblende GaAs at q = 0 for files: three rigid shifts and three optical modes along x,
/// y and z. Tests change the members.
struct GalliumArsenideModes {
  double lattice_parameter_bohr = 10.6770;  // of the form factors
  std::vector<std::vector<double>> lattice{{0, .5, .5}, {.5, 0, .5}, {.5, .5, 0}};
  std::vector<std::string> element{"Ga", "As"};
  std::vector<double> mass_amu{69.723, 74.9216};
  std::vector<std::vector<double>> position{{.25, .25, .25}, {0, 0, 0}};
  std::vector<double> energy_mev{0, 0, 0, 33.3, 33.3, 33.3};
  std::vector<std::vector<std::complex<double>>> eigenvector;  ///< [mode][3κ+α]
  std::string unit = "meV", further;

  GalliumArsenideModes() {
    const double total = mass_amu[0] + mass_amu[1];
    for (int optical = 0; optical < 2; ++optical)
      for (std::size_t axis = 0; axis < 3; ++axis) {
        std::vector<std::complex<double>> e(6);
        e[axis] = std::sqrt(mass_amu[optical] / total);
        e[3 + axis] = (optical == 1 ? -1.0 : 1.0) * std::sqrt(mass_amu[1 - optical] / total);
        eigenvector.push_back(e);
      }
  }
  std::size_t n_atoms() const { return element.size(); }

  std::string text() const {
    const auto vector = [](double x, double y, double z) {
      return std::string("[").append(shown(x)) + ", " + shown(y) + ", " + shown(z) + "]";
    };
    std::string text = further + (unit.empty() ? "" : "frequency_unit = \"" + unit + "\"\n");
    text += "lattice_bohr = [";
    for (const auto& a : lattice)
      text += vector(lattice_parameter_bohr * a[0], lattice_parameter_bohr * a[1],
                     lattice_parameter_bohr * a[2]) +
              ", ";
    text += "]\n";
    for (std::size_t a = 0; a < n_atoms(); ++a)
      text += "[[atom]]\nelement = \"" + element[a] + "\"\nmass_amu = " + shown(mass_amu[a]) +
              "\nposition = " + vector(position[a][0], position[a][1], position[a][2]) + "\n";
    for (std::size_t m = 0; m < energy_mev.size(); ++m) {
      std::string real, imaginary;
      for (std::size_t c = 0; c + 2 < eigenvector[m].size(); c += 3) {
        const auto* e = &eigenvector[m][c];
        real += vector(e[0].real(), e[1].real(), e[2].real()) + ", ";
        imaginary += vector(e[0].imag(), e[1].imag(), e[2].imag()) + ", ";
      }
      text += "[[mode]]\nfrequency = " + shown(energy_mev[m]) + "\neigenvector = [" + real +
              "]\neigenvector_imaginary = [" + imaginary + "]\n";
    }
    return text;
  }
  void write_text(const std::filesystem::path& path) const { std::ofstream(path) << text(); }

  /// Members of a result.h5 of a thermal job that tests change.
  struct ThermalResult {
    std::string kind = "thermal", omega_unit = "rad/ps";
    double shift = 0.0;  ///< of all q-points
    bool has_vectors = true;
    std::int64_t n_q = 2;
  };
  /// Writes the datasets of a result.h5 of a thermal job on a mesh of q = (½,0,0) and Γ.
  void write_thermal(const std::filesystem::path& path, const ThermalResult& result) const {
    constexpr double kBohr_nm = 0.0529177210903, kRadPerPs_mev = 0.6582119569;
    H5Writer file(path);
    file.write_text("/provenance/kind", result.kind);
    std::vector<double> cell, positions, omega;
    for (const auto& a : lattice)
      for (const double x : a) cell.push_back(lattice_parameter_bohr * kBohr_nm * x);
    for (const auto& p : position) positions.insert(positions.end(), p.begin(), p.end());
    const auto n = static_cast<std::int64_t>(n_atoms());
    std::vector<std::string> labels;
    for (std::size_t a = 0; a < n_atoms(); ++a)
      labels.push_back(element[a] + std::to_string(a + 1));
    file.write("/crystal/lattice", cell, {3, 3}, "nm");
    file.write("/crystal/position", positions, {n, 3}, "1");
    file.write("/crystal/mass", mass_amu, {n}, "amu");
    write_labels("/crystal/atom", labels, &file);
    file.write("/mesh/qpoint", std::vector<double>{0.5, 0, 0, result.shift, 0, 0}, {2, 3}, "1");
    std::vector<std::complex<double>> vectors(static_cast<std::size_t>(9 * n * n * result.n_q));
    for (std::int64_t q = 0; q < result.n_q; ++q)
      for (std::size_t m = 0; m < energy_mev.size(); ++m) {
        omega.push_back(energy_mev[m] / kRadPerPs_mev * (q == 1 ? 1.0 : 0.5));
        for (std::size_t c = 0; c < eigenvector[m].size() && q == 1; ++c)
          vectors[36 + 6 * m + c] = eigenvector[m][c];
      }
    file.write("/modes/omega", omega, {result.n_q, 3 * n}, result.omega_unit);
    if (result.has_vectors)
      file.write("/modes/eigenvector", vectors, {result.n_q, 3 * n, 3 * n}, "1");
    file.commit();
  }

 private:
  static std::string shown(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
  }
};

}  // namespace quasi::gw::test
