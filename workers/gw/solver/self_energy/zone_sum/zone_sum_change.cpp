#include "workers/gw/solver/self_energy/zone_sum/zone_sum_change.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "workers/gw/solver/self_energy/sigma_sum.hpp"
#include "workers/gw/solver/self_energy/zone_sum/diagonal_terms.hpp"
#include "workers/gw/solver/self_energy/zone_sum/outer_products.hpp"

namespace quasi::gw {
namespace {

/// Diagonal of the interaction at one irreducible q, Ry Bohr³.
struct DiagonalAtQ {
  std::vector<double> bare, screened;
};

DiagonalAtQ diagonal_at(const MeanField& field, const DielectricMatrix& epsilon,
                        const GSphere& sphere, const CoulombInteraction& coulomb) {
  DiagonalAtQ at{.bare = averaged_coulomb(epsilon, sphere, coulomb), .screened = {}};
  UnsetVector<Cplx> room;
  const UnsetVector<Cplx>& inverse = inverse_of(epsilon, 0, room);
  const auto n = static_cast<std::size_t>(epsilon.size());
  for (std::size_t g = 0; g < at.bare.size(); ++g)
    at.screened.push_back(inverse[g * n + g].real() * at.bare[g]);
  if (!epsilon.at_gamma) return at;
  const Cplx head = epsilon.long_wave.empty() || !coulomb.averages()
                        ? coulomb.head_at_zero(inverse[0], epsilon.q, epsilon.samples_of(0))
                        : average_at_zero(coulomb, with_symmetry_of(field.crystal(),
                                                                    field.transfers().operations(),
                                                                    epsilon.long_wave[0].epsilon))
                              .head;
  at.screened[0] = head.real() * at.bare[0];
  return at;
}

GSphere cut(GSphere sphere, double cutoff_ry) {
  std::size_t n = 0;
  while (n < sphere.g.size() && sphere.kinetic_ry[n] < cutoff_ry) ++n;
  sphere.g.resize(n);
  sphere.kinetic_ry.resize(n);
  return sphere;
}

bool has_other_rule(const CoulombOptions& options) {
  return options.average_file.empty() &&
         (options.truncation == Truncation::kNone || options.truncation == Truncation::kSlab);
}

/// Returns the options with the rule that `coulomb` does not follow.
CoulombOptions with_other_rule(const CoulombInteraction& coulomb) {
  CoulombOptions other = coulomb.options();
  other.wing_rule = WingRule::kShortest;
  other.zone_sum = coulomb.sums_points() ? ZoneSum::kCells : ZoneSum::kPoints;
  return other;
}

/// Change of the diagonal of the interaction at one irreducible q, Ry Bohr³.
struct ChangeAtQ {
  GSphere sphere;
  std::vector<double> screened;  ///< of W
  double hole_ry = 0.0;          ///< ½ Σ_G (ΔW_G − Δv̄_G)
  UnsetVector<Cplx> matrix;      ///< ΔW_GG' beside `screened`, [n_g][n_g]; empty: none
};

/// Adds SX and CH of ΔW_GG' at q = 0 to x[l].
/// @pre `outer` holds the products of `block`
void add_matrix(const MeanField& field, const ChangeAtQ& change, PairBlock& products,
                const BandBlock& block, SelfEnergyAtK& sum, const ChargeTable& charge) {
  std::vector<Cplx> added(sum.x_ry.size());
  subtract_forms(change.matrix, block, products, added);
  UnsetVector<Cplx> negative = change.matrix;
  for (Cplx& value : negative) value = -value;
  const Rotation rotation = field.transfers().rotation_to({});
  add_exact_static_ch(charge, change.sphere,
                      field.transfers().operations()[static_cast<std::size_t>(rotation.operation)],
                      negative, block.weight, added);
  for (std::size_t l = 0; l < added.size(); ++l) sum.x_ry[l] += added[l].real();
}

/// Calculates ΔΣ of every outer state by static COHSEX, eV, in the order of quasiparticles().
/// @param change_at  change at the q of a number
std::vector<double> change_of_sigma_ev(const MeanField& field, std::size_t n_q,
                                       const SigmaOptions& options, GwKernels& kernels,
                                       const std::function<ChangeAtQ(std::size_t)>& change_at) {
  std::vector<SelfEnergyAtK> sums = empty_self_energy(field, options);
  for (std::size_t iq = 0; iq < n_q; ++iq) {
    const ChangeAtQ change = change_at(iq);
    if (change.sphere.g.empty()) continue;
    const auto box = sum_box(field, change.sphere.g);
    for (SelfEnergyAtK& sum : sums) {
      const auto stars = q_points_by_star(
          field, field.waves.k[static_cast<std::size_t>(sum.k_index)], options.reduce_q);
      const auto star = stars.find(static_cast<int>(iq));
      if (star == stars.end()) continue;
      OuterProducts outer(field, {sum.k_index, sum.spin, options.band_min - 1, options.band_max},
                          box, kernels);
      const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)];
      for (const StarMember& member : star->second) {
        const auto rotated =
            outer.load_sphere(member.q, change.sphere, OuterProducts::Phases::kLeftOut);
        BandBlock block = outer.load_inner(member.q, 0, n_v);
        block.weight = member.multiplicity / field.zone_volume_bohr3();
        PairBlock& products = outer.fill(*rotated);
        add_exchange(change.screened, block, products, sum);
        for (double& x : sum.x_ry) x += block.weight * change.hole_ry;
        if (!change.matrix.empty())
          add_matrix(
              field, change, products, block, sum,
              charge_table(field, {sum.k_index, sum.spin, options.band_min - 1, options.band_max},
                           options.screened_cutoff_ry, kernels));
      }
    }
  }
  std::vector<double> change_ev;
  const int first = options.band_min - 1;
  for (const SelfEnergyAtK& sum : sums)
    for (const auto& [begin, end] :
         multiplets(field.waves, sum.spin, sum.k_index, first, options.band_max)) {
      const auto of = sum.x_ry.begin();
      const double total = std::accumulate(of + (begin - first), of + (end - first), 0.0);
      change_ev.insert(change_ev.end(), static_cast<std::size_t>(end - begin),
                       total / (end - begin) * kRydberg_ev);
    }
  return change_ev;
}

