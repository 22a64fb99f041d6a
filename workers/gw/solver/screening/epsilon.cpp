#include "workers/gw/solver/screening/epsilon.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/ordered_sum.hpp"
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

/// `m` with q → 0 as χ has it: v once for each plane wave that stands for G = 0.
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

/// ε⁻¹ in the direction of q₀, and every direction beside it, out of a matrix that holds G = 0
/// three times.
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

/// Calls visit(values, count) for the arrays of a subspace, in one order.
template <typename Reduced, typename Visit>
void for_each_array(Reduced& reduced, const Visit& visit) {
  visit(reduced.basis.data(), reduced.basis.size());
  for (auto& inner : reduced.inner) visit(inner.data(), inner.size());
  visit(reduced.share.data(), reduced.share.size());
  visit(reduced.rest.data(), reduced.rest.size());
}

/// What stands before the arrays of a subspace: sizes, and what the summary tells of it.
std::vector<Cplx> edges_of(const DielectricMatrix& m) {
  const ReducedFrequencies& r = m.reduced;
  if (!r.used()) return {};
  return {{static_cast<double>(r.n), static_cast<double>(r.n_b)},
          {static_cast<double>(m.subspace_vectors), m.subspace_error},
          {r.direction[0], r.direction[1]},
          {r.direction[2], 0.0}};
}

/// ε⁻¹, the diagonal of ε and what is known of directions in one row; then, where there is one, the
/// subspace.
Piece packed(const DielectricMatrix& m) {
  const std::size_t n = m.inverse[0].size(), n_f = m.inverse.size();
  const std::size_t of_wave = m.long_wave.empty() ? 0 : 9 + 6 * m.epsilon_diagonal.size();
  const std::vector<Cplx> edges = edges_of(m);
  std::size_t count =
      n_f * n + m.epsilon_diagonal.size() + m.long_wave.size() * of_wave + edges.size();
  if (m.reduced.used())
    for_each_array(m.reduced, [&](const Cplx*, std::size_t more) { count += more; });
  std::shared_ptr<double[]> values(
      new double[2 * count]);  // not set to 0 first: the copies are its first touch
  auto* to = reinterpret_cast<Cplx*>(values.get());
  for (std::size_t f = 0; f < n_f; ++f) {
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < n; ++i) to[f * n + i] = m.inverse[f][i];
  }
  to = std::copy(m.epsilon_diagonal.begin(), m.epsilon_diagonal.end(), to + n_f * n);
  for (const LongWaveLimit& wave : m.long_wave) {
    for (const auto& row : wave.epsilon) to = std::copy(row.begin(), row.end(), to);
    for (const auto* wings : {&wave.left, &wave.right})
      for (const auto& wing : *wings) to = std::copy(wing.begin(), wing.end(), to);
  }
  to = std::copy(edges.begin(), edges.end(), to);
  if (m.reduced.used())
    for_each_array(m.reduced, [&](const Cplx* from, std::size_t more) {
      to = std::copy(from, from + more, to);
    });
  return {values, values.get(), 2 * count};
}

/// @param with_waves  directions of q → 0 are known;  with_subspace  the frequencies other than 0
/// are in one
void unpack(const Piece& piece, bool with_waves, bool with_subspace, DielectricMatrix& m) {
  const auto n = static_cast<std::size_t>(m.size()), n_f = m.frequencies_ry.size(),
             n_whole = with_subspace ? 1 : n_f;
  const auto* values = reinterpret_cast<const Cplx*>(piece.data);
  for (std::size_t f = 0; f < n_whole; ++f)
    m.inverse.emplace_back(values + f * n * n, values + (f + 1) * n * n);
  values += n_whole * n * n;
  m.epsilon_diagonal.assign(values, values + n);
  values += n;
  for (std::size_t f = 0; with_waves && f < n_f; ++f) {
    LongWaveLimit& wave = m.long_wave.emplace_back();
    for (auto& row : wave.epsilon)
      for (Cplx& value : row) value = *values++;
    for (auto* wings : {&wave.left, &wave.right})
      for (auto& wing : *wings) {
        wing.assign(values, values + n);
        values += n;
      }
  }
  if (!with_subspace) return;
  ReducedFrequencies& r = m.reduced;
  r.n = static_cast<std::int64_t>(values[0].real());
  r.n_b = static_cast<std::int64_t>(values[0].imag());
  m.subspace_vectors = static_cast<int>(values[1].real());
  m.subspace_error = values[1].imag();
  r.direction = {values[2].real(), values[2].imag(), values[3].real()};
  values += 4;
  r.basis.resize(static_cast<std::size_t>(r.n * r.n_b));
  r.inner.assign(n_f, std::vector<Cplx>(static_cast<std::size_t>(r.n_b * r.n_b)));
  r.share.resize(n_f);
  r.rest.resize(static_cast<std::size_t>(r.n * r.n));
  for_each_array(r, [&](Cplx* to, std::size_t count) {
    std::copy(values, values + count, to);
    values += count;
  });
}

