#include "workers/gw/solver/sigma.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "workers/backend/error.hpp"
#include "workers/backend/memory_budget.hpp"
#include "workers/gw/solver/sigma_sum.hpp"

namespace quasi::gw {
namespace {

/// Weighted q-points of one outer k that belong to one irreducible q.
struct StarMember {
  Vec3 q{};
  double multiplicity = 1.0;
};

std::map<int, std::vector<StarMember>> q_points_by_star(const MeanField& field, const Vec3& k, bool reduce) {
  std::vector<int> group;
  if (reduce) group = little_group(field.zone.operations(), k, false);
  // Listed points represent their orbits where they can: their matrices then need no rotation.
  std::vector<char> listed(static_cast<std::size_t>(field.zone.size()), 0);
  for (const Vec3& point : field.waves.k) listed[static_cast<std::size_t>(field.zone.index_of(point))] = 1;
  std::map<int, std::vector<StarMember>> stars;
  if (!reduce)
    for (const ZonePoint& point : field.zone.points()) stars[point.irreducible].push_back({point.k, 1.0});
  else
    for (const Orbit& orbit : orbits(field.zone, group, listed)) {
      const ZonePoint& point = field.zone.points()[static_cast<std::size_t>(orbit.representative)];
      stars[point.irreducible].push_back({point.k, static_cast<double>(orbit.size)});
    }
  return stars;
}

}  // namespace

SphereAtPoint rotated_sphere(const MeanField& field, const Vec3& q, const GSphere& sphere, const std::array<int, 3>& box) {
  const Rotation rotation = field.zone.rotation_to(q);
  const SymmetryOperation& s = field.zone.operations()[static_cast<std::size_t>(rotation.operation)];
  SphereAtPoint at;
  at.g1_of_zero = multiply(inverse(s.rotation), rotation.umklapp);
  for (const IVec3& g1 : sphere.g) {
    const IVec3 rotated = multiply(s.rotation, g1);
    at.box_index.push_back(box_position(rotated - rotation.umklapp, box));
    at.factor.push_back(std::polar(1.0, -dot(to_real(rotated), s.translation)));
  }
  return at;
}

WavesAtPoint waves_at(const MeanField& field, const Vec3& k, int spin, int begin, int end, const std::array<int, 3>& box) {
  WavesAtPoint at;
  at.rotation = field.zone.rotation_to(k);
  at.waves = rotated_waves(field.waves, field.zone.operations(), at.rotation, spin, begin, end);
  for (const IVec3& g : at.waves.g) at.box_index.push_back(box_position(g, box));
  return at;
}

void load(GwKernels& kernels, Side side, const WavesAtPoint& at) {
  const auto n_pw = static_cast<std::int64_t>(at.waves.g.size());
  kernels.load_bands(side, {at.waves.coefficients.data(), {static_cast<std::int64_t>(at.waves.coefficients.size()) / n_pw, n_pw}},
                     view<const std::int32_t>(at.box_index, n_pw));
}

std::array<int, 3> sum_box(const MeanField& field, const std::vector<IVec3>& kept) {
  // Waves are used at k − q, which may lie one reciprocal vector from their folded image, and spheres
  // at rotated q.
  IVec3 extent = rotated_extent(field.waves, field.zone);
  IVec3 sphere = component_extent(kept);
  for (const SymmetryOperation& s : field.zone.operations())
    for (const IVec3& g : kept) {
      const IVec3 rotated = multiply(s.rotation, g);
      for (int i = 0; i < 3; ++i) sphere[i] = std::max(sphere[i], std::abs(rotated[i]) + 1);
    }
  IVec3 shifted = extent;
  for (int& x : shifted) ++x;
  return product_box(extent, shifted, sphere);
}

namespace {

/// −Σ_q Σ_occ Σ_G |M|² v̄, added to x[l].
void add_exchange(const MeanField& field, const DielectricMatrix& epsilon, const SigmaOptions& options,
                  const CoulombInteraction& coulomb, GwKernels& kernels,
                  const std::vector<std::map<int, std::vector<StarMember>>>& stars, int iq, std::vector<SelfEnergyAtK>& sums) {
  const Vec3 q_listed = epsilon.at_gamma ? Vec3{} : epsilon.q;
  const GSphere sphere = make_g_sphere(field.crystal().bdot, q_listed, options.bare_cutoff_ry);
  const std::vector<double> v = averaged_coulomb(epsilon, sphere, coulomb);
  const auto box = sum_box(field, sphere.g);
  kernels.set_box(box);
  const auto n_g = sphere.size();
  const std::int64_t n_l = options.band_max - options.band_min + 1;
  for (SelfEnergyAtK& sum : sums) {
    const auto members = stars[static_cast<std::size_t>(sum.k_index)].find(iq);
    if (members == stars[static_cast<std::size_t>(sum.k_index)].end()) continue;
    const Vec3& k = field.waves.k[static_cast<std::size_t>(sum.k_index)];
    load(kernels, Side::kLeft, waves_at(field, k, sum.spin, options.band_min - 1, options.band_max, box));
    const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)];
    for (const StarMember& member : members->second) {
      const SphereAtPoint rotated = rotated_sphere(field, member.q, sphere, box);
      kernels.load_sphere(view<const std::int32_t>(rotated.box_index, n_g), {});
      load(kernels, Side::kRight, waves_at(field, k - member.q, sum.spin, 0, n_v, box));
      kernels.pair_products({0, n_l}, {0, n_v});
      std::vector<Cplx> m(static_cast<std::size_t>(n_l * n_v * n_g));
      kernels.read_pair_products(view<Cplx>(m, n_l, n_v, n_g));
      const double weight = member.multiplicity / field.zone_volume_bohr3();
      for (std::int64_t l = 0; l < n_l; ++l) {
        double x = 0.0;
        for (std::int64_t n = 0; n < n_v; ++n)
          for (std::int64_t g = 0; g < n_g; ++g)
            x += std::norm(m[static_cast<std::size_t>((l * n_v + n) * n_g + g)]) * v[static_cast<std::size_t>(g)];
        sum.x_ry[static_cast<std::size_t>(l)] -= weight * x;
      }
    }
  }
}

