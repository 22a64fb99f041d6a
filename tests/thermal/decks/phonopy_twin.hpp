#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/support/reference_data.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/input/deck/crystal_input.hpp"
#include "workers/thermal/input/force_constants/force_constants.hpp"
#include "workers/thermal/model/crystal.hpp"

namespace quasi::thermal::test {

/// The Stillinger–Weber example in its own layout.
struct OwnDeck {
  std::filesystem::path directory = quasi::test::source_dir() / "examples/thermal/silicon-sw";
  Control control = read_control(directory, std::vector<Setting>{});
  Crystal crystal = make_crystal(control);
  SecondOrder second = read_second_order(directory, control, crystal);
  SparseForceConstants third =
      read_sparse_force_constants(directory / "FORCE_CONSTANTS_3RD", 3, crystal);
};

/// Units of the files of a twin, and the lines of the yaml that state them.
struct TwinUnits {
  std::string yaml;                     ///< top-level lines
  double length_angstrom = 1.0;         ///< of lattices
  double second_order_ev_per_a2 = 1.0;  ///< of fc2.hdf5; fc3.hdf5 has one more inverse length
  std::string in_fc2;                   ///< `physical_unit` in fc2.hdf5; "": none
};

enum class TwinSupercell {
  kCubic64,      ///< 2×2×2 cubic cells, no multiple of single primitive vectors
  kPrimitive16,  ///< 2×2×2 primitive cells, in which second neighbours meet their images
};

/// The example's constants in the form of phono3py. The atoms of the supercell are folded into the
/// cell in an order of their own.
class PhonopyTwin {
 public:
  PhonopyTwin(const OwnDeck& own, const std::filesystem::path& directory, bool compact,
              TwinUnits units = {}, TwinSupercell supercell = TwinSupercell::kCubic64)
      : own_(own), units_(std::move(units)) {
    find_supercell(supercell);
    write_yaml(directory);
    write_fc2(directory, compact);
    write_fc3(directory, compact);
  }

 private:
  void find_supercell(TwinSupercell supercell) {
    // Cubic axes from the primitive fcc vectors: a2 + a3 − a1 and its permutations, doubled.
    const Index3 cubic[3] = {{-2, 2, 2}, {2, -2, 2}, {2, 2, -2}};
    const Index3 primitive[3] = {{2, 0, 0}, {0, 2, 0}, {0, 0, 2}};
    const bool large = supercell == TwinSupercell::kCubic64;
    for (int i = 0; i < 3; ++i)
      supercell_nm_[i] = own_.crystal.lattice_vector_nm(large ? cubic[i] : primitive[i]);
    to_super_ = inverse(transpose(supercell_nm_));
    for (int i = -6; i <= 6; ++i)
      for (int j = -6; j <= 6; ++j)
        for (int k = -6; k <= 6; ++k)
          for (int atom = 0; atom < own_.crystal.n_atoms(); ++atom) index_of(atom, {i, j, k}, true);
    std::mt19937 shuffle(7);
    std::vector<Vec3> mixed = position_;
    for (std::size_t n = mixed.size(); n > 1; --n) std::swap(mixed[n - 1], mixed[shuffle() % n]);
    position_ = mixed;
    ASSERT_EQ(position_.size(), large ? 64u : 16u);
  }

  Vec3 folded(int atom, const Index3& cell) const {
    Vec3 f = to_super_ * (own_.crystal.cartesian_nm(own_.crystal.position[atom]) +
                          own_.crystal.lattice_vector_nm(cell));
    for (double& x : f) x -= std::floor(x + 1e-9);
    return f;
  }

  int index_of(int atom, const Index3& cell, bool add = false) {
    const Vec3 f = folded(atom, cell);
    for (std::size_t s = 0; s < position_.size(); ++s) {
      Vec3 d = position_[s] - f;
      for (double& x : d) x -= std::round(x);
      if (length(d) < 1e-6) return static_cast<int>(s);
    }
    if (!add) return -1;
    position_.push_back(f);
    return static_cast<int>(position_.size()) - 1;
  }

  void write_cell(std::ostream& out, const char* name, const Mat3& lattice_nm,
                  const std::vector<Vec3>& positions) {
    out << name << ":\n  lattice:\n";
    const double unit = 10.0 / units_.length_angstrom;
    for (const Vec3& row : lattice_nm)
      out << "  - [ " << unit * row[0] << ", " << unit * row[1] << ", " << unit * row[2] << " ]\n";
    out << "  points:\n";
    for (const Vec3& p : positions)
      out << "  - symbol: Si\n    coordinates: [ " << p[0] << ", " << p[1] << ", " << p[2]
          << " ]\n    mass: " << own_.crystal.mass_amu[0] << '\n';
  }

