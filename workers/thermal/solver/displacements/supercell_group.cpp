#include "workers/thermal/solver/displacements/supercell_group.hpp"

#include <spglib.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

int wrapped(int value, int period) { return ((value % period) + period) % period; }

using Dataset = std::unique_ptr<SpglibDataset, void (*)(SpglibDataset*)>;

Dataset space_group(const PhonopyCell& cell, double symprec_angstrom) {
  double lattice[3][3];
  for (int i = 0; i < 3; ++i)
    for (int x = 0; x < 3; ++x) lattice[x][i] = cell.lattice_angstrom[i][x];
  std::vector<double> positions;
  std::vector<std::string> elements;
  std::vector<int> types;
  for (int atom = 0; atom < cell.n_atoms(); ++atom) {
    positions.insert(positions.end(), cell.position[atom].begin(), cell.position[atom].end());
    auto found = std::find(elements.begin(), elements.end(), cell.symbol[atom]);
    if (found == elements.end()) found = elements.insert(elements.end(), cell.symbol[atom]);
    types.push_back(static_cast<int>(found - elements.begin()) + 1);
  }
  Dataset dataset(spg_get_dataset(lattice, reinterpret_cast<double(*)[3]>(positions.data()),
                                  types.data(), cell.n_atoms(), symprec_angstrom),
                  spg_free_dataset);
  if (!dataset || dataset->n_operations < 1)
    throw InvalidInput("no space group was found with a tolerance of " +
                       std::to_string(symprec_angstrom) + " Å; change --symprec-angstrom");
  return dataset;
}

/// Returns true if an operation maps the lattice of the supercell onto itself.
bool keeps_supercell(const int rotation[3][3], const Index3& repeats) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      if (rotation[i][j] * repeats[j] % repeats[i] != 0) return false;
  return true;
}

}  // namespace

SupercellGroup::SupercellGroup(const PhonopyCell& primitive, const Index3& repeats,
                               double symprec_angstrom)
    : repeats_(repeats), n_atoms_(primitive.n_atoms()) {
  for (const int n : repeats)
    if (n < 1)
      throw InvalidInput("--supercell has " + std::to_string(n) + "; repeats are at least 1");
  supercell_ = repeat_cell(primitive, repeats);
  find_operations(primitive, symprec_angstrom);
  find_nearest_images(primitive);
}

int SupercellGroup::site_of(int atom, const Index3& cell) const {
  const Index3& n = repeats_;
  return ((atom * n[2] + wrapped(cell[2], n[2])) * n[1] + wrapped(cell[1], n[1])) * n[0] +
         wrapped(cell[0], n[0]);
}

Index3 SupercellGroup::cell_of(int site) const {
  return {site % repeats_[0], site / repeats_[0] % repeats_[1],
          site / (repeats_[0] * repeats_[1]) % repeats_[2]};
}

int SupercellGroup::relative_to(int site, int anchor) const {
  const Index3 cell = cell_of(site), origin = cell_of(anchor);
  return site_of(atom_of(site), {cell[0] - origin[0], cell[1] - origin[1], cell[2] - origin[2]});
}

void SupercellGroup::find_operations(const PhonopyCell& primitive, double symprec_angstrom) {
  const Dataset group = space_group(primitive, symprec_angstrom);
  const Mat3 columns = transpose(primitive.lattice_angstrom);
  const Mat3 to_fractional = inverse(columns);
  for (int op = 0; op < group->n_operations; ++op) {
    const auto& w = group->rotations[op];
    if (!keeps_supercell(w, repeats_)) continue;
    Mat3 fractional;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) fractional[i][j] = w[i][j];
    std::vector<int> image(static_cast<std::size_t>(n_sites()), -1);
    for (int site = 0; site < n_sites(); ++site) {
      const Index3 cell = cell_of(site);
      Vec3 at = primitive.position[atom_of(site)];
      for (int x = 0; x < 3; ++x) at[x] += cell[x];
      Vec3 to = fractional * at;
      for (int x = 0; x < 3; ++x) to[x] += group->translations[op][x];
      double nearest = std::numeric_limits<double>::infinity();
      for (int atom = 0; atom < n_atoms_; ++atom) {
        const Vec3 apart = to - primitive.position[atom];
        const Vec3 whole{std::round(apart[0]), std::round(apart[1]), std::round(apart[2])};
        const double distance = length(columns * (apart - whole));
        if (primitive.symbol[atom] != primitive.symbol[atom_of(site)] || distance >= nearest)
          continue;
        nearest = distance;
        image[site] = site_of(atom, {static_cast<int>(whole[0]), static_cast<int>(whole[1]),
                                     static_cast<int>(whole[2])});
      }
    }
    image_.push_back(std::move(image));
    rotation_.push_back(columns * fractional * to_fractional);
  }
}

void SupercellGroup::find_nearest_images(const PhonopyCell& primitive) {
  constexpr int kReach = 3;  // in supercells; reduced and moderately skewed cells need less
  const Mat3 columns = transpose(primitive.lattice_angstrom);
  const auto vector_of = [&](const Index3& cell) {
    return columns * Vec3{double(cell[0]), double(cell[1]), double(cell[2])};
  };
  const auto for_each_period = [&](const auto& visit) {
    for (int i = -kReach; i <= kReach; ++i)
      for (int j = -kReach; j <= kReach; ++j)
        for (int k = -kReach; k <= kReach; ++k)
          visit(Index3{i * repeats_[0], j * repeats_[1], k * repeats_[2]});
  };
  shortest_period_ = std::numeric_limits<double>::infinity();
  for_each_period([&](const Index3& period) {
    if (period != Index3{0, 0, 0})
      shortest_period_ = std::min(shortest_period_, length(vector_of(period)));
  });
  nearest_cell_.assign(n_atoms_, std::vector<Index3>(n_sites()));
  nearest_vector_.assign(n_atoms_, std::vector<Vec3>(n_sites()));
  for (int atom = 0; atom < n_atoms_; ++atom)
    for (int site = 0; site < n_sites(); ++site) {
      double nearest = std::numeric_limits<double>::infinity();
      const Index3 cell = cell_of(site);
      const Vec3 within = columns * (primitive.position[atom_of(site)] - primitive.position[atom]);
      for_each_period([&](const Index3& period) {
        const Index3 to{cell[0] + period[0], cell[1] + period[1], cell[2] + period[2]};
        const Vec3 apart = within + vector_of(to);
        if (length(apart) > nearest - 1e-8) return;
        nearest = length(apart);
        nearest_cell_[atom][site] = to;
        nearest_vector_[atom][site] = apart;
      });
    }
}

}  // namespace quasi::thermal
