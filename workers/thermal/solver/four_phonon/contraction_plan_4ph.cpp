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

}  // namespace

ContractionPlan4ph plan_contraction_4ph(const Crystal& crystal,
                                        const SparseForceConstants& fourth_order,
                                        const Inversion* inversion) {
  if (fourth_order.order != 4)
    throw InvalidInput("four-phonon scattering needs fourth-order force constants, got order " +
                       std::to_string(fourth_order.order));
  using Pair = std::tuple<int, int, Index3>;  // κ''', κ'', ΔR''
  using Triple = std::tuple<int, Index3>;     // κ', ΔR'
  std::map<Pair, std::map<Triple, std::vector<std::int64_t>>> grouped;
  // Of a pair and its inverse the one whose κ'' comes first is kept, counted twice: where inversion
  // exchanges the atoms only half of e'' is then asked for.
  const auto share_of = [&](const Pair& pair) {
    if (inversion == nullptr) return 1.0;
    const auto& [fourth, third, cell] = pair;
    const Index3 apart = minus(inversion->shift[third], inversion->shift[fourth]);
    const std::tuple inverse{inversion->partner[third], inversion->partner[fourth],
                             minus(apart, cell)};
    const std::tuple own{third, fourth, cell};
    return own < inverse ? 2.0 : own == inverse ? 1.0 : 0.0;
  };
  const auto cell_of = [&](std::int64_t block, int slot) {
    const int* c = &fourth_order.cell[static_cast<std::size_t>((block * 3 + slot - 1) * 3)];
    return Index3{c[0], c[1], c[2]};
  };
  for (std::int64_t block = 0; block < fourth_order.n_blocks(); ++block) {
    const int* atom = &fourth_order.atom[static_cast<std::size_t>(block * 4)];
    for (int slot = 0; slot < 4; ++slot)
      if (atom[slot] < 0 || atom[slot] >= crystal.n_atoms())
        throw InvalidInput("fourth-order force constants: block " + std::to_string(block + 1) +
                           " names atom " + std::to_string(atom[slot] + 1) +
                           ", but the crystal has " + std::to_string(crystal.n_atoms()));
    const Index3 origin = cell_of(block, 3);
    const Pair pair{atom[3], atom[2], minus(cell_of(block, 2), origin)};
    if (share_of(pair) > 0.0)
      grouped[pair][{atom[1], minus(cell_of(block, 1), origin)}].push_back(block);
  }

  ContractionPlan4ph plan;
  plan.n_atoms = crystal.n_atoms();
  plan.real_elements = inversion != nullptr;
  plan.swapped = inversion != nullptr && plan.n_atoms == 2 && inversion->partner[0] == 1 &&
                 inversion->shift[0] == Index3{} && inversion->shift[1] == Index3{};
  std::map<Index3, std::int32_t> cell_number;
  const auto number_of = [&](const Index3& cell) {
    const auto [entry, fresh] =
        cell_number.try_emplace(cell, static_cast<std::int32_t>(cell_number.size()));
    if (fresh) plan.cell.insert(plan.cell.end(), cell.begin(), cell.end());
    return entry->second;
  };
  for (const auto& [pair, triples] : grouped) {
    plan.pair_begin.push_back(static_cast<std::int32_t>(plan.triple_atom.size()));
    plan.pair_fourth.push_back(std::get<0>(pair));
    plan.pair_third.push_back(std::get<1>(pair));
    plan.pair_cell.push_back(number_of(std::get<2>(pair)));
    for (const auto& [triple, blocks] : triples) {
      plan.triple_begin.push_back(static_cast<std::int32_t>(plan.block_atom.size()));
      plan.triple_atom.push_back(std::get<0>(triple));
      plan.triple_cell.push_back(number_of(std::get<1>(triple)));
      for (const std::int64_t block : blocks) {
        const int* atom = &fourth_order.atom[static_cast<std::size_t>(block * 4)];
        plan.block_atom.push_back(atom[0]);
        plan.block_cell.push_back(number_of(minus({0, 0, 0}, cell_of(block, 3))));
        double mass_product = 1.0;
        for (int slot = 0; slot < 4; ++slot) mass_product *= crystal.mass_amu[atom[slot]];
        const double scale = share_of(pair) / std::sqrt(mass_product);
        for (int e = 0; e < 81; ++e)
          plan.tensor.push_back(scale *
                                fourth_order.tensor[static_cast<std::size_t>(block * 81 + e)]);
      }
    }
  }
  plan.n_blocks = static_cast<int>(plan.block_atom.size());
  plan.n_pairs = static_cast<int>(plan.pair_third.size());
  plan.n_triples = static_cast<int>(plan.triple_atom.size());
  plan.n_cells = static_cast<int>(cell_number.size());
  plan.pair_begin.push_back(plan.n_triples);
  plan.triple_begin.push_back(plan.n_blocks);
  return plan;
}

std::vector<double> phase_table_4ph(const QMesh& mesh, const ContractionPlan4ph& plan) {
  // q·R/2π is a whole number of 1/(N1 N2 N3): reduced as integers, so that no accuracy is lost for
  // far cells.
  const std::int64_t turn = mesh.size();
  std::vector<double> table(static_cast<std::size_t>(2 * turn * plan.n_cells));
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