/// Contribution of elements with an imaginary pole ω̃ = iw, by the uncollapsed rules in complex form.
void add_imaginary_poles(const PlasmonPoleModel& model, const std::vector<Cplx>& m, std::int64_t n_l, std::int64_t n_b,
                         const std::vector<double>& x, std::int64_t n_e, const std::vector<double>& occupation,
                         const PoleRules& rules, double weight, std::vector<Cplx>& total, std::vector<Cplx>& sx) {
  for (std::int64_t p = 0; p < n_l * n_b; ++p)
    for (std::int64_t e = 0; e < n_e; ++e) {
      const double energy = x[static_cast<std::size_t>(p * n_e + e)];
      const double f = occupation[static_cast<std::size_t>(p % n_b)];
      Cplx sum_total, sum_sx;
      for (const ImaginaryPole& pole : model.imaginary) {
        const Cplx w{0.0, pole.pole_ry};
        const Cplx delta = w / (energy - w);
        Cplx ch, screened;
        if (std::abs(energy - w) > rules.half_width_ry && std::norm(delta) < rules.max_ratio * rules.max_ratio) {
          ch = delta;
          screened = -2.0 * w * w / (energy * energy - w * w);
        } else {
          screened = 2.0 * delta / (4.0 * delta + 2.0);
        }
        if (energy < 0.0 && std::abs(screened) > 2.0 * rules.screened_exchange_cut) screened = 0.0;
        const auto at = static_cast<std::size_t>(p * model.n);
        const Cplx mm = m[at + static_cast<std::size_t>(pole.g)] * pole.half_i_v * std::conj(m[at + static_cast<std::size_t>(pole.h)]);
        sum_total += mm * (ch + f * screened);
        sum_sx += mm * f * screened;
      }
      total[static_cast<std::size_t>((p / n_b) * n_e + e)] += weight * sum_total;
      sx[static_cast<std::size_t>((p / n_b) * n_e + e)] += weight * sum_sx;
    }
}