/// ε⁻¹ of one q in two sweeps: χ(0) in full, then the other frequencies between its leading
/// eigenvectors.
/// @param chi_corner  of the first n_heads plane waves
void invert_in_subspace(DielectricMatrix& m, Polarizability& sum, const EpsilonOptions& options,
                        std::int64_t n_heads, std::vector<Cplx>& chi_corner, GwKernels& kernels,
                        Progress& progress) {
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
  std::vector<Cplx> chi;
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
}

/// The portions of one q, or sums of them that a checkpoint has kept: what devices work through in
/// order.
struct Item {
  std::int64_t begin = 0, count = 1;
  Piece kept;  ///< no data: to be calculated
};

std::string name_of(const std::string& prefix, std::int64_t begin, std::int64_t count) {
  return prefix + std::to_string(begin) + "+" + std::to_string(count);
}

/// Items of a q, in order. Together.
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

/// What one device has added up of a q, laid down in the checkpoint at every turn.
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

}  // namespace

std::vector<DielectricMatrix> dielectric_matrices(const MeanField& field,
                                                  const std::vector<Vec3>& points,
                                                  const EpsilonOptions& options,
                                                  const CoulombInteraction& coulomb,
                                                  DeviceTeam& team, Checkpoint& checkpoint,
                                                  Progress& progress, EpsilonProfile* profile) {
  std::vector<DielectricMatrix> matrices;
  std::vector<Polarizability> sums;
  matrices.reserve(points.size());  // `sums` refer to them
  std::int64_t total = 0;
  for (const Vec3& q : points) {
    matrices.push_back(empty_matrix(field, q, options, coulomb));
    sums.emplace_back(field, matrices.back(), options, profile);
    total += sums.back().portions();
  }
  Ranks& ranks = team.ranks();
  std::atomic<std::int64_t> done{0};
  const auto prefix_of = [](std::size_t iq) { return "chi/" + std::to_string(iq) + "/"; };
  const auto add_item = [&](std::size_t iq, const Item& item, GwKernels& kernels, KeptSums& into) {
    const bool kept = item.kept.data != nullptr;
    into.push({item.begin, item.count,
               kept ? sums[iq].restored(reinterpret_cast<const Cplx*>(item.kept.data), kernels)
                    : sums[iq].portion(item.begin, kernels, progress)},
              kept);
    progress.report("polarizability", done += item.count, total);
  };
  const bool subspace = options.subspace.wanted() && options.frequencies_ry.size() > 1;
  const auto name_of_finished = [&](std::size_t iq) {
    return (subspace ? "epsilon-in-subspace/" : "epsilon/") + std::to_string(iq);
  };
  const auto keep = [&](std::size_t iq) {
    StepClock clock(profile);
    if (checkpoint.keeps())
      checkpoint.replace(prefix_of(iq), name_of_finished(iq), packed(matrices[iq]));
    clock.step("checkpoint");
  };
  const auto finish = [&](std::size_t iq, std::unique_ptr<PartialChi> chi, GwKernels& kernels) {
    StepClock clock(profile);
    sums[iq].release();
    if (!sums[iq].is_whole()) {
      const ChiShape shape = chi->shape();
      std::vector<Cplx> values(static_cast<std::size_t>(shape.size()));
      chi->read(values.data());
      chi = std::make_unique<HostChi>(shape, sums[iq].complete(std::move(values)));
    }
    clock.step("symmetrise");
    DielectricMatrix& m = matrices[iq];
    const std::int64_t n_heads = head_count(field, m.at_gamma);
    if (n_heads == 1) {
      invert(m, *chi, options, kernels);
    } else {
      DielectricMatrix wide = widened(m, n_heads);
      invert(wide, *chi, options, kernels);
      take_directions(field, coulomb, std::move(wide), chi->corner(n_heads), m);
    }
    clock.step("invert");
    keep(iq);
  };
  const auto unpack_into = [&](const Piece& piece, DielectricMatrix& m) {
    unpack(piece, head_count(field, m.at_gamma) > 1 && coulomb.averages(), subspace, m);
  };
  const auto take_finished = [&](std::size_t iq) {
    const auto kept = checkpoint.find(name_of_finished(iq));
    if (!kept) return false;
    unpack_into(*kept, matrices[iq]);
    progress.report("polarizability", done += sums[iq].portions(), total);
    return true;
  };
  // ε⁻¹ of a q from the rank that has made it.
  const auto exchange = [&](std::size_t iq, int owner) {
    DielectricMatrix& m = matrices[iq];
    std::vector<double> values;
    if (ranks.rank() == owner) {
      const Piece whole = packed(m);
      values.assign(whole.data, whole.data + whole.count);
    }
    ranks.broadcast(values, owner);
    if (ranks.rank() == owner || !m.inverse.empty()) return;
    unpack_into(piece_of(std::make_shared<const std::vector<double>>(std::move(values))), m);
    keep(iq);
    progress.report("polarizability", done += sums[iq].portions(), total);
  };
  // What rank 0's checkpoint holds is known to all, and what other ranks finish is known to rank 0
  // after every round.
  if (ranks.size() > 1)
    for (std::size_t iq = 0; iq < points.size(); ++iq)
      if (const Piece kept = kept_pieces(ranks, checkpoint, {name_of_finished(iq)})[0];
          kept.data != nullptr && !ranks.leads())
        unpack_into(kept, matrices[iq]);
  if (subspace || static_cast<int>(points.size()) >= team.size()) {
    const auto n_points = static_cast<std::int64_t>(points.size());
    const std::int64_t step = ranks.size() > 1 ? team.size() : n_points;
    for (std::int64_t begin = 0; begin < n_points; begin += step) {
      const std::int64_t count = std::min(step, n_points - begin);
      team.run(count, [&](std::int64_t task, GwKernels& kernels) {
        const auto iq = static_cast<std::size_t>(begin + task);
        if (!matrices[iq].inverse.empty() || take_finished(iq)) return;
        if (subspace) {
          const std::int64_t n_heads = head_count(field, matrices[iq].at_gamma);
          std::vector<Cplx> corner;
          DielectricMatrix wide = widened(matrices[iq], n_heads);
          invert_in_subspace(wide, sums[iq], options, n_heads, corner, kernels, progress);
          sums[iq].release();
          if (n_heads == 1)
            matrices[iq] = std::move(wide);
          else
            take_directions(field, coulomb, std::move(wide), corner, matrices[iq]);
          keep(iq);
          progress.report("polarizability", done += sums[iq].portions(), total);
          return;
        }
        KeptSums sum(prefix_of(iq), checkpoint);
        for (const Item& item :
             items_of(prefix_of(iq), sums[iq].portions(), one_rank(), checkpoint))
          add_item(iq, item, kernels, sum);
        finish(iq, closed(sum.take()), kernels);
      });
      for (std::int64_t task = 0; task < count && ranks.size() > 1; ++task)
        exchange(static_cast<std::size_t>(begin + task), team.owner(task, count));
    }
    return matrices;
  }
  for (std::size_t iq = 0; iq < points.size(); ++iq) {
    if (!matrices[iq].inverse.empty() || take_finished(iq)) continue;
    const std::vector<Item> items = items_of(prefix_of(iq), sums[iq].portions(), ranks, checkpoint);
    const auto n_items = static_cast<std::int64_t>(items.size());
    std::map<const GwKernels*, KeptSums> of_device;
    for (GwKernels* member : team.members())
      of_device.try_emplace(member, prefix_of(iq), checkpoint);
    sums[iq].share_dipoles(team);
    StepClock wall(profile);
    team.run(n_items, [&](std::int64_t index, GwKernels& kernels) {
      add_item(iq, items[static_cast<std::size_t>(index)], kernels, of_device.at(&kernels));
    });
    wall.step("wall_of_portions");
    StepClock clock(profile);
    std::vector<ChiNode> nodes;
    for (GwKernels* member : team.members())
      for (ChiNode& node : of_device.at(member).take()) push_node(nodes, std::move(node));
    if (ranks.size() > 1) {
      std::int64_t own = 0;
      for (const ChiNode& node : nodes) own += node.count;
      progress.report("polarizability", done += sums[iq].portions() - own, total);
      const ChiShape shape = sums[iq].shape();
      auto sum = sum_over_ranks(ranks, nodes, shape);
      nodes.clear();
      clock.step("sum");
      finish(iq, std::make_unique<HostChi>(shape, std::move(sum)), team.first());
      continue;
    }
    auto sum = closed(std::move(nodes));
    clock.step("sum");
    finish(iq, std::move(sum), team.first());
  }
  return matrices;
}

DielectricMatrix dielectric_matrix(const MeanField& field, const Vec3& q,
                                   const EpsilonOptions& options, const CoulombInteraction& coulomb,
                                   GwKernels& kernels, Progress& progress) {
  DeviceTeam alone(kernels);
  Checkpoint none;
  return std::move(dielectric_matrices(field, {q}, options, coulomb, alone, none, progress)[0]);
}

}  // namespace quasi::gw
