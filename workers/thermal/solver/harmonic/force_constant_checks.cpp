#include "workers/thermal/solver/harmonic/force_constant_checks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace quasi::thermal {
namespace {

/// One site of a tuple, given by atom and cell.
using SiteKey = std::array<int, 4>;
using TupleKey = std::vector<SiteKey>;

TupleKey tuple_of(const SparseForceConstants& fc, std::int64_t block) {
  TupleKey key;
  for (int slot = 0; slot < fc.order; ++slot) {
    SiteKey site{fc.atom[static_cast<std::size_t>(block * fc.order + slot)], 0, 0, 0};
    if (slot > 0)
      for (int d = 0; d < 3; ++d)
        site[1 + d] =
            fc.cell[static_cast<std::size_t>((block * (fc.order - 1) + slot - 1) * 3 + d)];
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
        const double there = twin == blocks.end()
                                 ? 0.0
                                 : fc.tensor[static_cast<std::size_t>(twin->second) * size + moved];
        worst = std::max(worst, std::fabs(here - there));
      }
    }
  return largest > 0.0 ? worst / largest : 0.0;
}

BondCheck check_bonds(const Crystal& crystal, const SecondOrder& constants) {
  BondCheck check{.nearest_nm = std::numeric_limits<double>::infinity()};
  double strongest = -1.0;
  const auto n_atoms = static_cast<std::size_t>(crystal.n_atoms());
  std::vector<std::array<double, 27>> moment(n_atoms,
                                             std::array<double, 27>{});  // of `other`: Σ Φ_αβ d_γ
  std::vector<double> scale(n_atoms, 0.0);
  const auto separation = [&](int atom, int other, const Index3& cell) {
    return crystal.cartesian_nm(crystal.position[static_cast<std::size_t>(atom)] -
                                crystal.position[static_cast<std::size_t>(other)]) +
           crystal.lattice_vector_nm(cell);
  };
  const auto visit = [&](int other, const Vec3& d, double weight, const double* block) {
    const double distance = length(d);
    if (distance < 1e-6) return;  // the atom itself
    double square = 0.0;
    for (int e = 0; e < 9; ++e) square += block[e] * block[e];
    check.nearest_nm = std::min(check.nearest_nm, distance);
    if (square > strongest * (1.0 + 1e-9) ||
        (square > strongest * (1.0 - 1e-9) && distance < check.strongest_nm)) {
      strongest = std::max(strongest, square);
      check.strongest_nm = distance;
    }
    const auto at = static_cast<std::size_t>(other);
    for (int e = 0; e < 9; ++e)
      for (int c = 0; c < 3; ++c)
        moment[at][static_cast<std::size_t>(3 * e + c)] += weight * block[e] * d[c];
    scale[at] += weight * std::sqrt(square) * distance;
  };
  for (const SecondOrder::Image& image : constants.images)
    visit(image.other, separation(image.atom, image.other, image.cell), image.weight,
          image.value.data());
  if (constants.images.empty()) {
    constexpr double kSame_nm = 1e-5;
    const Index3& n = constants.supercell;
    for (int atom = 0; atom < crystal.n_atoms(); ++atom)
      for (int other = 0; other < crystal.n_atoms(); ++other)
        for (int i = 0; i < n[0]; ++i)
          for (int j = 0; j < n[1]; ++j)
            for (int k = 0; k < n[2]; ++k) {
              // A block belongs to the nearest images of the supercell.
              std::vector<Vec3> nearest;
              double shortest = std::numeric_limits<double>::infinity();
              for (int a = -2; a <= 2; ++a)
                for (int b = -2; b <= 2; ++b)
                  for (int c = -2; c <= 2; ++c) {
                    const Vec3 d =
                        separation(atom, other, {i + a * n[0], j + b * n[1], k + c * n[2]});
                    if (length(d) < shortest - kSame_nm) nearest.clear();
                    if (length(d) < shortest + kSame_nm) nearest.push_back(d);
                    shortest = std::min(shortest, length(d));
                  }
              const double* block = constants.block(atom, other, {i, j, k});
              for (const Vec3& d : nearest)
                visit(other, d, 1.0 / static_cast<double>(nearest.size()), block);
            }
  }
  for (std::size_t other = 0; other < n_atoms; ++other)
    for (std::size_t a = 0; a < 3; ++a)
      for (std::size_t b = 0; b < 3; ++b)
        for (std::size_t c = 0; c < 3; ++c)
          if (scale[other] > 0.0)
            check.rotation = std::max(check.rotation, std::fabs(moment[other][9 * a + 3 * b + c] -
                                                                moment[other][9 * c + 3 * b + a]) /
                                                          scale[other]);
  return check;
}

}  // namespace quasi::thermal
