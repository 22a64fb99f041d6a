#include "workers/gw/solver/screening/grouped_screening.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "workers/gw/solver/ordered_sum.hpp"
#include "workers/gw/solver/screening/checkpointed_sums.hpp"
#include "workers/gw/solver/screening/slices/sliced_chi.hpp"

namespace quasi::gw {

/// χ of several groups of empty bands at all q, on all devices.
class GroupedScreening::Sums {
 public:
  Sums(GroupedScreening& of, std::vector<Group>& groups)
      : of_(of), groups_(groups), sums_(groups.size()), results_(groups.size()) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      results_[g].resize(of.empty_.size());
      for (const DielectricMatrix& at : of.empty_)
        sums_[g].emplace_back(of.field_, at, groups[g].options, of.profile_);
      for (const Polarizability& sum : sums_[g]) total_ += sum.portions();
    }
  }

  void calculate() {
    take_kept();
    if (of_.options_.column_slices > 0)
      sum_in_slices();
    else if (static_cast<int>(of_.empty_.size()) >= team().size())
      sum_by_points();
    else
      for (std::size_t iq = 0; iq < of_.empty_.size(); ++iq) sum_by_portions(iq);
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (auto& chi : results_[g]) groups_[g].chi.push_back(std::move(*chi));
  }

 private:
  /// Some portions of one group, as one task of a device.
  struct Task {
    std::size_t group = 0;
    ChiItem item;
  };
  using SumsOfDevices = std::map<std::pair<const GwKernels*, std::size_t>, CheckpointedSums>;

  DeviceTeam& team() const { return of_.context_.team; }
  Checkpoint& checkpoint() const { return of_.context_.checkpoint; }
  std::string name_of(std::size_t group, std::size_t iq) const {
    return of_.name_of(groups_[group].of, iq);
  }
  std::string prefix_of(std::size_t group, std::size_t iq) const {
    return name_of(group, iq) + "/packed-portions/";
  }
  void report(std::int64_t portions) {
    of_.context_.progress.report("polarizability", done_ += portions, total_);
  }

  /// Takes the sums that the checkpoint of rank 0 holds.
  void take_kept() {
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (std::size_t iq = 0; iq < of_.empty_.size(); ++iq) {
        const Piece kept = kept_pieces(team().ranks(), checkpoint(), {name_of(g, iq)})[0];
        if (kept.data == nullptr) continue;
        results_[g][iq].emplace(sums_[g][iq].shape(), kept);
        report(sums_[g][iq].portions());
      }
  }
  void keep(std::size_t group, std::size_t iq) {
    StepClock clock(of_.profile_);
    if (checkpoint().keeps())
      checkpoint().replace(prefix_of(group, iq), name_of(group, iq), results_[group][iq]->piece());
    clock.step("checkpoint");
  }

  ChiNode node_of(std::size_t group, std::size_t iq, const ChiItem& item, GwKernels& kernels) {
    const Polarizability& sum = sums_[group][iq];
    ChiNode node{item.begin, item.count,
                 item.kept.data != nullptr
                     ? sum.restored(item.kept, kernels)
                     : sum.portion(item.begin, kernels, of_.context_.progress)};
    report(item.count);
    return node;
  }
  /// Sums all portions of a group at one q on one device.
  void sum_alone(std::size_t group, std::size_t iq, GwKernels& kernels) {
    std::vector<ChiNode> nodes;
    for (std::int64_t index = 0; index < sums_[group][iq].portions(); ++index)
      push_node(nodes, node_of(group, iq, {index, 1, {}}, kernels));
    auto chi = closed(std::move(nodes));
    sums_[group][iq].release();
    results_[group][iq].emplace(packed_of(std::move(chi)));
  }
  /// Packs a sum. One device at a time passes through values that are not packed, because they take
  /// much of the host's memory.
  PackedChi packed_of(std::unique_ptr<PartialChi> chi) {
    if (dynamic_cast<const PackedSum*>(chi.get()) != nullptr) return packed(std::move(chi));
    if (auto triangle = chi->packed_triangle()) return {chi->shape(), std::move(*triangle)};
    const std::lock_guard lock(packing_);
    return packed(std::move(chi));
  }
  /// Sends a sum from the rank that has calculated it to all others.
  void exchange(std::size_t group, std::size_t iq, int owner) {
    Ranks& ranks = team().ranks();
    if (ranks.size() == 1) return;
    std::optional<PackedChi>& chi = results_[group][iq];
    std::vector<double> values;
    if (ranks.rank() == owner)
      values.assign(chi->piece().data, chi->piece().data + chi->piece().count);
    ranks.broadcast(values, owner);
    if (ranks.rank() != owner)
      chi.emplace(sums_[group][iq].shape(),
                  piece_of(std::make_shared<const std::vector<double>>(std::move(values))));
  }

  /// Sums χ of each group of pairs at each q, in slices on all devices.
  void sum_in_slices() {
    for (std::size_t iq = 0; iq < of_.empty_.size(); ++iq)
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        if (results_[g][iq]) continue;
        sums_[g][iq].share_dipoles(team());
        StepClock wall(of_.profile_);
        auto chi = sliced_chi({.chi = sums_[g][iq],
                               .options = groups_[g].options,
                               .prefix = prefix_of(g, iq) + "slice-",
                               .report = [this](std::int64_t portions) { report(portions); }},
                              of_.context_);
        wall.step("wall_of_portions");
        sums_[g][iq].release();
        results_[g][iq].emplace(packed(std::move(chi)));
        keep(g, iq);
      }
  }

  /// Gives whole q-points to the devices.
  void sum_by_points() {
    std::vector<std::pair<std::size_t, std::size_t>> left;  // (group, q)
    for (std::size_t iq = 0; iq < of_.empty_.size(); ++iq)
      for (std::size_t g = 0; g < groups_.size(); ++g)
        if (!results_[g][iq]) left.emplace_back(g, iq);
    const auto count = static_cast<std::int64_t>(left.size());
    team().run(count, [&](std::int64_t task, GwKernels& kernels) {
      const auto& [group, iq] = left[static_cast<std::size_t>(task)];
      sum_alone(group, iq, kernels);
      keep(group, iq);
    });
    for (std::int64_t task = 0; task < count; ++task) {
      const auto& [group, iq] = left[static_cast<std::size_t>(task)];
      exchange(group, iq, team().owner(task, count));
    }
  }

  std::vector<Task> tasks_at(std::size_t iq) {
    std::vector<Task> tasks;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (results_[g][iq]) continue;
      sums_[g][iq].share_dipoles(team());
      if (!groups_[g].of.by_portions) {
        tasks.push_back({g, {0, sums_[g][iq].portions(), {}}});
        continue;
      }
      for (ChiItem& item :
           chi_items(prefix_of(g, iq), sums_[g][iq].portions(), team().ranks(), checkpoint()))
        tasks.push_back({g, std::move(item)});
    }
    return tasks;
  }
  /// Gives portions of one q, and whole groups that are not cut into portions, to the devices.
  void sum_by_portions(std::size_t iq) {
    const std::vector<Task> tasks = tasks_at(iq);
    SumsOfDevices of_device;
    for (const GwKernels* member : team().members())
      for (std::size_t g = 0; g < groups_.size(); ++g)
        of_device.try_emplace({member, g}, prefix_of(g, iq), checkpoint());
    const auto count = static_cast<std::int64_t>(tasks.size());
    StepClock wall(of_.profile_);
    team().run(count, [&](std::int64_t index, GwKernels& kernels) {
      const auto& [group, item] = tasks[static_cast<std::size_t>(index)];
      if (groups_[group].of.by_portions)
        of_device.at({&kernels, group})
            .push(node_of(group, iq, item, kernels), item.kept.data != nullptr);
      else
        sum_alone(group, iq, kernels);
    });
    wall.step("wall_of_portions");
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (is_task(tasks, g) && groups_[g].of.by_portions) join(g, iq, of_device);
    for (std::int64_t task = 0; task < count; ++task)
      if (const std::size_t g = tasks[static_cast<std::size_t>(task)].group;
          !groups_[g].of.by_portions)
        exchange(g, iq, team().owner(task, count));
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (is_task(tasks, g)) keep(g, iq);
  }
  static bool is_task(const std::vector<Task>& tasks, std::size_t group) {
    for (const Task& task : tasks)
      if (task.group == group) return true;
    return false;
  }
  /// Adds the portions of a group from all devices.
  void join(std::size_t group, std::size_t iq, SumsOfDevices& of_device) {
    StepClock clock(of_.profile_);
    std::vector<ChiNode> nodes;
    for (const GwKernels* member : team().members())
      for (ChiNode& node : of_device.at({member, group}).take()) push_node(nodes, std::move(node));
    std::unique_ptr<PartialChi> chi;
    if (team().ranks().size() > 1) {
      const ChiShape shape = sums_[group][iq].shape();
      auto values = sum_over_ranks(team().ranks(), nodes, shape);
      nodes.clear();
      chi = std::make_unique<HostChi>(shape, std::move(values));
    } else {
      chi = closed(std::move(nodes));
    }
    sums_[group][iq].release();
    results_[group][iq].emplace(packed(std::move(chi)));
    clock.step("sum");
  }

  GroupedScreening& of_;
  std::vector<Group>& groups_;
  std::vector<std::vector<Polarizability>> sums_;               ///< [group][q]
  std::vector<std::vector<std::optional<PackedChi>>> results_;  ///< [group][q]
  std::int64_t total_ = 0;
  std::atomic<std::int64_t> done_{0};
  std::mutex packing_;
};

