#include "workers/gw/solver/screening/epsilon.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/ordered_sum.hpp"
#include "workers/gw/solver/screening/epsilon_pieces.hpp"
#include "workers/gw/solver/screening/polarizability.hpp"
#include "workers/gw/solver/screening/static_subspace.hpp"

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

DielectricMatrix empty_matrix(const MeanField& field, const Vec3& q, const EpsilonOptions& options,
                              const CoulombInteraction& coulomb) {
  DielectricMatrix matrix;
  matrix.q = q;
  matrix.at_gamma = is_small(field, q);
  if (matrix.at_gamma && !field.shifted && !field.by_velocity)
    throw InvalidInput(
        "the point q → 0 needs wavefunctions on a slightly shifted grid (meanfield.wfnq), or the "
        "Hamiltonian "
        "(meanfield.vsc and meanfield.vkb)");
  matrix.sphere =
      make_g_sphere(field.crystal().bdot, matrix.at_gamma ? Vec3{} : q, options.epsilon_cutoff_ry);
  matrix.coulomb.resize(matrix.sphere.g.size());
  // k·p is the limit: beside the head, whose direction and length q₀ gives, v is that of G, and
  // nothing of q₀ is left to break the crystal's symmetry.
  const bool limit = matrix.at_gamma && field.by_velocity;
#pragma omp parallel for schedule(dynamic, 8)
  for (std::size_t g = 0; g < matrix.coulomb.size(); ++g)
    matrix.coulomb[g] = coulomb.plain(limit && g > 0 ? Vec3{} : q, matrix.sphere.g[g]);
  matrix.frequencies_ry = options.frequencies_ry;
  matrix.n_real = options.n_real;
  return matrix;
}

/// Matrix in which several plane waves stand for G = 0, as χ has it for q → 0: v is repeated for
/// each of them.
DielectricMatrix widened(const DielectricMatrix& m, std::int64_t n_heads) {
  DielectricMatrix wide{.q = m.q,
                        .at_gamma = m.at_gamma,
                        .sphere = m.sphere,
                        .coulomb = m.coulomb,
                        .inverse = {},
                        .frequencies_ry = m.frequencies_ry,
                        .n_real = m.n_real,
                        .epsilon_diagonal = {},
                        .long_wave = {}};
  wide.coulomb = widened_coulomb(std::move(wide.coulomb), n_heads);
  return wide;
}

/// Folds a matrix that holds G = 0 three times into ε⁻¹ in the direction of q₀ and the limits of
/// all directions (docs/theory/gw.md 4.1).
void take_directions(const MeanField& field, const CoulombInteraction& coulomb,
                     DielectricMatrix wide, const std::vector<Cplx>& chi_corner,
                     DielectricMatrix& m) {
  const Vec3 direction = unit_direction(field.crystal(), m.q);
  for (UnsetVector<Cplx>& inverse : wide.inverse) {
    LongWaveLimit wave;
    fold_directions(inverse, m.coulomb, direction, m.inverse.emplace_back(),
                    coulomb.averages() ? &wave : nullptr);
    inverse = {};
    if (coulomb.averages()) m.long_wave.push_back(std::move(wave));
  }
  if (wide.reduced.used()) {
    for (std::size_t f = 1; f < wide.reduced.inner.size() && coulomb.averages(); ++f) {
      UnsetVector<Cplx> not_kept;
      fold_directions(expanded_inverse(wide.reduced, f, wide.coulomb), m.coulomb, direction,
                      not_kept, &m.long_wave.emplace_back());
    }
    m.reduced = std::move(wide.reduced);
    m.reduced.direction = direction;
  }
  double head = 0.0;  // q̂ᵀ χ q̂ from the triangle that is there
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = i; j < 3; ++j)
      head += (i == j ? 1.0 : 2.0) * direction[i] * direction[j] * chi_corner[3 * i + j].real();
  m.epsilon_diagonal.assign(wide.epsilon_diagonal.begin() + 2, wide.epsilon_diagonal.end());
  m.epsilon_diagonal[0] = 1.0 - m.coulomb[0] * head;
  m.subspace_vectors = wide.subspace_vectors - 2;  // G = 0 counts once
  m.subspace_error = wide.subspace_error;
}

