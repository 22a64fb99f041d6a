#include "workers/gw/solver/self_energy/zone_sum/zone_sum_change.hpp"

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
                        ? coulomb.head_at_zero(inverse[0], epsilon.q)
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

}  // namespace

std::vector<double> zone_sum_change_ev(const MeanField& field,
                                       const std::vector<DielectricMatrix>& epsilon,
                                       const SigmaOptions& options,
                                       const CoulombInteraction& coulomb, GwKernels& kernels) {
  if (!has_other_rule(coulomb.options())) return {};
  const CoulombInteraction other(field.crystal(), field.waves.k_grid, with_other_rule(coulomb));
  if (other.sums_points() == coulomb.sums_points()) return {};
  std::vector<SelfEnergyAtK> sums = empty_self_energy(field, options);
  for (std::size_t iq = 0; iq < epsilon.size(); ++iq) {
    const GSphere sphere = cut(epsilon[iq].sphere, options.screened_cutoff_ry);
    const DiagonalAtQ own = diagonal_at(field, epsilon[iq], sphere, coulomb),
                      changed = diagonal_at(field, epsilon[iq], sphere, other);
    std::vector<double> screened(sphere.g.size());
    double hole_ry = 0.0;
    for (std::size_t g = 0; g < screened.size(); ++g) {
      screened[g] = changed.screened[g] - own.screened[g];
      hole_ry += 0.5 * (screened[g] - (changed.bare[g] - own.bare[g]));
    }
    const auto box = sum_box(field, sphere.g);
    for (SelfEnergyAtK& sum : sums) {
      const auto stars = q_points_by_star(
          field, field.waves.k[static_cast<std::size_t>(sum.k_index)], options.reduce_q);
      const auto star = stars.find(static_cast<int>(iq));
      if (star == stars.end()) continue;
      OuterProducts outer(field, {sum.k_index, sum.spin, options.band_min - 1, options.band_max},
                          box, kernels);
      const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)];
      for (const StarMember& member : star->second) {
        const auto rotated = outer.load_sphere(member.q, sphere, OuterProducts::Phases::kLeftOut);
        BandBlock block = outer.load_inner(member.q, 0, n_v);
        block.weight = member.multiplicity / field.zone_volume_bohr3();
        add_exchange(screened, block, outer.fill(*rotated), sum);
        for (double& x : sum.x_ry) x += block.weight * hole_ry;
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

}  // namespace quasi::gw
