#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/thermal_task.hpp"

/// Jobs with renormalised phonons, and decks that hold their constants.
namespace quasi::thermal::test {

namespace fs = std::filesystem;
using Settings = std::vector<std::string>;

inline DeckSource source_of(const fs::path& deck, const Settings& settings) {
  DeckSource source{.path = deck, .settings = {}};
  for (const auto& text : settings) source.settings.push_back(parse_setting(text));
  return source;
}

inline nlohmann::json run(const fs::path& deck, const Settings& settings, const fs::path& out,
                          const std::vector<std::string>& exports = {}) {
  fs::create_directories(out);
  SilentProgress silent;
  return make_thermal_task()->run({.deck = source_of(deck, settings),
                                   .devices = {Device{}},
                                   .output_directory = out,
                                   .exports = exports},
                                  silent);
}

/// κ of one level at temperature number t.
inline nlohmann::json level_of(const nlohmann::json& summary, const std::string& phonons,
                               const std::string& scattering, const std::string& solution,
                               std::size_t t) {
  for (const auto& level : summary["ladder"]["levels"])
    if (level["phonons"] == phonons && level["scattering"] == scattering &&
        level["solution"] == solution)
      return level["kappa_w_per_mk"][t];
  ADD_FAILURE() << "no level " << phonons << " " << scattering << " " << solution;
  return {};
}

inline void expect_equal_tensors(const nlohmann::json& a, const nlohmann::json& b, double relative,
                                 const std::string& what) {
  ASSERT_EQ(a.size(), 3u) << what;
  const double scale = std::fabs(b[0][0].get<double>());
  ASSERT_GT(scale, 0.0) << what;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      EXPECT_NEAR(a[i][j].get<double>(), b[i][j].get<double>(), relative * scale) << what;
}

/// A copy of a deck in a new directory.
class DeckCopy {
 public:
  explicit DeckCopy(const fs::path& deck) { fs::copy(deck, path(), fs::copy_options::recursive); }
  const fs::path& path() const { return directory_.path(); }

 private:
  quasi::test::TemporaryDirectory directory_;
};

/// Adds the pairs of a group of a ladder's result at temperature number t to FORCE_CONSTANTS_2ND of
/// a deck with cubic supercells of n³ cells.
inline void add_correction_to_file(const fs::path& result, std::size_t t, int n,
                                   const fs::path& file,
                                   const std::string& group = "/ladder/correction") {
  const H5Reader ladder(result);
  const auto atom = ladder.integers(group + "/atom");
  const auto cell = ladder.integers(group + "/cell");
  const auto value = ladder.doubles(group + "/value");
  const std::size_t n_pairs = atom.size() / 2;
  std::ifstream in(file);
  std::size_t n_atoms = 0;
  in >> n_atoms;
  std::vector<std::array<double, 9>> block(n_atoms * n_atoms);
  for (std::size_t i = 0; i < block.size(); ++i) {
    std::size_t p = 0, q = 0;
    in >> p >> q;
    for (double& x : block[(p - 1) * n_atoms + q - 1]) in >> x;
  }
  ASSERT_TRUE(in);
  in.close();
  const auto wrapped = [n](std::int64_t i) { return static_cast<std::size_t>((i % n + n) % n); };
  const auto cells = static_cast<std::size_t>(n * n * n);
  for (std::size_t pair = 0; pair < n_pairs; ++pair) {
    const std::int64_t* r = &cell[3 * pair];
    const std::size_t p = static_cast<std::size_t>(atom[2 * pair]) * cells;
    const std::size_t q = static_cast<std::size_t>(atom[2 * pair + 1]) * cells +
                          (wrapped(r[2]) * n + wrapped(r[1])) * n + wrapped(r[0]);
    for (std::size_t e = 0; e < 9; ++e)
      block[p * n_atoms + q][e] += value[(t * n_pairs + pair) * 9 + e];
  }
  std::ofstream out(file);
  out << n_atoms << "\n" << std::setprecision(17);
  for (std::size_t i = 0; i < block.size(); ++i) {
    out << i / n_atoms + 1 << " " << i % n_atoms + 1 << "\n";
    for (std::size_t e = 0; e < 9; ++e) out << block[i][e] << (e % 3 == 2 ? "\n" : " ");
  }
}

}  // namespace quasi::thermal::test
