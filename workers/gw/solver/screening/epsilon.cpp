#include "workers/gw/solver/screening/epsilon.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "workers/gw/solver/ordered_sum.hpp"
#include "workers/gw/solver/screening/checkpointed_sums.hpp"
#include "workers/gw/solver/screening/dielectric_inversion.hpp"
#include "workers/gw/solver/screening/epsilon_pieces.hpp"
#include "workers/gw/solver/screening/polarizability/packed_chi.hpp"
#include "workers/gw/solver/screening/polarizability/polarizability.hpp"
#include "workers/gw/solver/screening/slices/sliced_chi.hpp"

namespace quasi::gw {

std::vector<Vec3> screening_points(const MeanField& field) {
  std::vector<Vec3> points;
  for (const Vec3& k : field.waves.k) {
    IVec3 g;
    points.push_back(nearest_lattice_point(k, &g) ? field.q0 : k);
  }
  return points;
}

namespace {

/// ε⁻¹ of a list of q on all devices.
class DielectricSum {
 public:
  DielectricSum(const MeanField& field, const std::vector<Vec3>& points,
                const EpsilonOptions& options, const StepContext& context, EpsilonProfile* profile)
      : field_(field),
        options_(options),
        context_(context),
        profile_(profile),
        inversion_(field, options, context.coulomb),
        subspace_(options.subspace.wanted() && options.frequencies_ry.size() > 1) {
    matrices_.reserve(points.size());  // `sums_` refer to them
    for (const Vec3& q : points) {
      matrices_.push_back(inversion_.empty_matrix(q));
      sums_.emplace_back(field, matrices_.back(), options, profile);
      total_ += sums_.back().portions();
    }
  }

  std::vector<DielectricMatrix> solve() {
    share_kept();
    if (options_.column_slices > 0) {
      for (std::size_t iq = 0; iq < matrices_.size(); ++iq)
        if (matrices_[iq].inverse.empty() && !take_finished(iq)) solve_by_slices(iq);
      return std::move(matrices_);
    }
    if (subspace_ || static_cast<int>(matrices_.size()) >= context_.team.size())
      solve_by_points();
    else
      for (std::size_t iq = 0; iq < matrices_.size(); ++iq)
        if (matrices_[iq].inverse.empty() && !take_finished(iq)) solve_by_portions(iq);
    return std::move(matrices_);
  }

 private:
  Ranks& ranks() const { return context_.team.ranks(); }
  static std::string prefix_of(std::size_t iq) { return "packed-chi/" + std::to_string(iq) + "/"; }
  std::string name_of_finished(std::size_t iq) const {
    return (subspace_ ? "epsilon-in-subspace/" : "epsilon/") + std::to_string(iq);
  }
  void report(std::int64_t portions) {
    context_.progress.report("polarizability", done_ += portions, total_);
  }

  void add_item(std::size_t iq, const ChiItem& item, GwKernels& kernels, CheckpointedSums& into) {
    const bool kept = item.kept.data != nullptr;
    into.push({item.begin, item.count,
               kept ? sums_[iq].restored(item.kept, kernels)
                    : sums_[iq].portion(item.begin, kernels, context_.progress)},
              kept);
    report(item.count);
  }

  void keep(std::size_t iq) {
    StepClock clock(profile_);
    if (context_.checkpoint.keeps())
      context_.checkpoint.replace(prefix_of(iq), name_of_finished(iq), packed(matrices_[iq]));
    clock.step("checkpoint");
  }
  void unpack_into(const Piece& piece, DielectricMatrix& m) const {
    unpack(piece, head_count(field_, m.at_gamma) > 1 && context_.coulomb.averages(), subspace_, m);
  }
  /// Takes ε⁻¹ of one q from the checkpoint. @return false if it is not there
  bool take_finished(std::size_t iq) {
    const auto kept = context_.checkpoint.find(name_of_finished(iq));
    if (!kept) return false;
    unpack_into(*kept, matrices_[iq]);
    report(sums_[iq].portions());
    return true;
  }
  /// Sends the matrices in the checkpoint of rank 0 to all ranks.
  void share_kept() {
    if (ranks().size() == 1) return;
    for (std::size_t iq = 0; iq < matrices_.size(); ++iq)
      if (const Piece kept = kept_pieces(ranks(), context_.checkpoint, {name_of_finished(iq)})[0];
          kept.data != nullptr && !ranks().leads())
        unpack_into(kept, matrices_[iq]);
  }
  /// Sends ε⁻¹ of one q from the rank that has calculated it to all others.
  void exchange(std::size_t iq, int owner) {
    DielectricMatrix& m = matrices_[iq];
    std::vector<double> values;
    if (ranks().rank() == owner) {
      const Piece whole = packed(m);
      values.assign(whole.data, whole.data + whole.count);
    }
    ranks().broadcast(values, owner);
    if (ranks().rank() == owner || !m.inverse.empty()) return;
    unpack_into(piece_of(std::make_shared<const std::vector<double>>(std::move(values))), m);
    keep(iq);
    report(sums_[iq].portions());
  }

  /// Returns χ of the whole zone: the symmetry operations of q are applied to the sum over a part.
  std::unique_ptr<PartialChi> completed(std::size_t iq, std::unique_ptr<PartialChi> chi) {
    sums_[iq].release();
    if (sums_[iq].is_whole()) return chi;
    const ChiShape shape = chi->shape();
    std::vector<Cplx> values(static_cast<std::size_t>(shape.size()));
    chi->read(values.data());
    return std::make_unique<HostChi>(shape, sums_[iq].complete(std::move(values)));
  }