GroupedScreening::GroupedScreening(const MeanField& field, const EpsilonOptions& options,
                                   const StepContext& context, EpsilonProfile* profile)
    : field_(field),
      options_(options),
      context_(context),
      profile_(profile),
      inversion_(field_, options_, context.coulomb) {
  for (const Vec3& q : screening_points(field)) empty_.push_back(inversion_.empty_matrix(q));
}

std::string GroupedScreening::name_of(const EmptyBands& group, std::size_t iq) const {
  return "chi-of-" + group.name + "/" + std::to_string(iq);
}

void GroupedScreening::add(const std::vector<EmptyBands>& groups) {
  std::vector<Group> added;
  for (const EmptyBands& of : groups) {
    Group group{.of = of, .options = options_, .chi = {}};
    group.options.first_empty_band = static_cast<int>(of.bands.begin);
    group.options.bands = static_cast<int>(of.bands.end);
    if (!of.by_portions) group.options.portions = 1;
    added.push_back(std::move(group));
  }
  Sums(*this, added).calculate();
  for (Group& group : added) groups_.push_back(std::move(group));
}

GroupedScreening::WeightedGroups GroupedScreening::groups_at(const std::vector<double>& weights,
                                                             std::size_t iq) const {
  WeightedGroups groups;
  for (std::size_t g = 0; g < weights.size(); ++g) {
    if (weights[g] == 0.0) continue;
    groups.list.push_back(&groups_[g].chi[iq]);
    groups.factors.push_back(weights[g]);
  }
  return groups;
}

