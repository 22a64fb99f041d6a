#include "workers/gw/solver/pseudoband_errors/block_sums.hpp"

#include <utility>

#include "workers/gw/solver/part_runner.hpp"
#include "workers/gw/solver/self_energy/sigma_parts.hpp"
#include "workers/gw/solver/self_energy/zone_sum/outer_products.hpp"

namespace quasi::gw {
namespace {

/// The vectors of one block at one q and outer k.
struct BlockTask {
  std::size_t iq = 0, k = 0;
  int block = 0;
};

/// One task on one device. Empty bands at x* = closed_sum_x_ry have the matrix of the closed sum as
/// their F v̄, so that the poles on the device serve the closed sum too.
class BlockPart {
 public:
  BlockPart(const MeanField& field, const PseudobandPlan& plan, const SigmaOptions& options,
            const std::vector<double>& node_ry, const LoadedPoleModel& model)
      : field_(field), plan_(plan), options_(options), node_ry_(node_ry), model_(model) {}

  /// Returns [spin][Σ, Σ at the nodes, slope, slope at the nodes][n_l].
  std::vector<double> calculate(const BlockTask& task, const GSphere& sphere, GwKernels& kernels) {
    const int ik = options_.kpoints[task.k];
    const auto stars =
        q_points_by_star(field_, field_.waves.k[static_cast<std::size_t>(ik)], options_.reduce_q);
    const auto star = stars.find(static_cast<int>(task.iq));
    std::vector<double> result;
    for (int spin = 0; spin < field_.n_spins(); ++spin) {
      const BandsAtK bands{ik, spin, options_.band_min - 1, options_.band_max};
      sums_.assign(static_cast<std::size_t>(4 * bands.size()), 0.0);
      if (star != stars.end()) {
        OuterProducts outer(field_, bands, sum_box(field_, sphere.g), kernels);
        for (const StarMember& member : star->second) add_vectors(task, member, sphere, outer);
        if (options_.closed_sum_x_ry) {
          OuterProducts wide(field_, bands, complement_box(field_, sphere.g), kernels);
          for (const StarMember& member : star->second) add_complement(task, member, sphere, wide);
        }
      }
      result.insert(result.end(), sums_.begin(), sums_.end());
    }
    return result;
  }

 private:
  double weight_of(const StarMember& member) const {
    return member.multiplicity / field_.zone_volume_bohr3();
  }
  double& sum(std::int64_t row, std::int64_t l, std::int64_t n_l) {
    return sums_[static_cast<std::size_t>(row * n_l + l)];
  }

  void add_vectors(const BlockTask& task, const StarMember& member, const GSphere& sphere,
                   OuterProducts& outer) {
    const auto rotated = outer.load_sphere(member.q, sphere, OuterProducts::Phases::kApplied);
    const auto [first, end] = plan_.bands_of_block(task.block);
    const std::int64_t step = bands_at_a_time(sphere.size(), outer, options_);
    for (std::int64_t begin = first; begin < end; begin += step) {
      BandBlock block =
          outer.load_inner(member.q, begin, std::min<std::int64_t>(end, begin + step));
      block.weight = weight_of(member);
      const PairBlock& products = outer.fill(*rotated);
      std::vector<double> nodes = block.inner_ry;
      for (std::size_t n = 0; n < nodes.size() && !node_ry_.empty(); ++n)
        nodes[n] = node_ry_[static_cast<std::size_t>(begin) + n];
      add_totals(block, nodes, products);
      if (!options_.slope) continue;
      add_slopes(block, block.inner_ry, products, 2);
      if (!node_ry_.empty()) add_slopes(block, nodes, products, 3);
    }
  }
  void add_totals(const BandBlock& block, const std::vector<double>& nodes,
                  const PairBlock& products) {
    const std::int64_t n_e = options_.closed_sum_x_ry ? 3 : 2;
    std::vector<double> x;
    for (const double outer_ry : block.outer_ry)
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        x.push_back(outer_ry - block.inner_ry[n]);
        x.push_back(outer_ry - nodes[n]);
        if (options_.closed_sum_x_ry) x.push_back(*options_.closed_sum_x_ry);
      }
    std::vector<Cplx> total(static_cast<std::size_t>(block.n_l * n_e));
    model_.add_diagonal(products,
                        {view<const double>(x, block.n_l, block.n_b, n_e),
                         view<const double>(block.occupation, block.n_b), block.weight},
                        {view<Cplx>(total, block.n_l, n_e), {}});
    for (std::int64_t l = 0; l < block.n_l; ++l)
      for (std::int64_t e = 0; e < 2; ++e) {
        const auto at = static_cast<std::size_t>(l * n_e);
        sum(e, l, block.n_l) += total[at + static_cast<std::size_t>(e)].real();
        if (options_.closed_sum_x_ry) sum(e, l, block.n_l) -= total[at + 2].real();
      }
  }
  void add_slopes(const BandBlock& block, const std::vector<double>& inner_ry,
                  const PairBlock& products, std::int64_t row) {
    std::vector<double> x;
    for (const double outer_ry : block.outer_ry)
      for (const double inner : inner_ry) x.push_back(outer_ry - inner);
    const auto n_l = static_cast<std::size_t>(block.n_l);
    std::vector<Cplx> total(n_l), slope(n_l);
    model_.add_diagonal_slope(products,
                              {view<const double>(x, block.n_l, block.n_b, 1),
                               view<const double>(block.occupation, block.n_b), block.weight},
                              {view<Cplx>(total, n_l), {}, view<Cplx>(slope, n_l)});
    for (std::size_t l = 0; l < n_l; ++l)
      sum(row, static_cast<std::int64_t>(l), block.n_l) += slope[l].real();
  }
  /// Subtracts the closed sum over the complement's vectors of the block.
  void add_complement(const BlockTask& task, const StarMember& member, const GSphere& sphere,
                      OuterProducts& outer) {
    const auto rotated = outer.load_sphere(member.q, sphere, OuterProducts::Phases::kApplied);
    const int each = field_.complement->n_bands / plan_.blocks;
    const BandBlock block =
        outer.load_complement(member.q, task.block * each, (task.block + 1) * each);
    const std::vector<double> x(static_cast<std::size_t>(block.n_l * block.n_b),
                                *options_.closed_sum_x_ry),
        empty(static_cast<std::size_t>(block.n_b), 0.0);
    std::vector<Cplx> total(static_cast<std::size_t>(block.n_l));
    model_.add_diagonal(outer.fill(*rotated),
                        {view<const double>(x, block.n_l, block.n_b, 1),
                         view<const double>(empty, block.n_b), weight_of(member)},
                        {view<Cplx>(total, block.n_l, 1), {}});
    for (std::int64_t l = 0; l < block.n_l; ++l)
      for (std::int64_t row : {0, 1})
        sum(row, l, block.n_l) -= total[static_cast<std::size_t>(l)].real();
  }