/// Returns ε⁻¹ of q → 0 if it has samples of a sub-sampling; else null.
const DielectricMatrix* with_samples(const std::vector<DielectricMatrix>& epsilon) {
  for (const DielectricMatrix& m : epsilon)
    if (m.at_gamma && !m.head_samples.empty()) return &m;
  return nullptr;
}

/// Neighbours of q = 0 along the axes of the grid in the plane of a slab.
struct Neighbours {
  std::vector<double> inverse_square;  ///< 1/|q|² of each irreducible q, Bohr²; 0: no neighbour
  double mean = 0.0;                   ///< of 1/|q|² over all neighbours
  std::int64_t count = 0;
};

/// Returns the square of the shortest vector that differs from q by a vector of the lattice.
double shortest_square(const Crystal& crystal, const Vec3& q) {
  double shortest = std::numeric_limits<double>::max();
  for (int i = -1; i <= 1; ++i)
    for (int j = -1; j <= 1; ++j) {
      Vec3 at = q + to_real({i, j, 0});
      for (int axis = 0; axis < 2; ++axis) at[axis] -= std::round(q[axis]);
      shortest = std::min(shortest, metric_dot(crystal.bdot, at, at));
    }
  return shortest;
}

Neighbours neighbours_of_zero(const MeanField& field, std::size_t n_q) {
  std::vector<double> edges;
  for (int axis = 0; axis < 2; ++axis) {
    const int n = field.waves.k_grid[axis];
    if (n > 1) edges.push_back(field.crystal().bdot[axis][axis] / (1.0 * n * n));
  }
  Neighbours found{.inverse_square = std::vector<double>(n_q)};
  for (const ZonePoint& point : field.transfers().points()) {
    const double square = shortest_square(field.crystal(), point.k);
    if (std::none_of(edges.begin(), edges.end(),
                     [&](double edge) { return std::abs(square - edge) < 1e-6 * edge; }))
      continue;
    found.inverse_square[static_cast<std::size_t>(point.irreducible)] = 1.0 / square;
    found.mean += 1.0 / square;
    ++found.count;
  }
  if (found.count > 0) found.mean /= static_cast<double>(found.count);
  return found;
}