std::unique_ptr<PartialChi> GroupedScreening::weighted_chi(const std::vector<double>& weights,
                                                           std::size_t iq,
                                                           GwKernels& kernels) const {
  const auto [list, factors] = groups_at(weights, iq);
  const Polarizability whole(field_, empty_[iq], options_);
  if (whole.is_whole())
    if (auto chi = weighted_triangle(list, factors, kernels.polarizability())) return chi;
  const UnsetVector<Cplx> values = weighted_sum(list, factors);
  if (whole.is_whole()) return kernels.polarizability().load(whole.shape(), values.data());
  return std::make_unique<HostChi>(whole.shape(), whole.complete({values.begin(), values.end()}));
}

DielectricMatrix GroupedScreening::dielectric_matrix_in_slices(const std::vector<double>& weights,
                                                               std::size_t iq) const {
  DielectricMatrix matrix = empty_[iq];
  StepClock clock(profile_);
  const auto [list, factors] = groups_at(weights, iq);
  const Polarizability whole(field_, empty_[iq], options_);
  std::unique_ptr<PartialChi> chi = weighted_triangle(list, factors);
  if (chi == nullptr || !whole.is_whole()) {
    const UnsetVector<Cplx> values = weighted_sum(list, factors);
    std::vector<Cplx> sum(values.begin(), values.end());
    if (!whole.is_whole()) sum = whole.complete(std::move(sum));
    chi = std::make_unique<HostChi>(whole.shape(), std::move(sum));
  }
  clock.step("weighted_sum");
  inversion_.invert_in_slices(std::move(chi), context_.team, matrix);
  clock.step("invert");
  return matrix;
}

DielectricMatrix GroupedScreening::dielectric_matrix(const std::vector<double>& weights,
                                                     std::size_t iq, GwKernels& kernels) const {
  DielectricMatrix matrix = empty_[iq];
  StepClock clock(profile_);
  const std::unique_ptr<PartialChi> chi = weighted_chi(weights, iq, kernels);
  clock.step("weighted_sum");
  inversion_.invert(*chi, kernels, matrix);
  clock.step("invert");
  return matrix;
}

std::unique_ptr<const DielectricInverse> GroupedScreening::inverse(
    const std::vector<double>& weights, std::size_t iq, GwKernels& kernels) const {
  StepClock clock(profile_);
  std::unique_ptr<PartialChi> chi = weighted_chi(weights, iq, kernels);
  clock.step("weighted_sum");
  auto inverse = inversion_.invert_definite(std::move(chi), kernels, empty_[iq]);
  clock.step("invert");
  return inverse;
}

std::vector<DielectricMatrix> GroupedScreening::dielectric_matrices(
    const std::vector<double>& weights) {
  std::vector<DielectricMatrix> matrices = empty_;
  if (options_.column_slices > 0) {
    for (std::size_t iq = 0; iq < matrices.size(); ++iq)
      matrices[iq] = dielectric_matrix_in_slices(weights, iq);
    return matrices;
  }
  context_.team.run_here(static_cast<std::int64_t>(matrices.size()),
                         [&](std::int64_t iq, GwKernels& kernels) {
                           const auto at = static_cast<std::size_t>(iq);
                           matrices[at] = dielectric_matrix(weights, at, kernels);
                         });
  return matrices;
}

}  // namespace quasi::gw