/// Contour deformation (spec 6.5) of one block of inner bands. S(ω) = Σ_GG' M (δ − ε⁻¹(ω)) v̄ M* is formed
/// at every imaginary point, and at the real points that some residue lies between.
void add_contour(const DielectricMatrix& epsilon, const WingFactors& wings, const std::vector<double>& v, std::int64_t n_g,
                 const SigmaOptions& options, const std::vector<double>& x, const std::vector<double>& occupation,
                 std::int64_t n_l, std::int64_t n_b, std::int64_t n_e, double weight, GwKernels& kernels, SelfEnergyAtK& sum) {
  const ContourGrid& grid = options.contour;
  std::vector<Cplx> forms(static_cast<std::size_t>(n_l * n_b));
  const auto form_at = [&](std::size_t frequency) {
    std::vector<Cplx> w = screening_part(epsilon, frequency, n_g, wings);
    for (std::int64_t g = 0; g < n_g; ++g)
      for (std::int64_t h = 0; h < n_g; ++h) w[static_cast<std::size_t>(g * n_g + h)] *= v[static_cast<std::size_t>(h)];
    kernels.quadratic_forms(view<const Cplx>(w, n_g, n_g), view<Cplx>(forms, n_l, n_b));
  };
  const auto for_each = [&](const auto& body) {
    for (std::int64_t p = 0; p < n_l * n_b; ++p)
      for (std::int64_t e = 0; e < n_e; ++e) body(p, p / n_b, e, x[static_cast<std::size_t>(p * n_e + e)], occupation[static_cast<std::size_t>(p % n_b)] > 0.5);
  };
  std::vector<std::vector<double>> weights(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) weights[i] = contour_weights(grid.imaginary_ry, x[i], grid.rule);
  for (std::size_t j = 0; j < grid.imaginary_ry.size(); ++j) {
    form_at(j);
    for_each([&](std::int64_t p, std::int64_t l, std::int64_t e, double, bool) {
      sum.ch_ry[static_cast<std::size_t>(e)][static_cast<std::size_t>(l)] +=
          weight * weights[static_cast<std::size_t>(p * n_e + e)][j] * forms[static_cast<std::size_t>(p)];
    });
  }
  // Linear interpolation of S between real points: weights of each point, by pair and energy.
  std::vector<std::vector<std::pair<std::size_t, double>>> at_point(grid.real_ry.size());
  for_each([&](std::int64_t p, std::int64_t, std::int64_t e, double energy, bool occupied) {
    const double sign = residue_sign(energy, occupied);
    if (sign == 0.0) return;
    const double omega = std::abs(energy);
    if (omega > grid.real_ry.back())
      throw InvalidInput("a residue lies at " + std::to_string(omega * kRydberg_ev) + " eV, beyond the real-axis grid that ends at " +
                         std::to_string(grid.real_ry.back() * kRydberg_ev) + " eV; raise epsilon.real_max_ev");
    std::size_t i = static_cast<std::size_t>(std::upper_bound(grid.real_ry.begin(), grid.real_ry.end(), omega) - grid.real_ry.begin());
    i = std::min(i, grid.real_ry.size() - 1);
    const double t = (omega - grid.real_ry[i - 1]) / (grid.real_ry[i] - grid.real_ry[i - 1]);
    const auto at = static_cast<std::size_t>(p * n_e + e);
    at_point[i - 1].emplace_back(at, sign * (1.0 - t));
    at_point[i].emplace_back(at, sign * t);
  });
  for (std::size_t i = 0; i < at_point.size(); ++i) {
    if (at_point[i].empty()) continue;
    form_at(grid.imaginary_ry.size() + i);
    for (const auto& [at, share] : at_point[i]) {
      const auto p = static_cast<std::int64_t>(at) / n_e, e = static_cast<std::int64_t>(at) % n_e;
      sum.sx_ry[static_cast<std::size_t>(e)][static_cast<std::size_t>(p / n_b)] += weight * share * forms[static_cast<std::size_t>(p)];
    }
  }
}

}  // namespace