/// W_GG' − v of the plane waves q + G = shortest + (0, 0, G_z), by both G_z, Ry Bohr³.
using ScreeningAcross = std::map<std::pair<int, int>, Cplx>;

ScreeningAcross screening_across(const DielectricMatrix& epsilon, const IVec3& shortest) {
  UnsetVector<Cplx> room;
  const UnsetVector<Cplx>& inverse = inverse_of(epsilon, 0, room);
  const auto n = static_cast<std::size_t>(epsilon.size());
  std::vector<std::pair<std::size_t, int>> list;
  for (std::size_t g = 0; g < n; ++g) {
    const IVec3 rest = epsilon.sphere.g[g] - shortest;
    if (rest[0] == 0 && rest[1] == 0) list.emplace_back(g, rest[2]);
  }
  ScreeningAcross found;
  for (const auto& [g, z] : list)
    for (const auto& [h, other] : list)
      found[{z, other}] = (inverse[g * n + h] - (g == h ? 1.0 : 0.0)) * epsilon.coulomb[h];
  return found;
}

/// Estimates what the sum over the grid leaves out with sub-sampling.
class RemainderOfSum {
 public:
  RemainderOfSum(const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
                 const CoulombInteraction& coulomb)
      : epsilon_(epsilon), near_(neighbours_of_zero(field, epsilon.size())) {
    const DielectricMatrix& zero = *with_samples(epsilon);
    weight_ = coulomb.curvature_weight(head_of(zero, 0), zero.q, zero.samples_of(0));
    const Crystal& crystal = field.crystal();
    half_length_bohr_ = 0.5 * std::sqrt(crystal.adot[2][2]);
    const auto step = [&](int axis) {
      Vec3 q{};
      q[axis] = 1.0 / std::max(1, field.waves.k_grid[axis]);
      return to_cartesian(crystal.bvec, crystal.blat_per_bohr, q);
    };
    const PuncturedPlane plane(step(0), step(1));
    for (int power = 1; power <= 2; ++power)
      excess_[power - 1] =
          plane.weight([&](double p) { return std::exp(-power * p * half_length_bohr_); }) - 1.0;
    for (std::size_t iq = 0; iq < epsilon.size() && across_.empty(); ++iq) {
      if (near_.inverse_square[iq] == 0.0) continue;
      across_ = screening_across(epsilon[iq], epsilon[iq].sphere.g[0]);
      fall_ = std::exp(-half_length_bohr_ / std::sqrt(near_.inverse_square[iq]));
    }
  }

  ChangeAtQ at(std::size_t iq) const {
    const DielectricMatrix& m = epsilon_[iq];
    if (m.at_gamma) return at_zero(m);
    if (near_.inverse_square[iq] == 0.0) return {};
    return {cut_to(m.sphere, 1),
            {weight_ * near_.inverse_square[iq] / static_cast<double>(near_.count)}};
  }

