#include "workers/thermal/solver/force_constant_checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace quasi::thermal {
namespace {

/// One site of a tuple: atom and cell.
using SiteKey = std::array<int, 4>;
using TupleKey = std::vector<SiteKey>;

TupleKey tuple_of(const SparseForceConstants& fc, std::int64_t block) {
  TupleKey key;
  for (int slot = 0; slot < fc.order; ++slot) {
    SiteKey site{fc.atom[static_cast<std::size_t>(block * fc.order + slot)], 0, 0, 0};
    if (slot > 0)
      for (int d = 0; d < 3; ++d) site[1 + d] = fc.cell[static_cast<std::size_t>((block * (fc.order - 1) + slot - 1) * 3 + d)];
    key.push_back(site);
  }
  return key;
}

void move_home(TupleKey& key) {
  const SiteKey home = key[0];
  for (SiteKey& site : key)
    for (int d = 1; d < 4; ++d) site[d] -= home[d];
}

}  // namespace

double permutation_violation(const SparseForceConstants& fc) {
  std::map<TupleKey, std::int64_t> blocks;
  for (std::int64_t block = 0; block < fc.n_blocks(); ++block) blocks[tuple_of(fc, block)] = block;
  const auto size = static_cast<std::size_t>(fc.tensor_size());
  double largest = 0.0;
  for (const double x : fc.tensor) largest = std::max(largest, std::fabs(x));
  double worst = 0.0;
  for (const auto& [key, block] : blocks)
    for (int slot = 1; slot < fc.order; ++slot) {
      TupleKey swapped = key;
      std::swap(swapped[0], swapped[static_cast<std::size_t>(slot)]);
      move_home(swapped);
      const auto twin = blocks.find(swapped);
      std::size_t stride_first = 1, stride = 1;
      for (int i = 0; i < fc.order - 1; ++i) stride_first *= 3;
      for (int i = 0; i < fc.order - 1 - slot; ++i) stride *= 3;
      for (std::size_t e = 0; e < size; ++e) {
        const std::size_t a = e / stride_first % 3, b = e / stride % 3;
        const std::size_t moved = e - a * stride_first - b * stride + b * stride_first + a * stride;
        const double here = fc.tensor[static_cast<std::size_t>(block) * size + e];
        const double there = twin == blocks.end() ? 0.0 : fc.tensor[static_cast<std::size_t>(twin->second) * size + moved];
        worst = std::max(worst, std::fabs(here - there));
      }
    }
  return largest > 0.0 ? worst / largest : 0.0;
}

BondCheck check_bonds(const Crystal& crystal, const SecondOrder& constants) {
  BondCheck check{.nearest_nm = std::numeric_limits<double>::infinity()};
  double strongest = -1.0;
  const auto visit = [&](int atom, int other, const Index3& cell, const double* block) {
    const double distance = length(crystal.cartesian_nm(crystal.position[atom] - crystal.position[other]) + crystal.lattice_vector_nm(cell));
    if (distance < 1e-6) return;  // the atom itself
    double square = 0.0;
    for (int e = 0; e < 9; ++e) square += block[e] * block[e];
    check.nearest_nm = std::min(check.nearest_nm, distance);
    if (square > strongest * (1.0 + 1e-9) || (square > strongest * (1.0 - 1e-9) && distance < check.strongest_nm)) {
      strongest = std::max(strongest, square);
      check.strongest_nm = distance;
    }
  };
  for (const SecondOrder::Image& image : constants.images) visit(image.atom, image.other, image.cell, image.value.data());
  if (constants.images.empty()) {
    const Index3& n = constants.supercell;
    for (int atom = 0; atom < crystal.n_atoms(); ++atom)
      for (int other = 0; other < crystal.n_atoms(); ++other)
        for (int i = 0; i < n[0]; ++i)
          for (int j = 0; j < n[1]; ++j)
            for (int k = 0; k < n[2]; ++k) {
              // The nearest image of the supercell is the one the block belongs to.
              Index3 best{i, j, k};
              double shortest = std::numeric_limits<double>::infinity();
              for (int a = -1; a <= 1; ++a)
                for (int b = -1; b <= 1; ++b)
                  for (int c = -1; c <= 1; ++c) {
                    const Index3 cell{i + a * n[0], j + b * n[1], k + c * n[2]};
                    const double distance =
                        length(crystal.cartesian_nm(crystal.position[atom] - crystal.position[other]) + crystal.lattice_vector_nm(cell));
                    if (distance < shortest) {
                      shortest = distance;
                      best = cell;
                    }
                  }
              visit(atom, other, best, constants.block(atom, other, best));
            }
  }
  return check;
}

}  // namespace quasi::thermal
