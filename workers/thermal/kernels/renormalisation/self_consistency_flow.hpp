#pragma once

#include <optional>

#include "workers/thermal/kernels/renormalisation/self_consistency_kernels.hpp"
#include "workers/thermal/kernels/renormalisation/self_consistency_sums.hpp"
#include "workers/thermal/kernels/sample_layout.hpp"

namespace quasi::thermal {

/// The steps of SelfConsistencyKernels over a back end. See docs/theory/thermal.md 14 for the
/// equations.
/// @tparam OnDevice  Input<T> (of a host vector that outlives it; data()), Array<T> (of a size;
///                   data(), set(host vector)), use(device), for_each(n, body), to_host(array, n),
///                   which waits, require_room(device, bytes), kChunks, the number of pieces of a
///                   long sum, and Eigensolver(nb, n_matrices), which diagonalises column-major
///                   Hermitian matrices in place: diagonalise(matrices, values)
template <typename OnDevice>
class SelfConsistencyFlow : public SelfConsistencyKernels {
 public:
  explicit SelfConsistencyFlow(const Device& device) : device_(device) {}

  void load(const SelfConsistencyProblem& problem) override {
    OnDevice::use(device_);
    held_.reset();
    memory_bytes_ = bytes_of(problem);
    OnDevice::require_room(device_, memory_bytes_);
    held_.emplace(problem);
    n_points_ = problem.n_points();
    n_pairs_ = problem.n_pairs();
    n_correlations_ = problem.n_correlations();
    n_atoms_ = problem.n_atoms;
    const Held& h = *held_;
    waves_ = {.point = h.point.data(),
              .phase = {{h.roots[0].data(), h.roots[1].data(), h.roots[2].data()},
                        {problem.mesh[0], problem.mesh[1], problem.mesh[2]}}};
  }

  std::int64_t memory_bytes() const override { return memory_bytes_; }

  MeshModes diagonalise(const std::vector<double>& correction_ev_a2) override {
    OnDevice::use(device_);
    Held& h = *held_;
    h.correction.set(correction_ev_a2);
    OnDevice::for_each(n_points_ * n_atoms_ * n_atoms_,
                       CorrectMatrices{.waves = waves_,
                                       .n_atoms = n_atoms_,
                                       .bare = h.bare.data(),
                                       .first_pair = h.first_pair.data(),
                                       .pair_cell = h.pair_cell.data(),
                                       .pair_scale = h.pair_scale.data(),
                                       .correction = h.correction.data(),
                                       .matrix = h.vectors.data()});
    h.eigensolver.diagonalise(h.vectors, h.omega2);
    MeshModes modes;
    modes.omega2 = OnDevice::to_host(h.omega2, static_cast<std::size_t>(n_points_ * nb()));
    for (const Complex<double>& value :
         OnDevice::to_host(h.vectors, static_cast<std::size_t>(nb() * nb())))
      modes.gamma_vectors.emplace_back(value.re, value.im);
    return modes;
  }

  std::vector<double> contract(const std::vector<double>& amplitude) override {
    OnDevice::use(device_);
    Held& h = *held_;
    constexpr int chunks = OnDevice::kChunks;
    h.amplitude.set(amplitude);
    OnDevice::for_each(
        n_points_ * nb() * nb(),
        SumDisplacements{nb(), h.vectors.data(), h.amplitude.data(), h.displacement.data()});
    OnDevice::for_each(n_correlations_ * chunks,
                       SumCorrelations{.waves = waves_,
                                       .nb = nb(),
                                       .n_points = n_points_,
                                       .chunks = chunks,
                                       .weight = h.weight.data(),
                                       .displacement = h.displacement.data(),
                                       .atom = h.correlated_atom.data(),
                                       .cell = h.correlated_cell.data(),
                                       .scale = h.correlated_scale.data(),
                                       .sums = h.correlation_sums.data()});
    OnDevice::for_each(n_correlations_,
                       AddChunks{h.correlation_sums.data(), chunks, 9, h.correlation.data()});
    OnDevice::for_each(n_pairs_ * 9 * chunks,
                       ContractFourthOrder{.chunks = chunks,
                                           .first_block = h.first_block.data(),
                                           .block = h.block.data(),
                                           .block_correlation = h.block_correlation.data(),
                                           .tensor = h.tensor.data(),
                                           .correlation = h.correlation.data(),
                                           .sums = h.target_sums.data()});
    OnDevice::for_each(n_pairs_ * 9, AddChunks{h.target_sums.data(), chunks, 1, h.target.data()});
    return OnDevice::to_host(h.target, static_cast<std::size_t>(n_pairs_ * 9));
  }

 private:
  template <typename T>
  using Input = typename OnDevice::template Input<T>;
  template <typename T>
  using Array = typename OnDevice::template Array<T>;

  struct Held {
    explicit Held(const SelfConsistencyProblem& p)
        : roots{Waves(p.roots[0]), Waves(p.roots[1]), Waves(p.roots[2])},
          bare(p.bare),
          weight(p.weight),
          pair_scale(p.pair_scale),
          correlated_scale(p.correlated_scale),
          tensor(p.fourth->tensor),
          point(p.point),
          first_pair(p.first_pair),
          pair_cell(p.pair_cell),
          correlated_atom(p.correlated_atom),
          correlated_cell(p.correlated_cell),
          block_correlation(p.block_correlation),
          first_block(p.first_block),
          block(p.block),
          vectors(p.bare.size()),
          displacement(p.bare.size()),
          correction(9 * count(p.n_pairs())),
          omega2(count(p.n_points() * p.n_branches())),
          amplitude(count(p.n_points() * p.n_branches())),
          correlation_sums(9 * count(p.n_correlations() * OnDevice::kChunks)),
          correlation(9 * count(p.n_correlations())),
          target_sums(9 * count(p.n_pairs() * OnDevice::kChunks)),
          target(9 * count(p.n_pairs())),
          eigensolver(p.n_branches(), p.n_points()) {}

    using Waves = Input<Complex<double>>;
    Waves roots[3], bare;
    Input<double> weight, pair_scale, correlated_scale, tensor;
    Input<int> point, first_pair, pair_cell, correlated_atom, correlated_cell, block_correlation;
    Input<std::int64_t> first_block, block;
    Array<Complex<double>> vectors, displacement;
    Array<double> correction, omega2, amplitude, correlation_sums, correlation, target_sums, target;
    typename OnDevice::Eigensolver eigensolver;
  };

  static std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

  /// Returns the bytes of the arrays that grow with the mesh, the pairs or the fourth order, with
  /// the work space of an eigensolver that is as large as its matrices.
  static std::int64_t bytes_of(const SelfConsistencyProblem& p) {
    const std::int64_t matrices =
        static_cast<std::int64_t>(p.bare.size() * sizeof(Complex<double>));
    const std::int64_t reals = 2 * p.n_points() * p.n_branches() +
                               static_cast<std::int64_t>(p.fourth->tensor.size()) +
                               9 * (OnDevice::kChunks + 2) * (p.n_correlations() + p.n_pairs());
    const std::int64_t numbers = 3 * static_cast<std::int64_t>(p.block.size()) + 3 * p.n_points();
    return 4 * matrices + 8 * (reals + numbers);
  }
  int nb() const { return 3 * n_atoms_; }

  Device device_;
  std::optional<Held> held_;
  MeshWaves waves_{};
  int n_atoms_ = 0;
  std::int64_t n_points_ = 0, n_pairs_ = 0, n_correlations_ = 0, memory_bytes_ = 0;
};

}  // namespace quasi::thermal