 private:
  static GSphere cut_to(GSphere sphere, std::size_t n) {
    sphere.g.resize(n);
    sphere.kinetic_ry.resize(n);
    return sphere;
  }
  ChangeAtQ at_zero(const DielectricMatrix& m) const {
    ChangeAtQ change{m.sphere, std::vector<double>(m.sphere.g.size())};
    change.screened[0] = -weight_ * near_.mean;
    const std::size_t n = m.sphere.g.size();
    change.matrix.assign(n * n, Cplx{});
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h) {
        const IVec3 &at = m.sphere.g[g], &other = m.sphere.g[h];
        const auto next = across_.find({at[2], other[2]});
        if (at[0] != 0 || at[1] != 0 || other[0] != 0 || other[1] != 0 || g + h == 0 ||
            next == across_.end())
          continue;
        const double s = at[2] % 2 == 0 ? 1.0 : -1.0, t = other[2] % 2 == 0 ? 1.0 : -1.0;
        change.matrix[g * n + h] = next->second / ((1.0 - s * fall_) * (1.0 - t * fall_)) *
                                   (s * t * excess_[1] - (s + t) * excess_[0]);
      }
    return change;
  }

  const std::vector<DielectricMatrix>& epsilon_;
  Neighbours near_;
  double weight_ = 0.0;
  double half_length_bohr_ = 0.0;
  /// Weights of e^{−pz_c} and e^{−2pz_c} at p = 0 beyond 1, their value there.
  double excess_[2] = {};
  ScreeningAcross across_;  ///< of a neighbour of q = 0
  double fall_ = 0.0;       ///< e^{−pz_c} at that neighbour
};

}  // namespace

std::vector<double> zone_sum_change_ev(const MeanField& field,
                                       const std::vector<DielectricMatrix>& epsilon,
                                       const SigmaOptions& options,
                                       const CoulombInteraction& coulomb, GwKernels& kernels) {
  if (!has_other_rule(coulomb.options())) return {};
  if (with_samples(epsilon) != nullptr && coulomb.sums_points())
    return change_of_sigma_ev(field, epsilon.size(), options, kernels,
                              [remainder = RemainderOfSum(field, epsilon, coulomb)](
                                  std::size_t iq) { return remainder.at(iq); });
  const CoulombInteraction other(field.crystal(), field.waves.k_grid, with_other_rule(coulomb));
  if (other.sums_points() == coulomb.sums_points()) return {};
  return change_of_sigma_ev(field, epsilon.size(), options, kernels, [&](std::size_t iq) {
    ChangeAtQ change{.sphere = cut(epsilon[iq].sphere, options.screened_cutoff_ry), .screened = {}};
    const DiagonalAtQ own = diagonal_at(field, epsilon[iq], change.sphere, coulomb),
                      changed = diagonal_at(field, epsilon[iq], change.sphere, other);
    for (std::size_t g = 0; g < change.sphere.g.size(); ++g) {
      change.screened.push_back(changed.screened[g] - own.screened[g]);
      change.hole_ry += 0.5 * (change.screened[g] - (changed.bare[g] - own.bare[g]));
    }
    return change;
  });
}

std::vector<double> subsampling_change_ev(const MeanField& field,
                                          const std::vector<DielectricMatrix>& epsilon,
                                          const SigmaOptions& options,
                                          const CoulombInteraction& coulomb) {
  const DielectricMatrix* const at_zero = with_samples(epsilon);
  if (at_zero == nullptr) return {};
  const std::vector<HeadSample> all = at_zero->samples_of(0);
  std::vector<HeadSample> half;
  for (std::size_t i = 1; i < all.size(); i += 2) half.push_back(all[i]);
  const Cplx head = head_of(*at_zero, 0);
  const double change_ev =
      (coulomb.head_at_zero(head, at_zero->q, half) - coulomb.head_at_zero(head, at_zero->q, all))
          .real() *
      coulomb.averaged({}, {}) / field.zone_volume_bohr3() * kRydberg_ev;
  std::vector<double> of_states;
  for (const SelfEnergyAtK& sum : empty_self_energy(field, options))
    for (int band = options.band_min; band <= options.band_max; ++band)
      of_states.push_back(
          (band <= field.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)] ? -0.5 : 0.5) *
          change_ev);
  return of_states;
}

}  // namespace quasi::gw