  const MeanField& field_;
  const PseudobandPlan& plan_;
  const SigmaOptions& options_;
  const std::vector<double>& node_ry_;
  const LoadedPoleModel& model_;
  std::vector<double> sums_;
};

}  // namespace

BlockSumsOfSigma sums_of_blocks(const MeanField& field, const std::vector<ChangingPoles>& poles,
                                const PseudobandPlan& plan, const SigmaOptions& options,
                                const std::vector<double>& node_ry,
                                const ResponseContext& context) {
  std::vector<BlockTask> tasks;
  for (std::size_t iq = 0; iq < poles.size(); ++iq)
    for (std::size_t k = 0; k < options.kpoints.size(); ++k)
      for (int block = 0; block < plan.blocks; ++block) tasks.push_back({iq, k, block});
  PartedSum sum{.name = "blocks",
                .phase = "self-energy",
                .parts = static_cast<std::int64_t>(tasks.size()),
                .make = {},
                .running = {}};
  sum.make = [&](std::int64_t index, GwKernels& kernels, Progress&) {
    const BlockTask& task = tasks[static_cast<std::size_t>(index)];
    PolesOnDevice& here = context.loaded.at(&kernels);
    here.take(poles[task.iq], task.iq, options.rules, kernels);
    return BlockPart(field, plan, options, node_ry, *here.model)
        .calculate(task, poles[task.iq].at.sphere, kernels);
  };
  const std::vector<Piece> results =
      run_parts(sum, context.step.team, context.step.checkpoint, context.step.progress);
  const SigmaChanges none = no_change(field, options);
  BlockSumsOfSigma found{std::vector<SigmaChanges>(static_cast<std::size_t>(plan.blocks), none),
                         none};
  const auto n_spins = static_cast<std::size_t>(field.n_spins()),
             n_l = none.front().total_ry.size();
  for (std::size_t i = 0; i < results.size(); ++i)
    for (std::size_t spin = 0; spin < n_spins; ++spin) {
      const double* at = results[i].data + spin * 4 * n_l;
      const std::size_t of_k = tasks[i].k * n_spins + spin;
      SigmaChange& own = found.own[static_cast<std::size_t>(tasks[i].block)][of_k];
      SigmaChange& moved = found.to_nodes[of_k];
      for (std::size_t l = 0; l < n_l; ++l) {
        own.total_ry[l] += at[l];
        moved.total_ry[l] += at[n_l + l] - at[l];
        if (!options.slope) continue;
        own.slope[l] += at[2 * n_l + l];
        moved.slope[l] += at[3 * n_l + l] - at[2 * n_l + l];
      }
    }
  return found;
}

}  // namespace quasi::gw
