#include "workers/thermal/solver/four_phonon/contraction_plan_4ph.hpp"

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

#include "workers/backend/error.hpp"

#include "workers/units/constants.hpp"

namespace quasi::thermal {

namespace {

Index3 minus(const Index3& a, const Index3& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }

using PairKey = std::tuple<int, int, Index3>;  // κ''', κ'', ΔR''
using TripleKey = std::tuple<int, Index3>;     // κ', ΔR'
/// Numbers of the blocks by pair and triple.
using BlocksByPair = std::map<PairKey, std::map<TripleKey, std::vector<std::int64_t>>>;

/// Returns the cell of an atom of a block; `slot` is 1 to 3.
Index3 cell_of(const SparseForceConstants& constants, std::int64_t block, int slot) {
  const int* c = &constants.cell[static_cast<std::size_t>((block * 3 + slot - 1) * 3)];
  return {c[0], c[1], c[2]};
}

/// Returns the number of times that a pair counts. Of a pair and its inverse, the one whose κ''
/// comes first is kept and counted twice. If inversion exchanges the atoms, only half of e'' is
/// then needed.
double share_of(const PairKey& pair, const Inversion* inversion) {
  if (inversion == nullptr) return 1.0;
  const auto& [fourth, third, cell] = pair;
  const Index3 apart = minus(inversion->shift[third], inversion->shift[fourth]);
  const std::tuple inverse{inversion->partner[third], inversion->partner[fourth],
                           minus(apart, cell)};
  const std::tuple own{third, fourth, cell};
  return own < inverse ? 2.0 : own == inverse ? 1.0 : 0.0;
}

void require_known_atoms(const Crystal& crystal, const SparseForceConstants& constants,
                         std::int64_t block) {
  const int* atom = &constants.atom[static_cast<std::size_t>(block * 4)];
  for (int slot = 0; slot < 4; ++slot)
    if (atom[slot] < 0 || atom[slot] >= crystal.n_atoms())
      throw InvalidInput("fourth-order force constants: block " + std::to_string(block + 1) +
                         " names atom " + std::to_string(atom[slot] + 1) +
                         ", but the crystal has " + std::to_string(crystal.n_atoms()) +
                         " atoms; use force constants of this crystal");
}

/// Groups the blocks of the pairs that are kept.
BlocksByPair group_blocks(const Crystal& crystal, const SparseForceConstants& constants,
                          const Inversion* inversion) {
  BlocksByPair grouped;
  for (std::int64_t block = 0; block < constants.n_blocks(); ++block) {
    require_known_atoms(crystal, constants, block);
    const int* atom = &constants.atom[static_cast<std::size_t>(block * 4)];
    const Index3 origin = cell_of(constants, block, 3);
    const PairKey pair{atom[3], atom[2], minus(cell_of(constants, block, 2), origin)};
    if (share_of(pair, inversion) > 0.0)
      grouped[pair][{atom[1], minus(cell_of(constants, block, 1), origin)}].push_back(block);
  }
  return grouped;
}

/// Writes pairs, triples and blocks into the arrays of a plan.
class PlanWriter {
 public:
  PlanWriter(const Crystal& crystal, const SparseForceConstants& constants,
             ContractionPlan4ph& plan)
      : crystal_(crystal), constants_(constants), plan_(plan) {}

  void add_pair(const PairKey& pair) {
    plan_.pair_begin.push_back(static_cast<std::int32_t>(plan_.triple_atom.size()));
    plan_.pair_fourth.push_back(std::get<0>(pair));
    plan_.pair_third.push_back(std::get<1>(pair));
    plan_.pair_cell.push_back(number_of(std::get<2>(pair)));
  }
  void add_triple(const TripleKey& triple) {
    plan_.triple_begin.push_back(static_cast<std::int32_t>(plan_.block_atom.size()));
    plan_.triple_atom.push_back(std::get<0>(triple));
    plan_.triple_cell.push_back(number_of(std::get<1>(triple)));
  }
  /// @param share  of the block's pair
  void add_block(std::int64_t block, double share) {
    const int* atom = &constants_.atom[static_cast<std::size_t>(block * 4)];
    plan_.block_atom.push_back(atom[0]);
    plan_.block_cell.push_back(number_of(minus({0, 0, 0}, cell_of(constants_, block, 3))));
    double mass_product = 1.0;
    for (int slot = 0; slot < 4; ++slot) mass_product *= crystal_.mass_amu[atom[slot]];
    const double scale = share / std::sqrt(mass_product);
    for (int e = 0; e < 81; ++e)
      plan_.tensor.push_back(scale * constants_.tensor[static_cast<std::size_t>(block * 81 + e)]);
  }
  void finish() {
    plan_.n_blocks = static_cast<int>(plan_.block_atom.size());
    plan_.n_pairs = static_cast<int>(plan_.pair_third.size());
    plan_.n_triples = static_cast<int>(plan_.triple_atom.size());
    plan_.n_cells = static_cast<int>(cell_number_.size());
    plan_.pair_begin.push_back(plan_.n_triples);
    plan_.triple_begin.push_back(plan_.n_blocks);
  }

