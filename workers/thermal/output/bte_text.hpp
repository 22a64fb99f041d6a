#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// One text file. Numbers have the form of Fortran's E20.10, "0.1234567890E+01", which printf
/// cannot write.
class TextFile {
 public:
  explicit TextFile(const std::filesystem::path& path) : path_(path), out_(path) {
    if (!out_)
      throw StorageError("cannot create '" + path.string() + "'; is the directory writable?");
  }
  /// @throws StorageError when the disk is full.
  void close() {
    out_.flush();
    if (!out_) throw StorageError("cannot write '" + path_.string() + "'; is the disk full?");
  }
  /// Writes a number in Fortran's form 0.ddddE±dd, right-justified.
  TextFile& real(double value, int width, int digits) {
    std::string text = "0." + std::string(static_cast<std::size_t>(digits), '0') + "E+00";
    if (value != 0.0) {
      char buffer[64];
      std::snprintf(buffer, sizeof buffer, "%.*E", digits - 1, std::fabs(value));
      const std::string scientific = buffer;
      const auto e = scientific.find('E');
      std::string mantissa = scientific.substr(0, e);
      mantissa.erase(1, mantissa.size() > 1 ? 1 : 0);  // moves the point to the front
      const int exponent = std::stoi(scientific.substr(e + 1)) + 1;
      std::snprintf(buffer, sizeof buffer, std::abs(exponent) > 99 ? "%+04d" : "E%+03d", exponent);
      text = std::string(value < 0.0 ? "-0." : "0.") + mantissa + buffer;
    }
    if (static_cast<int>(text.size()) < width)
      out_ << std::string(static_cast<std::size_t>(width) - text.size(), ' ');
    out_ << text;
    return *this;
  }
  /// Writes an integer, right-justified.
  TextFile& integer(std::int64_t value, int width) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%*lld", width, static_cast<long long>(value));
    out_ << buffer;
    return *this;
  }
  /// Writes a number with a fixed number of digits after the point.
  TextFile& fixed(double value, int width, int digits) {
    char buffer[400];
    std::snprintf(buffer, sizeof buffer, "%*.*f", width, digits, value);
    out_ << buffer;
    return *this;
  }
  TextFile& text(const std::string& words) {
    out_ << words;
    return *this;
  }
  /// Ends the line.
  TextFile& end() {
    out_ << '\n';
    return *this;
  }

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

/// Data that all writers of BTE.* files share.
struct BteExport {
  const Deck& deck;
  const ConductivityRun& run;
  const Transport& transport;
  std::filesystem::path directory;
  int nb;
  std::int64_t n_irr;

  /// Returns the directory "T300K" and makes it if it does not exist. @throws StorageError.
  std::filesystem::path temperature_folder(double temperature_k) const {
    std::string name = "T";
    name.append(std::to_string(std::lround(temperature_k))).append("K");
    std::error_code failure;
    std::filesystem::create_directories(directory / name, failure);
    if (failure)
      throw StorageError("cannot create '" + (directory / name).string() +
                         "': " + failure.message());
    return name;
  }
  /// Returns ω of a row in rad/ps.
  double omega(std::int64_t row) const {
    return run.modes.omega_rad_ps[transport.mode_of_row(row)];
  }

  /// Writes ω and a value of every mode, band-major.
  template <typename Value>
  void mode_file(const std::filesystem::path& name, int width, int digits,
                 const Value& value) const {
    TextFile file(directory / name);
    for (int s = 0; s < nb; ++s)
      for (std::int64_t i = 0; i < n_irr; ++i)
        file.real(omega(i * nb + s), width, digits).real(value(i * nb + s), width, digits).end();
    file.close();
  }
  /// Writes one row of nb values for each irreducible point.
  template <typename Value>
  void point_file(const std::filesystem::path& name, const Value& value) const {
    TextFile file(directory / name);
    for (std::int64_t i = 0; i < n_irr; ++i) {
      for (int s = 0; s < nb; ++s) file.real(value(i * nb + s), 20, 10);
      file.end();
    }
    file.close();
  }
  /// Returns the sum of a value over all modes of the mesh.
  template <typename Value>
  double mesh_sum(const Value& value) const {
    double sum = 0.0;
    for (std::int64_t row = 0; row < n_irr * nb; ++row)
      sum += deck.symmetry.multiplicity[row / nb] * value(row);
    return sum;
  }
};

/// Writes a tensor in column order, as Fortran prints a matrix.
inline void tensor(TextFile& file, const Mat3& k, int width, int digits) {
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) file.real(k[i][j], width, digits);
}

}  // namespace quasi::thermal
