#include "workers/thermal/input/phonopy/phonopy_supercell_map.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

constexpr double kSamePosition_angstrom =
    1e-3;  // of an atom of the supercell and of the primitive cell
constexpr double kSameDistance_angstrom =
    1e-5;  // images this close are equally near (docs/theory/thermal.md 1.6)
constexpr int kImageRange = 2;

Index3 rounded(const Vec3& v, double* residue) {
  Index3 result{};
  for (int i = 0; i < 3; ++i) {
    result[i] = static_cast<int>(std::lround(v[i]));
    *residue = std::max(*residue, std::fabs(v[i] - result[i]));
  }
  return result;
}

}  // namespace

SupercellMap map_supercell(const PhonopyCell& primitive, const PhonopyCell& supercell,
                           const std::string& name) {
  const Mat3 to_primitive = inverse(transpose(primitive.lattice_angstrom));
  SupercellMap map;
  double residue = 0.0;
  for (int i = 0; i < 3; ++i)
    map.lattice[i] = rounded(to_primitive * supercell.lattice_angstrom[i], &residue);
  if (residue > 1e-3)
    throw InvalidInput(
        name + ": the supercell's lattice is not a multiple of the primitive cell's (off by " +
        std::to_string(residue) + " lattice vectors); do both come from one run?");
  const double ratio =
      std::fabs(determinant(supercell.lattice_angstrom) / determinant(primitive.lattice_angstrom));
  map.n_cells = std::llround(ratio);
  if (supercell.n_atoms() != primitive.n_atoms() * map.n_cells)
    throw InvalidInput(name + ": the supercell has " + std::to_string(supercell.n_atoms()) +
                       " atoms, " + std::to_string(map.n_cells) + " primitive cells of " +
                       std::to_string(primitive.n_atoms()) + " have " +
                       std::to_string(primitive.n_atoms() * map.n_cells));
  for (int s = 0; s < supercell.n_atoms(); ++s) {
    bool found = false;
    for (int p = 0; p < primitive.n_atoms() && !found; ++p) {
      if (supercell.symbol[s] != primitive.symbol[p]) continue;
      const Vec3 apart =
          to_primitive * (supercell.cartesian_angstrom(s) - primitive.cartesian_angstrom(p));
      double off = 0.0;
      const Index3 cell = rounded(apart, &off);
      const Vec3 rest{apart[0] - cell[0], apart[1] - cell[1], apart[2] - cell[2]};
      if (length(transpose(primitive.lattice_angstrom) * rest) > kSamePosition_angstrom) continue;
      map.atom.push_back(p);
      map.cell.push_back(cell);
      found = true;
    }
    if (!found)
      throw InvalidInput(name + ": atom " + std::to_string(s + 1) + " (" + supercell.symbol[s] +
                         ") of the supercell lies on no atom of the primitive cell");
  }
  for (int p = 0; p < primitive.n_atoms(); ++p)
    map.centre.push_back(
        static_cast<int>(std::find(map.atom.begin(), map.atom.end(), p) - map.atom.begin()));
  return map;
}

DatasetShape shape_of(const H5Reader& file, const std::string& dataset) {
  return {file.shape(dataset),
          file.has("/p2s_map") ? file.integers("/p2s_map") : std::vector<std::int64_t>{}};
}

void require_finite(const std::vector<double>& values, const std::string& name,
                    const std::string& dataset) {
  for (const double value : values)
    if (!std::isfinite(value))
      throw InvalidInput(name + ": dataset '" + dataset + "' holds a number that is not finite");
}

DatasetRows find_rows(const DatasetShape& file, const std::string& name, const std::string& dataset,
                      int rank, const SupercellMap& map) {
  const auto& shape = file.extents;
  const auto n_s = static_cast<std::int64_t>(map.atom.size());
  const auto n_p = static_cast<std::int64_t>(map.centre.size());
  std::ostringstream found;
  for (const auto extent : shape) found << (found.tellp() > 0 ? "×" : "") << extent;
  bool good = static_cast<int>(shape.size()) == 2 * rank && (shape[0] == n_p || shape[0] == n_s);
  for (int i = 1; good && i < rank; ++i) good = shape[i] == n_s;
  for (int i = rank; good && i < 2 * rank; ++i) good = shape[i] == 3;
  if (!good)
    throw InvalidInput(name + ": dataset '" + dataset + "' is " + found.str() +
                       ", but the supercell has " + std::to_string(n_s) +
                       " atoms and the primitive cell " + std::to_string(n_p) +
                       "; do yaml and force constants belong together?");
  DatasetRows rows{.row = {}, .centre = map.centre};
  if (!file.p2s.empty()) {
    const auto& p2s = file.p2s;
    for (std::int64_t p = 0; p < n_p; ++p) {
      const bool known = static_cast<std::int64_t>(p2s.size()) == n_p && p2s[p] >= 0 &&
                         p2s[p] < n_s && map.atom[p2s[p]] == static_cast<int>(p);
      if (!known)
        throw InvalidInput(
            name +
            ": 'p2s_map' does not name, for every atom of the primitive cell, one like it in "
            "the supercell; do yaml and force constants belong together?");
      rows.centre[p] = static_cast<int>(p2s[p]);
    }
  }
  for (std::int64_t p = 0; p < n_p; ++p) rows.row.push_back(shape[0] == n_p ? p : rows.centre[p]);
  return rows;
}

double unit_of(const H5Reader& reader, const std::string& name, int order,
               const PhonopyUnits& units) {
  if (!reader.has("/physical_unit")) return units.constants(order);
  return force_constant_unit(reader.text("/physical_unit"), order, name + ": 'physical_unit'");
}

NearestImages::NearestImages(const PhonopyCell& primitive, const SupercellMap& map)
    : primitive_(primitive), map_(map) {
  for (int i = -kImageRange; i <= kImageRange; ++i)
    for (int j = -kImageRange; j <= kImageRange; ++j)
      for (int k = -kImageRange; k <= kImageRange; ++k) {
        Index3 shift{};
        for (int d = 0; d < 3; ++d)
          shift[d] = i * map.lattice[0][d] + j * map.lattice[1][d] + k * map.lattice[2][d];
        shifts_.push_back(shift);
      }
}

std::vector<Index3> NearestImages::cells(int centre, int s) const {
  std::vector<Index3> best;
  double shortest = std::numeric_limits<double>::infinity();
  for (const Index3& shift : shifts_) {
    Index3 cell{};
    Vec3 apart = primitive_.position[map_.atom[s]] - primitive_.position[map_.atom[centre]];
    for (int d = 0; d < 3; ++d) {
      cell[d] = map_.cell[s][d] - map_.cell[centre][d] + shift[d];
      apart[d] += cell[d];
    }
    const double distance = length(transpose(primitive_.lattice_angstrom) * apart);
    if (distance < shortest - kSameDistance_angstrom) best.clear();
    if (distance < shortest + kSameDistance_angstrom) {
      best.push_back(cell);
      shortest = std::min(shortest, distance);
    }
  }
  return best;
}

}  // namespace quasi::thermal