 private:
  /// Number of a cell in the plan, which gets cells it does not yet have.
  std::int32_t number_of(const Index3& cell) {
    const auto [entry, fresh] =
        cell_number_.try_emplace(cell, static_cast<std::int32_t>(cell_number_.size()));
    if (fresh) plan_.cell.insert(plan_.cell.end(), cell.begin(), cell.end());
    return entry->second;
  }

  const Crystal& crystal_;
  const SparseForceConstants& constants_;
  ContractionPlan4ph& plan_;
  std::map<Index3, std::int32_t> cell_number_;
};

}  // namespace

ContractionPlan4ph plan_contraction_4ph(const Crystal& crystal,
                                        const SparseForceConstants& fourth_order,
                                        const Inversion* inversion) {
  if (fourth_order.order != 4)
    throw InvalidInput("four-phonon scattering needs fourth-order force constants, got order " +
                       std::to_string(fourth_order.order) +
                       "; give the file of fourth order in its place");
  ContractionPlan4ph plan;
  plan.n_atoms = crystal.n_atoms();
  plan.real_elements = inversion != nullptr;
  plan.swapped = inversion != nullptr && plan.n_atoms == 2 && inversion->partner[0] == 1 &&
                 inversion->shift[0] == Index3{} && inversion->shift[1] == Index3{};
  PlanWriter writer(crystal, fourth_order, plan);
  for (const auto& [pair, triples] : group_blocks(crystal, fourth_order, inversion)) {
    writer.add_pair(pair);
    for (const auto& [triple, blocks] : triples) {
      writer.add_triple(triple);
      for (const std::int64_t block : blocks) writer.add_block(block, share_of(pair, inversion));
    }
  }
  writer.finish();
  return plan;
}

std::vector<double> phase_table_4ph(const QMesh& mesh, const ContractionPlan4ph& plan) {
  // q·R/2π is a whole number of 1/(N1 N2 N3): reduced as integers, so that no accuracy is lost for
  // far cells.
  const std::int64_t turn = mesh.size();
  std::vector<double> table(static_cast<std::size_t>(2 * turn * plan.n_cells));
#pragma omp parallel for schedule(static)
  for (std::int64_t q = 0; q < turn; ++q) {
    int c[3];
    mesh.coordinates(q, c);
    for (int n = 0; n < plan.n_cells; ++n) {
      std::int64_t part = 0;
      for (int i = 0; i < 3; ++i)
        part += static_cast<std::int64_t>(c[i]) * plan.cell[static_cast<std::size_t>(3 * n + i)] %
                mesh.n[i] * (turn / mesh.n[i]);
      part = ((part % turn) + turn) % turn;
      double re;
      double im;
      if (4 * part % turn == 0) {
        constexpr double kCos[4] = {1, 0, -1, 0};
        const auto quarter = static_cast<int>(4 * part / turn);
        re = kCos[quarter];
        im = kCos[(quarter + 3) % 4];
      } else {
        const double angle =
            2.0 * units::kPi * static_cast<double>(part) / static_cast<double>(turn);
        re = std::cos(angle);
        im = std::sin(angle);
      }
      const std::size_t at = static_cast<std::size_t>(2 * (q * plan.n_cells + n));
      table[at] = re;
      table[at + 1] = im;
    }
  }
  return table;
}

}  // namespace quasi::thermal