  void write_yaml(const std::filesystem::path& directory) {
    std::ofstream out(directory / "phono3py_disp.yaml");
    out.precision(17);
    out << units_.yaml;
    write_cell(out, "primitive_cell", own_.crystal.lattice_nm, own_.crystal.position);
    write_cell(out, "supercell", supercell_nm_, position_);
  }

  void write_fc2(const std::filesystem::path& directory, bool compact) {
    const auto n_s = static_cast<std::int64_t>(position_.size());
    const int n_p = own_.crystal.n_atoms();
    const std::int64_t n_rows = compact ? n_p : n_s;
    std::vector<double> fc(static_cast<std::size_t>(n_rows * n_s * 9), 0.0);
    const double unit = own_.control.constants().ev_per_a2_amu_to_omega2;
    const Index3 n = own_.second.supercell;
    // The 3×3×3 table of the example holds each pair within the cutoff once, in cells −1 … 1.
    for (int p = 0; p < n_p; ++p)
      for (const auto& origin : origins(p, compact))
        for (int other = 0; other < n_p; ++other)
          for (int i = -(n[0] / 2); i <= n[0] / 2; ++i)
            for (int j = -(n[1] / 2); j <= n[1] / 2; ++j)
              for (int k = -(n[2] / 2); k <= n[2] / 2; ++k) {
                const double* block = own_.second.block(other, p, {i, j, k});
                const int s =
                    index_of(other, {i + origin.cell[0], j + origin.cell[1], k + origin.cell[2]});
                for (int a = 0; a < 3; ++a)
                  for (int b = 0; b < 3; ++b)
                    fc[((origin.row * n_s + s) * 3 + a) * 3 + b] += block[b * 3 + a] / unit;
              }
    for (double& x : fc) x /= units_.second_order_ev_per_a2;
    H5Writer out(directory / "fc2.hdf5");
    if (!units_.in_fc2.empty()) out.write_text("/physical_unit", units_.in_fc2);
    out.write("/force_constants", fc, {n_rows, n_s, 3, 3}, "eV/angstrom^2");
    write_map(out);
    out.commit();
  }

  void write_fc3(const std::filesystem::path& directory, bool compact) {
    const auto n_s = static_cast<std::int64_t>(position_.size());
    const int n_p = own_.crystal.n_atoms();
    const std::int64_t n_rows = compact ? n_p : n_s;
    std::vector<double> fc(static_cast<std::size_t>(n_rows * n_s * n_s * 27), 0.0);
    for (std::int64_t block = 0; block < own_.third.n_blocks(); ++block) {
      const int* atom = &own_.third.atom[block * 3];
      const int* cell = &own_.third.cell[block * 6];
      for (const auto& origin : origins(atom[0], compact)) {
        const int j = index_of(atom[1], {cell[0] + origin.cell[0], cell[1] + origin.cell[1],
                                         cell[2] + origin.cell[2]});
        const int k = index_of(atom[2], {cell[3] + origin.cell[0], cell[4] + origin.cell[1],
                                         cell[5] + origin.cell[2]});
        for (int e = 0; e < 27; ++e)
          fc[((origin.row * n_s + j) * n_s + k) * 27 + e] += own_.third.tensor[block * 27 + e];
      }
    }
    for (double& x : fc) x *= units_.length_angstrom / units_.second_order_ev_per_a2;
    H5Writer out(directory / "fc3.hdf5");
    out.write("/fc3", fc, {n_rows, n_s, n_s, 3, 3, 3}, "eV/angstrom^3");
    write_map(out);
    out.commit();
  }

  struct Origin {
    std::int64_t row;
    Index3 cell;
  };
  /// Rows of the dataset whose centre is an atom of this kind, with its cell.
  std::vector<Origin> origins(int atom, bool compact) {
    if (compact) return {{atom, {0, 0, 0}}};
    std::vector<Origin> all;
    std::vector<char> seen(position_.size(), 0);
    for (int i = -6; i <= 6; ++i)
      for (int j = -6; j <= 6; ++j)
        for (int k = -6; k <= 6; ++k) {
          const int s = index_of(atom, {i, j, k});
          if (seen[s]) continue;
          seen[s] = 1;
          all.push_back({s, {i, j, k}});
        }
    return all;
  }
  void write_map(H5Writer& out) {
    std::vector<std::int64_t> p2s;
    for (int p = 0; p < own_.crystal.n_atoms(); ++p) p2s.push_back(index_of(p, {0, 0, 0}));
    out.write("/p2s_map", p2s, {static_cast<std::int64_t>(p2s.size())}, "1");
  }

  const OwnDeck& own_;
  TwinUnits units_;
  Mat3 supercell_nm_{};
  Mat3 to_super_{};
  std::vector<Vec3> position_;
};

}  // namespace quasi::thermal::test