std::vector<SelfEnergyAtK> self_energy(const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
                                       const SigmaOptions& options, const CoulombInteraction& coulomb,
                                       GwKernels& kernels, Progress& progress, SigmaStatistics* statistics) {
  const std::int64_t n_l = options.band_max - options.band_min + 1;
  const auto n_e = static_cast<std::int64_t>(options.offsets_ry.size());
  const bool contour = options.method == SigmaMethod::kContour;
  const bool poles = options.method == SigmaMethod::kHybertsenLouie || options.method == SigmaMethod::kGodbyNeeds;
  std::vector<SelfEnergyAtK> sums;
  std::vector<std::map<int, std::vector<StarMember>>> stars(field.waves.k.size());
  for (const int ik : options.kpoints) {
    stars[static_cast<std::size_t>(ik)] = q_points_by_star(field, field.waves.k[static_cast<std::size_t>(ik)], options.reduce_q);
    for (int spin = 0; spin < field.n_spins(); ++spin) {
      SelfEnergyAtK sum{.k_index = ik, .spin = spin};
      sum.x_ry.assign(static_cast<std::size_t>(n_l), 0.0);
      sum.sx_ry.assign(static_cast<std::size_t>(n_e), std::vector<Cplx>(static_cast<std::size_t>(n_l)));
      sum.ch_ry = sum.sx_ry;
      if (options.exact_static_ch || options.method == SigmaMethod::kCohsex) {
        sum.ch_static_ry.assign(static_cast<std::size_t>(n_l), Cplx{});
        sum.ch_exact_ry = sum.ch_static_ry;
      }
      sums.push_back(std::move(sum));
    }
  }
  std::vector<ChargeTable> charges;
  if (options.exact_static_ch || options.method == SigmaMethod::kCohsex)
    for (const SelfEnergyAtK& sum : sums)
      charges.push_back(charge_table(field, sum.k_index, sum.spin, options.band_min - 1, options.band_max,
                                     options.screened_cutoff_ry, kernels));
  std::int64_t done = 0, work = 0;
  for (const int ik : options.kpoints)
    for (const auto& star : stars[static_cast<std::size_t>(ik)]) work += static_cast<std::int64_t>(star.second.size()) * field.n_spins();

  for (std::size_t iq = 0; iq < epsilon.size(); ++iq) {
    const bool at_each_point = coulomb.options().wing_rule == WingRule::kListedPoint;
    // The body of ε⁻¹ at q₀ depends on the direction of q₀; Σ at q = 0 wants the crystal's symmetry.
    std::optional<DielectricMatrix> symmetric;
    if (epsilon[iq].at_gamma && !at_each_point) {
      symmetric = epsilon[iq];
      const std::vector<int> group = little_group(field.zone.operations(), {}, false);
      for (auto& matrix : symmetric->inverse) matrix = summed_over_group(matrix, symmetric->sphere, field.zone.operations(), group, true);
    }
    const DielectricMatrix& eps = symmetric ? *symmetric : epsilon[iq];
    std::int64_t n_g = 0;
    while (n_g < eps.size() && eps.sphere.kinetic_ry[static_cast<std::size_t>(n_g)] < options.screened_cutoff_ry) ++n_g;
    GSphere sphere = eps.sphere;
    sphere.g.resize(static_cast<std::size_t>(n_g));
    sphere.kinetic_ry.resize(static_cast<std::size_t>(n_g));
    add_exchange(field, eps, options, coulomb, kernels, stars, static_cast<int>(iq), sums);

    const std::vector<double> v = averaged_coulomb(eps, sphere, coulomb);
    std::vector<Cplx> static_w;  // I_GG' v̄(G')
    PlasmonPoleModel model;
    WingFactors current_wings;
    const auto prepare = [&](const WingFactors& wings) {
      current_wings = wings;
      if (options.exact_static_ch || options.method == SigmaMethod::kCohsex) {
        static_w = screening_part(eps, 0, n_g, wings);
        for (std::int64_t g = 0; g < n_g; ++g)
          for (std::int64_t h = 0; h < n_g; ++h) static_w[static_cast<std::size_t>(g * n_g + h)] *= v[static_cast<std::size_t>(h)];
      }
      if (!poles) return;
      model = options.method == SigmaMethod::kHybertsenLouie
                  ? hybertsen_louie(field, eps, n_g, coulomb, wings, options.invalid)
                  : godby_needs(eps, n_g, coulomb, wings, options.invalid, options.godby_needs_ry);
      kernels.load_plasmon_pole(model.view(), options.rules);
    };
    prepare(wing_factors(eps, coulomb, field.crystal().bdot));
    if (statistics != nullptr && poles) {
      statistics->elements += n_g * n_g;
      statistics->skipped += model.skipped;
      statistics->invalid += model.invalid;
    }

    const auto box = sum_box(field, sphere.g);
    for (std::size_t i_sum = 0; i_sum < sums.size(); ++i_sum) {
      SelfEnergyAtK& sum = sums[i_sum];
      const auto members = stars[static_cast<std::size_t>(sum.k_index)].find(static_cast<int>(iq));
      if (members == stars[static_cast<std::size_t>(sum.k_index)].end()) continue;
      const Vec3& k = field.waves.k[static_cast<std::size_t>(sum.k_index)];
      const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)];
      kernels.set_box(box);
      const WavesAtPoint outer = waves_at(field, k, sum.spin, options.band_min - 1, options.band_max, box);
      load(kernels, Side::kLeft, outer);
      const std::int64_t block = std::min<std::int64_t>(
          options.bands, items_that_fit(options.memory_budget_bytes, 32 * n_g * n_g, 32 * n_l * n_g, "self-energy"));
      for (const StarMember& member : members->second) {
        const SphereAtPoint rotated = rotated_sphere(field, member.q, sphere, box);
        kernels.load_sphere(view<const std::int32_t>(rotated.box_index, n_g), view<const Cplx>(rotated.factor, n_g));
        // The wings belong to the irreducible point unless they follow the listed ones.
        if (at_each_point) prepare(wing_factors_of_listed_point(eps, coulomb, field.crystal().bdot, member.q, rotated.g1_of_zero));
        const WavesAtPoint inner = waves_at(field, k - member.q, sum.spin, 0, options.bands, box);
        load(kernels, Side::kRight, inner);
        const double weight = member.multiplicity / field.zone_volume_bohr3();
        for (std::int64_t begin = 0; begin < options.bands; begin += block) {
          const std::int64_t end = std::min<std::int64_t>(options.bands, begin + block);
          const std::int64_t n_b = end - begin;
          kernels.pair_products({0, n_l}, {begin, end});
          std::vector<double> occupation(static_cast<std::size_t>(n_b));
          for (std::int64_t n = 0; n < n_b; ++n) occupation[static_cast<std::size_t>(n)] = begin + n < n_v ? 1.0 : 0.0;
          if (poles || contour) {
            std::vector<double> x(static_cast<std::size_t>(n_l * n_b * n_e));
            for (std::int64_t l = 0; l < n_l; ++l)
              for (std::int64_t n = 0; n < n_b; ++n)
                for (std::int64_t e = 0; e < n_e; ++e)
                  x[static_cast<std::size_t>((l * n_b + n) * n_e + e)] =
                      field.waves.energy(sum.spin, sum.k_index, options.band_min - 1 + static_cast<int>(l)) +
                      options.offsets_ry[static_cast<std::size_t>(e)] -
                      field.waves.energy(sum.spin, inner.rotation.irreducible, static_cast<int>(begin + n));
            if (contour) {
              add_contour(eps, current_wings, v, n_g, options, x, occupation, n_l, n_b, n_e, weight, kernels, sum);
              continue;
            }
            std::vector<Cplx> total(static_cast<std::size_t>(n_l * n_e)), sx(total.size());
            kernels.sigma_diagonal(view<const double>(x, n_l, n_b, n_e), view<const double>(occupation, n_b), weight,
                                   view<Cplx>(total, n_l, n_e), view<Cplx>(sx, n_l, n_e));
            if (!model.imaginary.empty()) {
              std::vector<Cplx> m(static_cast<std::size_t>(n_l * n_b * n_g));
              kernels.read_pair_products(view<Cplx>(m, n_l, n_b, n_g));
              add_imaginary_poles(model, m, n_l, n_b, x, n_e, occupation, options.rules, weight, total, sx);
            }
            for (std::int64_t l = 0; l < n_l; ++l)
              for (std::int64_t e = 0; e < n_e; ++e) {
                const auto at = static_cast<std::size_t>(l * n_e + e);
                sum.sx_ry[static_cast<std::size_t>(e)][static_cast<std::size_t>(l)] += sx[at];
                sum.ch_ry[static_cast<std::size_t>(e)][static_cast<std::size_t>(l)] += total[at] - sx[at];
              }
          }
          if (!static_w.empty()) {
            std::vector<Cplx> forms(static_cast<std::size_t>(n_l * n_b));
            kernels.quadratic_forms(view<const Cplx>(static_w, n_g, n_g), view<Cplx>(forms, n_l, n_b));
            for (std::int64_t l = 0; l < n_l; ++l)
              for (std::int64_t n = 0; n < n_b; ++n) {
                const Cplx form = weight * forms[static_cast<std::size_t>(l * n_b + n)];
                sum.ch_static_ry[static_cast<std::size_t>(l)] -= 0.5 * form;
                if (options.method == SigmaMethod::kCohsex)
                  for (auto& sx : sum.sx_ry) sx[static_cast<std::size_t>(l)] += occupation[static_cast<std::size_t>(n)] * form;
              }
          }
        }
        if (!static_w.empty()) {
          const int operation = field.zone.rotation_to(member.q).operation;
          add_exact_static_ch(charges[i_sum], sphere, field.zone.operations()[static_cast<std::size_t>(operation)], static_w, weight,
                              sum.ch_exact_ry);
        }
        progress.report("self-energy", ++done, work);
      }
    }
  }
  if (options.method == SigmaMethod::kCohsex)
    for (SelfEnergyAtK& sum : sums)
      for (auto& ch : sum.ch_ry) ch = sum.ch_static_ry;
  return sums;
}

}  // namespace quasi::gw
