// Writes one bias point of a mosfet result.h5 as columns that gnuplot reads: profile.dat (x, current, levels, sheet
// density, velocity, energy along the device) and density.dat (x, z, N; blank line after every x).
//
//   mosfet_columns RESULT.h5 POINT OUTPUT_DIRECTORY

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
  const auto x = file.doubles(group + "x"), z = file.doubles(group + "z"), density = file.doubles(group + "density");
  const auto level = file.doubles(group + "subband_energy"), current = file.doubles(group + "current_x");
  const auto velocity = file.doubles(group + "velocity_mean"), energy = file.doubles(group + "energy_mean");
  const auto sheet = file.doubles(group + "sheet_density");
  const std::size_t nx = x.size(), nz = z.size(), states = level.size() / nx;
  std::filesystem::create_directories(directory);
  std::ofstream profile(directory / "profile.dat"), field(directory / "density.dat");
  profile << "# x_nm current_a_per_m sheet_1e12_cm2 velocity_nm_fs energy_ev level_ev[" << states << "]\n";
  for (std::size_t i = 0; i < nx; ++i) {
    double total = 0.0;
    for (std::size_t a = 0; a < states; ++a) total += 2.0 * sheet[a * nx + i];
    profile << x[i] << ' ' << 0.5 * (current[i] + current[i + 1]) << ' ' << 100.0 * total << ' ' << velocity[i] << ' ' << energy[i];
    for (std::size_t a = 0; a < states; ++a) profile << ' ' << level[a * nx + i];
    profile << '\n';
    for (std::size_t j = 0; j < nz; ++j) field << x[i] << ' ' << z[j] << ' ' << density[i * nz + j] << '\n';
    field << '\n';
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
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
  return 0;
}