/// ε⁻¹ of every frequency of `chi`, and the diagonal of ε(0).
void invert(DielectricMatrix& matrix, const PartialChi& chi, const EpsilonOptions& options,
            GwKernels& kernels) {
  const auto n = static_cast<std::int64_t>(matrix.coulomb.size());
  // An interaction cut to a box or wire may be negative at some k: ε is then inverted as it is, not
  // as ε̃.
  const bool positive = *std::min_element(matrix.coulomb.begin(), matrix.coulomb.end()) > 0.0;
  const std::vector<Cplx> diagonal = chi.diagonal();
  for (std::size_t g = 0; g < diagonal.size(); ++g)
    matrix.epsilon_diagonal.push_back(1.0 - matrix.coulomb[g] * diagonal[g]);
  for (std::int64_t f = 0; f <= chi.shape().n_frequencies; ++f) {
    auto& inverse = matrix.inverse.emplace_back(static_cast<std::size_t>(n * n));
    kernels.polarizability().invert_dielectric(
        chi, f,
        {.coulomb = view<const double>(matrix.coulomb, n),
         .positive = positive,
         .definite = positive && options.frequencies_ry[static_cast<std::size_t>(f)].real() == 0.0},
        view<Cplx>(inverse, n, n));
  }
}

/// ε⁻¹ of one q in two sweeps (docs/theory/gw.md 4.2): χ(0) in full, then the other frequencies
/// between its leading eigenvectors.
/// @return χ(0) between the first n_heads plane waves, [n_heads][n_heads]
std::vector<Cplx> invert_in_subspace(DielectricMatrix& m, Polarizability& sum,
                                     const EpsilonOptions& options, std::int64_t n_heads,
                                     GwKernels& kernels, Progress& progress) {
  if (*std::min_element(m.coulomb.begin(), m.coulomb.end()) <= 0.0)
    throw InvalidInput(
        "a static subspace needs a Coulomb interaction that is positive everywhere; leave "
        "epsilon.subspace_tolerance out with this truncation");
  const auto total = [&] {
    std::vector<ChiNode> nodes;
    for (std::int64_t index = 0; index < sum.portions(); ++index)
      push_node(nodes, {index, 1, sum.portion(index, kernels, progress)});
    return closed(std::move(nodes));
  };
  const auto values_of = [](const PartialChi& chi) {
    std::vector<Cplx> values(static_cast<std::size_t>(chi.shape().size()));
    chi.read(values.data());
    return values;
  };
  std::vector<Cplx> chi, chi_corner;
  {
    const auto whole = total();
    invert(m, *whole, options, kernels);
    chi = values_of(*whole);
    chi_corner = whole->corner(n_heads);
  }
  const std::size_t n = m.coulomb.size();
  fill_lower_triangle(view<Cplx>(chi, n, n));
  const std::vector<Cplx> basis =
      subspace_of(m, chi, options.subspace, static_cast<std::size_t>(n_heads), kernels);
  const std::size_t n_b = basis.size() / n;
  std::vector<Cplx> weighted = basis;
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t b = 0; b < n_b; ++b) weighted[g * n_b + b] *= std::sqrt(m.coulomb[g]);
  sum.project_on(std::move(weighted));
  add_subspace_frequencies(m, chi, basis, values_of(*total()), options, kernels);
  return chi_corner;
}

/// One portion of a q, or a sum of portions that a checkpoint has kept. Devices work through the
/// items in order.
struct Item {
  std::int64_t begin = 0, count = 1;
  Piece kept;  ///< without data: the portion is calculated
};

std::string name_of(const std::string& prefix, std::int64_t begin, std::int64_t count) {
  return prefix + std::to_string(begin) + "+" + std::to_string(count);
}