  /// Completes χ by symmetry, inverts ε and stores the result.
  void finish(std::size_t iq, std::unique_ptr<PartialChi> chi, GwKernels& kernels) {
    StepClock clock(profile_);
    chi = completed(iq, std::move(chi));
    chi = unpacked(std::move(chi), kernels.polarizability());
    clock.step("symmetrise");
    inversion_.invert(*chi, kernels, matrices_[iq]);
    clock.step("invert");
    keep(iq);
  }

  /// Calculates χ and ε⁻¹ of the q with the number iq in slices on all devices.
  void solve_by_slices(std::size_t iq) {
    sums_[iq].share_dipoles(context_.team);
    StepClock clock(profile_);
    auto chi = sliced_chi({.chi = sums_[iq],
                           .options = options_,
                           .prefix = prefix_of(iq) + "slice-",
                           .report = [this](std::int64_t portions) { report(portions); }},
                          context_);
    clock.step("wall_of_portions");
    chi = completed(iq, std::move(chi));
    clock.step("symmetrise");
    inversion_.invert_in_slices(std::move(chi), context_.team, matrices_[iq]);
    clock.step("invert");
    keep(iq);
  }

  void solve_in_subspace(std::size_t iq, GwKernels& kernels) {
    inversion_.invert_in_subspace(sums_[iq], kernels, context_.progress, matrices_[iq]);
    keep(iq);
    report(sums_[iq].portions());
  }

  /// Gives whole q-points to the devices. With several ranks they are exchanged after each round.
  void solve_by_points() {
    const auto n_points = static_cast<std::int64_t>(matrices_.size());
    const std::int64_t step = ranks().size() > 1 ? context_.team.size() : n_points;
    for (std::int64_t begin = 0; begin < n_points; begin += step) {
      const std::int64_t count = std::min(step, n_points - begin);
      context_.team.run(count, [&](std::int64_t task, GwKernels& kernels) {
        const auto iq = static_cast<std::size_t>(begin + task);
        if (!matrices_[iq].inverse.empty() || take_finished(iq)) return;
        if (subspace_) {
          solve_in_subspace(iq, kernels);
          return;
        }
        CheckpointedSums sum(prefix_of(iq), context_.checkpoint);
        for (const ChiItem& item :
             chi_items(prefix_of(iq), sums_[iq].portions(), one_rank(), context_.checkpoint))
          add_item(iq, item, kernels, sum);
        finish(iq, closed(sum.take()), kernels);
      });
      for (std::int64_t task = 0; task < count && ranks().size() > 1; ++task)
        exchange(static_cast<std::size_t>(begin + task), context_.team.owner(task, count));
    }
  }

  /// Calculates the portions of one q on all devices.
  void solve_by_portions(std::size_t iq) {
    DeviceTeam& team = context_.team;
    const std::vector<ChiItem> items =
        chi_items(prefix_of(iq), sums_[iq].portions(), ranks(), context_.checkpoint);
    std::map<const GwKernels*, CheckpointedSums> of_device;
    for (GwKernels* member : team.members())
      of_device.try_emplace(member, prefix_of(iq), context_.checkpoint);
    sums_[iq].share_dipoles(team);
    StepClock wall(profile_);
    team.run(static_cast<std::int64_t>(items.size()), [&](std::int64_t index, GwKernels& kernels) {
      add_item(iq, items[static_cast<std::size_t>(index)], kernels, of_device.at(&kernels));
    });
    wall.step("wall_of_portions");
    StepClock clock(profile_);
    std::vector<ChiNode> nodes;
    for (GwKernels* member : team.members())
      for (ChiNode& node : of_device.at(member).take()) push_node(nodes, std::move(node));
    std::unique_ptr<PartialChi> sum;
    if (ranks().size() > 1) {
      std::int64_t own = 0;
      for (const ChiNode& node : nodes) own += node.count;
      report(sums_[iq].portions() - own);
      const ChiShape shape = sums_[iq].shape();
      auto values = sum_over_ranks(ranks(), nodes, shape);
      nodes.clear();
      sum = std::make_unique<HostChi>(shape, std::move(values));
    } else {
      sum = closed(std::move(nodes));
    }
    clock.step("sum");
    finish(iq, std::move(sum), team.first());
  }

  const MeanField& field_;
  const EpsilonOptions& options_;
  const StepContext context_;
  EpsilonProfile* profile_;
  DielectricInversion inversion_;
  bool subspace_;
  std::vector<DielectricMatrix> matrices_;
  std::vector<Polarizability> sums_;
  std::int64_t total_ = 0;
  std::atomic<std::int64_t> done_{0};
};

}  // namespace

std::vector<DielectricMatrix> dielectric_matrices(const MeanField& field,
                                                  const std::vector<Vec3>& points,
                                                  const EpsilonOptions& options,
                                                  const StepContext& context,
                                                  EpsilonProfile* profile) {
  return DielectricSum(field, points, options, context, profile).solve();
}

DielectricMatrix dielectric_matrix(const MeanField& field, const Vec3& q,
                                   const EpsilonOptions& options, const CoulombInteraction& coulomb,
                                   GwKernels& kernels, Progress& progress) {
  DeviceTeam alone(kernels);
  Checkpoint none;
  return std::move(dielectric_matrices(field, {q}, options, {coulomb, alone, none, progress})[0]);
}

}  // namespace quasi::gw
