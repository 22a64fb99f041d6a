// Writes one bias point of a mosfet result.h5 as columns that gnuplot reads: profile.dat (x,
// current, levels, sheet density, velocity, energy along the device), density.dat (x, z, N; blank
// line after every x) and, where the result has pdf_w, spectrum.dat (x, E, electrons of all
// subbands per nm² and eV).
//
//   mosfet_columns RESULT.h5 POINT OUTPUT_DIRECTORY

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "workers/io/hdf5.hpp"

namespace {

void write(const std::filesystem::path& result, int point, const std::filesystem::path& directory) {
  const quasi::H5Reader file(result);
  const std::string group = "/points/" + std::to_string(point) + "/";
  const auto x = file.doubles(group + "x"), z = file.doubles(group + "z"),
             density = file.doubles(group + "density");
  const auto level = file.doubles(group + "subband_energy"),
             current = file.doubles(group + "current_x");
  const auto velocity = file.doubles(group + "velocity_mean"),
             energy = file.doubles(group + "energy_mean");
  const auto sheet = file.doubles(group + "sheet_density");
  const std::size_t nx = x.size(), nz = z.size(), states = level.size() / nx;
  std::filesystem::create_directories(directory);
  std::ofstream profile(directory / "profile.dat"), field(directory / "density.dat");
  profile << "# x_nm current_a_per_m sheet_1e12_cm2 velocity_nm_fs energy_ev level_ev[" << states
          << "]\n";
  for (std::size_t i = 0; i < nx; ++i) {
    double total = 0.0;
    for (std::size_t a = 0; a < states; ++a) total += 2.0 * sheet[a * nx + i];
    profile << x[i] << ' ' << 0.5 * (current[i] + current[i + 1]) << ' ' << 100.0 * total << ' '
            << velocity[i] << ' ' << energy[i];
    for (std::size_t a = 0; a < states; ++a) profile << ' ' << level[a * nx + i];
    profile << '\n';
    for (std::size_t j = 0; j < nz; ++j)
      field << x[i] << ' ' << z[j] << ' ' << density[i * nz + j] << '\n';
    field << '\n';
  }
}

// n(x, E) = 2 Σ Φ̃(x, E − ε) on a grid of 4 meV: what the levels hold, seen along the device.
void write_spectrum(const std::filesystem::path& result, int point,
                    const std::filesystem::path& directory) {
  const quasi::H5Reader file(result);
  const std::string group = "/points/" + std::to_string(point) + "/";
  const auto names = file.children("/points/" + std::to_string(point));
  if (std::find(names.begin(), names.end(), "pdf_w") == names.end()) return;
  const auto x = file.doubles(group + "x"), w = file.doubles(group + "w"),
             level = file.doubles(group + "subband_energy");
  const auto pdf = file.doubles(group + "pdf_w");
  const std::size_t nx = x.size(), nw = w.size(), states = level.size() / nx;
  const double dw = w[1] - w[0];
  std::ofstream out(directory / "spectrum.dat");
  for (std::size_t i = 0; i < nx; ++i) {
    for (double energy = -0.7; energy < 0.6; energy += 4e-3) {
      double sum = 0.0;
      for (std::size_t a = 0; a < states; ++a) {
        const double place = (energy - level[a * nx + i]) / dw - 0.5;
        if (place < -0.5 || place >= static_cast<double>(nw - 1)) continue;
        const auto below = static_cast<std::size_t>(std::max(place, 0.0));
        const double share = std::max(place, 0.0) - static_cast<double>(below);
        const double* row = &pdf[(a * nx + i) * nw + below];
        sum += 2.0 * ((1.0 - share) * row[0] + share * row[1]);
      }
      out << x[i] << ' ' << energy << ' ' << sum << '\n';
    }
    out << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: mosfet_columns RESULT.h5 POINT OUTPUT_DIRECTORY\n");
    return 2;
  }
  try {
    write(argv[1], std::atoi(argv[2]), argv[3]);
    write_spectrum(argv[1], std::atoi(argv[2]), argv[3]);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
  return 0;
}