/// Items of a q, in order. Every rank calls it at the same time.
std::vector<Item> items_of(const std::string& prefix, std::int64_t n_portions, Ranks& ranks,
                           const Checkpoint& checkpoint) {
  std::vector<double> spans;
  for (const std::string& name : checkpoint.names(prefix)) {
    long begin = 0, count = 0;
    if (std::sscanf(name.c_str() + prefix.size(), "%ld+%ld", &begin, &count) == 2)
      spans.insert(spans.end(), {static_cast<double>(begin), static_cast<double>(count)});
  }
  if (ranks.size() > 1) ranks.broadcast(spans, 0);
  std::vector<Item> items;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < spans.size(); i += 2) {
    items.push_back(
        {static_cast<std::int64_t>(spans[i]), static_cast<std::int64_t>(spans[i + 1]), {}});
    names.push_back(name_of(prefix, items.back().begin, items.back().count));
  }
  const std::vector<Piece> kept = kept_pieces(ranks, checkpoint, names);
  std::vector<char> there(static_cast<std::size_t>(n_portions), 0);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].kept = kept[i];
    std::fill_n(there.begin() + items[i].begin, items[i].count, char{1});
  }
  for (std::int64_t index = 0; index < n_portions; ++index)
    if (there[static_cast<std::size_t>(index)] == 0) items.push_back({index, 1, {}});
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.begin < b.begin; });
  return items;
}

/// Sums of one device for one q, stored in the checkpoint at every turn of it.
class KeptSums {
 public:
  KeptSums(std::string prefix, Checkpoint& checkpoint)
      : prefix_(std::move(prefix)), checkpoint_(checkpoint) {}
  void push(ChiNode node, bool from_checkpoint) {
    if (from_checkpoint) names_.push_back(name_of(prefix_, node.begin, node.count));
    push_node(nodes_, std::move(node));
    if (from_checkpoint || !checkpoint_.is_turn(turn_)) return;
    std::vector<std::pair<std::string, Piece>> fresh;
    for (const ChiNode& sum : nodes_) {
      std::string name = name_of(prefix_, sum.begin, sum.count);
      if (const auto same = checkpoint_.find(name)) {
        fresh.emplace_back(std::move(name), *same);
        continue;
      }
      auto values =
          std::make_shared<std::vector<Cplx>>(static_cast<std::size_t>(sum.chi->shape().size()));
      sum.chi->read(values->data());
      fresh.emplace_back(std::move(name),
                         piece_of(std::shared_ptr<const std::vector<Cplx>>(std::move(values))));
    }
    std::vector<std::string> now;
    for (const auto& [name, piece] : fresh) now.push_back(name);
    checkpoint_.exchange(names_, std::move(fresh), turn_.draining);
    names_ = std::move(now);
  }
  std::vector<ChiNode> take() { return std::move(nodes_); }

 private:
  std::string prefix_;
  Checkpoint& checkpoint_;
  Checkpoint::Turn turn_;
  std::vector<ChiNode> nodes_;
  std::vector<std::string> names_;  ///< of this device's sums in the checkpoint
};

/// ε⁻¹ of a list of q on all devices.
class DielectricSum {
 public:
  DielectricSum(const MeanField& field, const std::vector<Vec3>& points,
                const EpsilonOptions& options, const StepContext& context, EpsilonProfile* profile)
      : field_(field),
        options_(options),
        context_(context),
        profile_(profile),
        subspace_(options.subspace.wanted() && options.frequencies_ry.size() > 1) {
    matrices_.reserve(points.size());  // `sums_` refer to them
    for (const Vec3& q : points) {
      matrices_.push_back(empty_matrix(field, q, options, context.coulomb));
      sums_.emplace_back(field, matrices_.back(), options, profile);
      total_ += sums_.back().portions();
    }
  }

  std::vector<DielectricMatrix> solve() {
    share_kept();
    if (subspace_ || static_cast<int>(matrices_.size()) >= context_.team.size())
      solve_by_points();
    else
      for (std::size_t iq = 0; iq < matrices_.size(); ++iq)
        if (matrices_[iq].inverse.empty() && !take_finished(iq)) solve_by_portions(iq);
    return std::move(matrices_);
  }

