#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/gw/support/reference_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/espresso/espresso_save.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/espresso/xc_functional.hpp"

// The folder tests/gw/espresso tests the reader of PREFIX.save. Begin here: the fixture is a small
// crystal of model pseudopotentials, made by fixture/make_fixture.py with pw.x and pw2bgw.x.
namespace quasi::gw::test {

/// Copies the packed fixture into a folder: `x.save`, and the files of pw2bgw.x beside it.
inline void unpack_espresso_fixture(const std::filesystem::path& to) {
  const auto from = quasi::test::source_dir() / "tests/gw/espresso/fixture";
  for (const auto& [packed, target] : {std::pair{"save", "x.save"}, {"bgw", "."}})
    for (const auto& entry : std::filesystem::directory_iterator(from / packed))
      unpack_gzip(entry.path(), to / target / entry.path().stem());
}

/// Returns false if this program was built without pugixml. @param folder  a folder PREFIX.save
inline bool reads_saves(const std::filesystem::path& folder) {
  try {
    read_espresso_save(folder);
  } catch (const BackendAbsent&) {
    return false;
  }
  return true;
}

/// Returns true if libxc can be loaded on this machine.
inline bool has_libxc() {
  const double density = 0.1;
  double potential = 0.0;
  try {
    evaluate_functional(XcFunctional::kPerdewZunger, {.n_spins = 1,
                                                      .density = {&density, 1},
                                                      .gradient = {},
                                                      .by_density = {&potential, 1},
                                                      .by_gradient = {}});
  } catch (const BackendAbsent&) {
    return false;
  }
  return true;
}

/// Returns the largest difference of two fields. Their lists of plane waves may differ in order.
inline double largest_difference(const PlaneWaveField& a, const PlaneWaveField& b) {
  if (a.header.g.size() != b.header.g.size() || a.values.size() != b.values.size()) return INFINITY;
  const GIndex index(b.header.g);
  double largest = 0.0;
  for (std::size_t spin = 0; spin < a.values.size(); ++spin)
    for (std::size_t i = 0; i < a.header.g.size(); ++i) {
      const std::int32_t at = index.find(a.header.g[i]);
      if (at < 0) return INFINITY;
      largest = std::max(
          largest, std::abs(a.values[spin][i] - b.values[spin][static_cast<std::size_t>(at)]));
    }
  return largest;
}

/// Returns the largest difference of two lists of equal length.
template <typename Values>
double largest_difference_of_lists(const Values& a, const Values& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace quasi::gw::test

/// Skips the test with a message if libxc is not installed on this machine.
#define QUASI_NEED_LIBXC \
  if (!quasi::gw::test::has_libxc()) GTEST_SKIP() << "libxc is not installed on this machine"
