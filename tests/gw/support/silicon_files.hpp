#pragma once

#include <filesystem>

#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"

namespace quasi::gw::test {

/// The built-in silicon on a 2×2×2 grid, small enough for files that tests write and spoil.
inline MeanField silicon_for_files(double cutoff_ry, int bands) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  EmpiricalCrystal crystal;
  crystal.wavefunction_cutoff_ry = cutoff_ry;
  crystal.k_grid = {2, 2, 2};
  crystal.bands = bands;
  return empirical_mean_field(crystal, *kernels, silent);
}

/// WFN, WFNq and RHO in `directory`.
inline void write_files_of(const MeanField& field, const std::filesystem::path& directory) {
  write_wavefunctions(directory / "WFN", field.waves);
  write_wavefunctions(directory / "WFNq", *field.shifted);
  write_field(directory / "RHO", field.density);
}

}  // namespace quasi::gw::test