 private:
  Ranks& ranks() const { return context_.team.ranks(); }
  static std::string prefix_of(std::size_t iq) { return "chi/" + std::to_string(iq) + "/"; }
  std::string name_of_finished(std::size_t iq) const {
    return (subspace_ ? "epsilon-in-subspace/" : "epsilon/") + std::to_string(iq);
  }
  void report(std::int64_t portions) {
    context_.progress.report("polarizability", done_ += portions, total_);
  }

  void add_item(std::size_t iq, const Item& item, GwKernels& kernels, KeptSums& into) {
    const bool kept = item.kept.data != nullptr;
    into.push({item.begin, item.count,
               kept ? sums_[iq].restored(reinterpret_cast<const Cplx*>(item.kept.data), kernels)
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
  /// Makes the matrices in the checkpoint of rank 0 known to all ranks.
  void share_kept() {
    if (ranks().size() == 1) return;
    for (std::size_t iq = 0; iq < matrices_.size(); ++iq)
      if (const Piece kept = kept_pieces(ranks(), context_.checkpoint, {name_of_finished(iq)})[0];
          kept.data != nullptr && !ranks().leads())
        unpack_into(kept, matrices_[iq]);
  }
  /// Sends ε⁻¹ of one q from the rank that has made it to all others.
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

  /// Completes χ by symmetry, inverts ε and stores the result.
  void finish(std::size_t iq, std::unique_ptr<PartialChi> chi, GwKernels& kernels) {
    StepClock clock(profile_);
    sums_[iq].release();
    if (!sums_[iq].is_whole()) {
      const ChiShape shape = chi->shape();
      std::vector<Cplx> values(static_cast<std::size_t>(shape.size()));
      chi->read(values.data());
      chi = std::make_unique<HostChi>(shape, sums_[iq].complete(std::move(values)));
    }
    clock.step("symmetrise");
    DielectricMatrix& m = matrices_[iq];
    const std::int64_t n_heads = head_count(field_, m.at_gamma);
    if (n_heads == 1) {
      invert(m, *chi, options_, kernels);
    } else {
      DielectricMatrix wide = widened(m, n_heads);
      invert(wide, *chi, options_, kernels);
      take_directions(field_, context_.coulomb, std::move(wide), chi->corner(n_heads), m);
    }
    clock.step("invert");
    keep(iq);
  }

  void solve_in_subspace(std::size_t iq, GwKernels& kernels) {
    const std::int64_t n_heads = head_count(field_, matrices_[iq].at_gamma);
    DielectricMatrix wide = widened(matrices_[iq], n_heads);
    const std::vector<Cplx> corner =
        invert_in_subspace(wide, sums_[iq], options_, n_heads, kernels, context_.progress);
    sums_[iq].release();
    if (n_heads == 1)
      matrices_[iq] = std::move(wide);
    else
      take_directions(field_, context_.coulomb, std::move(wide), corner, matrices_[iq]);
    keep(iq);
    report(sums_[iq].portions());
  }

  /// Whole q-points on the devices, a round of them at a time where there are several ranks.
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
        KeptSums sum(prefix_of(iq), context_.checkpoint);
        for (const Item& item :
             items_of(prefix_of(iq), sums_[iq].portions(), one_rank(), context_.checkpoint))
          add_item(iq, item, kernels, sum);
        finish(iq, closed(sum.take()), kernels);
      });
      for (std::int64_t task = 0; task < count && ranks().size() > 1; ++task)
        exchange(static_cast<std::size_t>(begin + task), context_.team.owner(task, count));
    }
  }

  /// The portions of one q on all devices.
  void solve_by_portions(std::size_t iq) {
    DeviceTeam& team = context_.team;
    const std::vector<Item> items =
        items_of(prefix_of(iq), sums_[iq].portions(), ranks(), context_.checkpoint);
    std::map<const GwKernels*, KeptSums> of_device;
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
