#include "workers/thermal/solver/renormalisation/self_consistency_problem.hpp"

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/renormalisation/half_mesh.hpp"

namespace quasi::thermal {
namespace {

using PairKey = std::tuple<int, int, Index3>;

/// Returns the pair that a block corrects, and the correlation of slots 3 and 4 with R_3 − R_4.
std::pair<PairKey, PairKey> keys_of(const SparseForceConstants& fourth, std::int64_t block) {
  const int* atom = &fourth.atom[static_cast<std::size_t>(4 * block)];
  const int* cell = &fourth.cell[static_cast<std::size_t>(9 * block)];
  return {PairKey{atom[0], atom[1], {cell[0], cell[1], cell[2]}},
          PairKey{atom[2], atom[3], {cell[3] - cell[6], cell[4] - cell[7], cell[5] - cell[8]}}};
}

/// Numbers the keys in their order.
void number(std::map<PairKey, int>& keys) {
  int next = 0;
  for (auto& [key, value] : keys) value = next++;
}

void add_pairs(const Crystal& crystal, double ev_per_a2_amu_to_omega2,
               const std::map<PairKey, int>& keys, SelfConsistencyProblem& problem,
               std::vector<PairCorrection>& pairs) {
  const auto n = static_cast<std::size_t>(crystal.n_atoms());
  problem.first_pair.assign(n * n + 1, 0);
  for (const auto& [key, value] : keys) {
    const auto& [atom, other, cell] = key;
    pairs.push_back({atom, other, cell, {}});
    problem.pair_cell.insert(problem.pair_cell.end(), cell.begin(), cell.end());
    ++problem.first_pair[static_cast<std::size_t>(atom) * n + static_cast<std::size_t>(other) + 1];
  }
  for (std::size_t i = 0; i < n * n; ++i) {
    problem.first_pair[i + 1] += problem.first_pair[i];
    problem.pair_scale.push_back(ev_per_a2_amu_to_omega2 /
                                 std::sqrt(crystal.mass_amu[i / n] * crystal.mass_amu[i % n]));
  }
}

void add_correlations(const Crystal& crystal, std::int64_t mesh_points,
                      const std::map<PairKey, int>& keys, SelfConsistencyProblem& problem) {
  for (const auto& [key, value] : keys) {
    const auto& [atom, other, cell] = key;
    problem.correlated_atom.insert(problem.correlated_atom.end(), {atom, other});
    problem.correlated_cell.insert(problem.correlated_cell.end(), cell.begin(), cell.end());
    problem.correlated_scale.push_back(
        1.0 / (std::sqrt(crystal.mass_amu[atom] * crystal.mass_amu[other]) *
               static_cast<double>(mesh_points)));
  }
}

/// Groups the blocks by their pairs, each group in the order of the blocks.
void add_blocks(const SparseForceConstants& fourth, const std::map<PairKey, int>& pairs,
                const std::map<PairKey, int>& correlations, SelfConsistencyProblem& problem) {
  std::vector<std::vector<std::int64_t>> blocks(pairs.size());
  std::vector<int> correlation(static_cast<std::size_t>(fourth.n_blocks()));
  for (std::int64_t b = 0; b < fourth.n_blocks(); ++b) {
    const auto [pair, correlated] = keys_of(fourth, b);
    blocks[static_cast<std::size_t>(pairs.at(pair))].push_back(b);
    correlation[static_cast<std::size_t>(b)] = correlations.at(correlated);
  }
  problem.first_block.push_back(0);
  for (const std::vector<std::int64_t>& of_pair : blocks) {
    for (const std::int64_t b : of_pair) {
      problem.block.push_back(b);
      problem.block_correlation.push_back(correlation[static_cast<std::size_t>(b)]);
    }
    problem.first_block.push_back(static_cast<std::int64_t>(problem.block.size()));
  }
}

/// Computes D(q) of the bare constants at all points.
void add_bare_matrices(const HalfMesh& half, const DynamicalMatrixBuilder& builder,
                       SelfConsistencyProblem& problem) {
  const auto square = static_cast<std::size_t>(problem.n_branches() * problem.n_branches());
  problem.bare.resize(static_cast<std::size_t>(half.size()) * square);
#pragma omp parallel for schedule(static)
  for (std::int64_t point = 0; point < half.size(); ++point) {
    const std::vector<std::complex<double>> d = builder.at(half.q(point), false).d;
    for (std::size_t e = 0; e < square; ++e)
      problem.bare[static_cast<std::size_t>(point) * square + e] = {d[e].real(), d[e].imag()};
  }
}

}  // namespace

SelfConsistencyProblem make_self_consistency_problem(
    const Crystal& crystal, const SecondOrder& bare, const SparseForceConstants& fourth,
    const HarmonicOptions& harmonic, const QMesh& mesh, std::vector<PairCorrection>& pairs) {
  SelfConsistencyProblem problem;
  problem.n_atoms = crystal.n_atoms();
  problem.mesh = {mesh.n[0], mesh.n[1], mesh.n[2]};
  problem.fourth = &fourth;
  for (int d = 0; d < 3; ++d)
    for (const std::complex<double>& root : unit_roots(mesh.n[d]))
      problem.roots[d].push_back({root.real(), root.imag()});
  const HalfMesh half(mesh);
  problem.point = half.points();
  problem.weight = half.weights();
  std::map<PairKey, int> pair_numbers, correlation_numbers;
  for (std::int64_t b = 0; b < fourth.n_blocks(); ++b) {
    const auto [pair, correlation] = keys_of(fourth, b);
    pair_numbers.emplace(pair, 0);
    correlation_numbers.emplace(correlation, 0);
  }
  number(pair_numbers);
  number(correlation_numbers);
  pairs.clear();
  add_pairs(crystal, harmonic.constants.ev_per_a2_amu_to_omega2, pair_numbers, problem, pairs);
  add_correlations(crystal, mesh.size(), correlation_numbers, problem);
  add_blocks(fourth, pair_numbers, correlation_numbers, problem);
  add_bare_matrices(half, DynamicalMatrixBuilder(crystal, bare, harmonic), problem);
  return problem;
}

}  // namespace quasi::thermal
