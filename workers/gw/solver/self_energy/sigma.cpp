#include "workers/gw/solver/self_energy/sigma.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "workers/backend/device/memory_budget.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"

namespace quasi::gw {
namespace {

using Stars = std::vector<std::map<int, std::vector<StarMember>>>;

bool has_poles(SigmaMethod method) {
  return method == SigmaMethod::kHybertsenLouie || method == SigmaMethod::kGodbyNeeds;
}
/// Frequencies of ε⁻¹ that the methods other than the full-frequency ones use.
std::vector<std::size_t> frequencies_of(SigmaMethod method) {
  return method == SigmaMethod::kGodbyNeeds ? std::vector<std::size_t>{0, 1}
                                            : std::vector<std::size_t>{0};
}
bool wants_static_ch(const SigmaOptions& options) {
  return options.exact_static_ch || options.method == SigmaMethod::kCohsex;
}

/// −Σ_q Σ_occ Σ_G |M|² v̄, added to x[l].
void add_exchange(const MeanField& field, const DielectricMatrix& epsilon,
                  const SigmaOptions& options, const CoulombInteraction& coulomb,
                  GwKernels& kernels, const Stars& stars, int iq,
                  std::vector<SelfEnergyAtK>& sums) {
  const Vec3 q_listed = epsilon.at_gamma ? Vec3{} : epsilon.q;
  const GSphere sphere = make_g_sphere(field.crystal().bdot, q_listed, options.bare_cutoff_ry);
  const std::vector<double> v = averaged_coulomb(epsilon, sphere, coulomb);
  const auto box = sum_box(field, sphere.g);
  const auto n_g = sphere.size();
  const auto block = kernels.pair_products().make_block();
  const std::int64_t n_l = options.band_max - options.band_min + 1;
  for (SelfEnergyAtK& sum : sums) {
    const auto members = stars[static_cast<std::size_t>(sum.k_index)].find(iq);
    if (members == stars[static_cast<std::size_t>(sum.k_index)].end()) continue;
    const Vec3& k = field.waves.k[static_cast<std::size_t>(sum.k_index)];
    const auto left =
        load(kernels, waves_at(field, k, sum.spin, options.band_min - 1, options.band_max, box));
    const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)];
    for (const StarMember& member : members->second) {
      const SphereAtPoint rotated = rotated_sphere(field, member.q, sphere, box);
      const auto loaded = kernels.pair_products().load_sphere(
          box, view<const std::int32_t>(rotated.box_index, n_g), {});
      const auto right = load(kernels, waves_at(field, k - member.q, sum.spin, 0, n_v, box));
      kernels.pair_products().fill({*left, {0, n_l}}, {*right, {0, n_v}}, *loaded, *block);
      std::vector<double> norms(static_cast<std::size_t>(n_l * n_v));
      block->weighted_norms(view<const double>(v, n_g), view<double>(norms, n_l, n_v));
      const double weight = member.multiplicity / field.zone_volume_bohr3();
      for (std::int64_t l = 0; l < n_l; ++l) {
        double x = 0.0;
        for (std::int64_t n = 0; n < n_v; ++n) x += norms[static_cast<std::size_t>(l * n_v + n)];
        sum.x_ry[static_cast<std::size_t>(l)] -= weight * x;
      }
    }
  }
}

/// One block of inner bands [begin, end) at one q.
struct Block {
  PairBlock& products;
  std::int64_t n_l = 0, begin = 0, end = 0;
  std::vector<double> outer_ry, inner_ry, occupation;
  double weight = 1.0;

  std::int64_t n_b() const { return end - begin; }
  /// E_l + offset − E_n, [n_l][n_b][n_offsets].
  std::vector<double> x_ry(std::span<const double> offsets) const {
    std::vector<double> x;
    for (const double outer : outer_ry)
      for (const double inner : inner_ry)
        for (const double offset : offsets) x.push_back(outer + offset - inner);
    return x;
  }
};

void add_imaginary_poles(const LoadedImaginaryPoles& poles, const Block& block,
                         const SigmaOptions& options, SelfEnergyAtK& sum) {
  const auto n_e = static_cast<std::int64_t>(options.offsets_ry.size());
  const std::vector<double> x = block.x_ry(options.offsets_ry);
  std::vector<Cplx> total(static_cast<std::size_t>(block.n_l * n_e)), sx(total.size());
  poles.add_diagonal(block.products,
                     {view<const double>(x, block.n_l, block.n_b(), n_e),
                      view<const double>(block.occupation, block.n_b()), block.weight},
                     {view<Cplx>(total, block.n_l, n_e), view<Cplx>(sx, block.n_l, n_e)},
                     options.slope ? view<Cplx>(sum.slope, block.n_l) : View<Cplx, 1>{});
  for (std::size_t l = 0; l < static_cast<std::size_t>(block.n_l); ++l)
    for (std::size_t e = 0; e < options.offsets_ry.size(); ++e) {
      const std::size_t at = l * options.offsets_ry.size() + e;
      sum.ch_ry[e][l] += total[at] - sx[at];
      sum.sx_ry[e][l] += sx[at];
    }
}

void add_plasmon_poles(const ScreeningOnDevice& screening, const Block& block,
                       const SigmaOptions& options, SelfEnergyAtK& sum) {
  const auto n_l = static_cast<std::size_t>(block.n_l);
  const View<const double, 1> occupation = view<const double>(block.occupation, block.n_b());
  const auto add = [&](std::size_t e, std::size_t l, Cplx total, Cplx sx) {
    sum.sx_ry[e][l] += sx;
    sum.ch_ry[e][l] += total - sx;
  };
  std::size_t done = 0;
  if (options.slope) {
    const std::vector<double> x = block.x_ry(std::span(options.offsets_ry).first(1));
    std::vector<Cplx> total(n_l), sx(n_l), slope(n_l);
    screening.poles->add_diagonal_slope(
        block.products,
        {view<const double>(x, block.n_l, block.n_b(), 1), occupation, block.weight},
        {view<Cplx>(total, block.n_l), view<Cplx>(sx, block.n_l), view<Cplx>(slope, block.n_l)});
    for (std::size_t l = 0; l < n_l; ++l) {
      add(0, l, total[l], sx[l]);
      sum.slope[l] += slope[l];
    }
    done = 1;
  }
  const auto offsets = std::span(options.offsets_ry).subspan(done);
  if (!offsets.empty()) {
    const auto n_e = static_cast<std::int64_t>(offsets.size());
    const std::vector<double> x = block.x_ry(offsets);
    std::vector<Cplx> total(n_l * offsets.size()), sx(total.size());
    screening.poles->add_diagonal(
        block.products,
        {view<const double>(x, block.n_l, block.n_b(), n_e), occupation, block.weight},
        {view<Cplx>(total, block.n_l, n_e), view<Cplx>(sx, block.n_l, n_e)});
    for (std::size_t l = 0; l < n_l; ++l)
      for (std::size_t e = 0; e < offsets.size(); ++e)
        add(done + e, l, total[l * offsets.size() + e], sx[l * offsets.size() + e]);
  }
  if (screening.imaginary_poles)
    add_imaginary_poles(*screening.imaginary_poles, block, options, sum);
}

/// Static CH by the band sum and, for COHSEX, SX − X.
void add_static(const UnsetVector<Cplx>& static_w, std::int64_t n_g, const Block& block,
                const SigmaOptions& options, SelfEnergyAtK& sum) {
  const auto n_b = static_cast<std::size_t>(block.n_b());
  std::vector<Cplx> forms(static_cast<std::size_t>(block.n_l) * n_b);
  block.products.quadratic_forms(view<const Cplx>(static_w, n_g, n_g),
                                 view<Cplx>(forms, block.n_l, block.n_b()));
  for (std::size_t p = 0; p < forms.size(); ++p) {
    const Cplx form = block.weight * forms[p];
    sum.ch_static_ry[p / n_b] -= 0.5 * form;
    if (options.method == SigmaMethod::kCohsex)
      for (auto& sx : sum.sx_ry) sx[p / n_b] += block.occupation[p % n_b] * form;
  }
}

std::vector<double> outer_energies(const MeanField& field, const SelfEnergyAtK& sum,
                                   const SigmaOptions& options) {
  std::vector<double> energies;
  for (int band = options.band_min - 1; band < options.band_max; ++band)
    energies.push_back(field.waves.energy(sum.spin, sum.k_index, band));
  return energies;
}

}  // namespace

std::vector<SelfEnergyAtK> empty_self_energy(const MeanField& field, const SigmaOptions& options) {
  const auto n_l = static_cast<std::size_t>(options.band_max - options.band_min + 1);
  std::vector<SelfEnergyAtK> sums;
  for (const int ik : options.kpoints)
    for (int spin = 0; spin < field.n_spins(); ++spin) {
      SelfEnergyAtK sum{.k_index = ik, .spin = spin};
      sum.x_ry.assign(n_l, 0.0);
      sum.sx_ry.assign(options.offsets_ry.size(), std::vector<Cplx>(n_l));
      sum.ch_ry = sum.sx_ry;
      if (options.slope) sum.slope.assign(n_l, Cplx{});
      if (wants_static_ch(options)) sum.ch_exact_ry = sum.ch_static_ry = std::vector<Cplx>(n_l);
      if (options.subspace.wanted()) sum.subspace_error_ry.assign(n_l, 0.0);
      if (options.method == SigmaMethod::kImaginaryAxis)
        sum.axis_ry.assign(options.contour.continuation_ry.size(), std::vector<Cplx>(n_l));
      sums.push_back(std::move(sum));
    }
  return sums;
}

std::vector<SelfEnergyAtK> self_energy_part(const MeanField& field,
                                            const std::vector<DielectricMatrix>& epsilon,
                                            const SigmaOptions& options, const SigmaPart& part,
                                            const CoulombInteraction& coulomb, GwKernels& kernels,
                                            Progress& progress, SigmaStatistics* statistics,
                                            ScreeningOnDevice* kept) {
  ScreeningOnDevice own;
  ScreeningOnDevice& here = kept != nullptr ? *kept : own;
  StepClock clock(here.shared != nullptr ? &here.shared->times() : nullptr);
  const bool by_point = coulomb.options().wing_rule == WingRule::kListedPoint;
  const bool first_bands = part.band_begin == 0;
  const std::int64_t n_l = options.band_max - options.band_min + 1;
  const bool poles = has_poles(options.method);
  std::vector<SelfEnergyAtK> sums = empty_self_energy(field, options);
  Stars stars(field.waves.k.size());
  std::int64_t done = 0, work = 0;
  for (const int ik : options.kpoints) {
    auto& of_k = stars[static_cast<std::size_t>(ik)];
    of_k = q_points_by_star(field, field.waves.k[static_cast<std::size_t>(ik)], options.reduce_q);
    for (const auto& star : of_k)
      if (static_cast<std::size_t>(star.first) >= part.q_begin &&
          static_cast<std::size_t>(star.first) < part.q_end)
        work += static_cast<std::int64_t>(star.second.size()) * field.n_spins();
  }
  std::vector<ChargeTable> charges;
  const bool closure = wants_static_ch(options) && options.closure && first_bands;
  if (closure)
    for (const SelfEnergyAtK& sum : sums)
      charges.push_back(
          charge_table(field, {sum.k_index, sum.spin, options.band_min - 1, options.band_max},
                       options.screened_cutoff_ry, kernels));

  for (std::size_t iq = part.q_begin; iq < part.q_end; ++iq) {
    const auto prepare = [&](const ScreeningAtQ& at, const WingFactors& wings,
                             PreparedScreening& to) {
      to.wings = wings;
      if (wants_static_ch(options)) to.static_w = screened_matrix(at, 0, wings);
      if (poles) to.model = plasmon_poles(field, at, options, coulomb, wings);
    };
    const auto load_poles = [&](const PreparedScreening& made, bool may_share) {
      if (!poles) return;
      const PlasmonPoleModel& model = made.model;
      here.poles = {};  // its memory, before the next model takes as much
      here.imaginary_poles = {};
      here.poles = may_share ? here.shared->load_poles(made, options.rules, kernels)
                             : kernels.pole_sums().load(model.view(), options.rules);
      if (!model.imaginary.empty())
        here.imaginary_poles = kernels.pole_sums().load_imaginary(
            view<const ImaginaryPole>(model.imaginary,
                                      static_cast<std::int64_t>(model.imaginary.size())),
            options.rules);
    };
    const auto make = [&] {
      PreparedScreening made;
      made.iq = iq;
      if (uses_frequencies(options.method)) {
        FullFrequencyW w = full_frequency_w(field, epsilon[iq], options, coulomb, kernels);
        made.at = std::move(w.at);
        made.subspace = std::move(w.subspace);
      } else {
        made.at = screening_at(field, epsilon[iq], options.screened_cutoff_ry, coulomb,
                               frequencies_of(options.method));
      }
      prepare(made.at, wing_factors(made.at.epsilon), made);
      return made;
    };
    // Before W is asked for: another device may be making it meanwhile.
    if (first_bands)
      add_exchange(field, epsilon[iq], options, coulomb, kernels, stars, static_cast<int>(iq),
                   sums);
    clock.step("exchange");
    if (here.prepared == nullptr || here.prepared->iq != iq || by_point) {
      here.prepared = {};
      here.prepared = here.shared != nullptr ? here.shared->of(iq, make)
                                             : std::make_shared<const PreparedScreening>(make());
      load_poles(*here.prepared, here.shared != nullptr && !by_point);
    }
    clock.skip();
    const ScreeningAtQ& at = here.prepared->at;
    const std::int64_t n_g = at.sphere.size();
    const PreparedScreening* now = here.prepared.get();
    PreparedScreening of_point;  // where every point of the star has wings of its own
    if (statistics != nullptr && options.subspace.wanted() && now->subspace.used() && first_bands) {
      statistics->subspace_vectors += now->subspace.n_b;
      statistics->plane_waves += n_g;
    }
    if (statistics != nullptr && poles && first_bands) {
      statistics->elements += n_g * n_g;
      statistics->skipped += now->model.skipped;
      statistics->invalid += now->model.invalid;
    }

    const auto box = sum_box(field, at.sphere.g);
    const std::int64_t box_bytes = std::int64_t{16} * box[0] * box[1] * box[2];
    for (std::size_t i_sum = 0; i_sum < sums.size(); ++i_sum) {
      SelfEnergyAtK& sum = sums[i_sum];
      const auto members = stars[static_cast<std::size_t>(sum.k_index)].find(static_cast<int>(iq));
      if (members == stars[static_cast<std::size_t>(sum.k_index)].end()) continue;
      const Vec3& k = field.waves.k[static_cast<std::size_t>(sum.k_index)];
      const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)];
      const auto left =
          load(kernels, waves_at(field, k, sum.spin, options.band_min - 1, options.band_max, box));
      std::unique_ptr<const LoadedBands> right;
      const auto products = kernels.pair_products().make_block();
      // The poles or W, the outer bands; then an inner band on the box and its products.
      const std::int64_t step = std::min<std::int64_t>(
          options.bands,
          items_that_fit(options.memory_budget_bytes, 32 * n_g * n_g + box_bytes * n_l,
                         32 * n_l * n_g + box_bytes, "self-energy"));
      for (const StarMember& member : members->second) {
        const SphereAtPoint rotated = rotated_sphere(field, member.q, at.sphere, box);
        const auto sphere = kernels.pair_products().load_sphere(
            box, view<const std::int32_t>(rotated.box_index, n_g),
            view<const Cplx>(rotated.factor, n_g));
        // The wings belong to the irreducible point unless they follow the listed ones.
        if (by_point) {
          prepare(at,
                  wing_factors_of_listed_point(at.epsilon, coulomb, field.crystal().bdot, member.q),
                  of_point);
          now = &of_point;
          load_poles(*now, false);
        }
        const double weight = member.multiplicity / field.zone_volume_bohr3();
        for (std::int64_t begin = part.band_begin; begin < part.band_end; begin += step) {
          Block block{.products = *products,
                      .n_l = n_l,
                      .begin = begin,
                      .end = std::min<std::int64_t>(part.band_end, begin + step),
                      .outer_ry = outer_energies(field, sum, options),
                      .inner_ry = {},
                      .occupation = {},
                      .weight = weight};
          const WavesAtPoint inner =
              waves_at(field, k - member.q, sum.spin, static_cast<int>(begin),
                       static_cast<int>(block.end), box);
          right = load(kernels, inner);
          for (std::int64_t n = begin; n < block.end; ++n) {
            block.inner_ry.push_back(
                field.waves.energy(sum.spin, inner.rotation.irreducible, static_cast<int>(n)));
            block.occupation.push_back(n < n_v ? 1.0 : 0.0);
          }
          clock.step("wavefunctions");
          kernels.pair_products().fill({*left, {0, n_l}}, {*right, {0, block.n_b()}}, *sphere,
                                       *products);
          clock.step("pair_products");
          if (!now->static_w.empty()) add_static(now->static_w, n_g, block, options, sum);
          if (poles) add_plasmon_poles(here, block, options, sum);
          if (uses_frequencies(options.method))
            add_full_frequency(at, now->wings, here.prepared->subspace, options,
                               {n_l, block.n_b(), block.outer_ry, block.inner_ry, block.occupation,
                                midgap_ry(field, sum.spin), weight},
                               *products, sum);
          clock.step("sums");
        }
        if (closure) {
          const int operation = field.transfers().rotation_to(member.q).operation;
          add_exact_static_ch(charges[i_sum], at.sphere,
                              field.transfers().operations()[static_cast<std::size_t>(operation)],
                              now->static_w, weight, sum.ch_exact_ry);
          clock.step("completed_ch");
        }
        progress.report("self-energy", ++done, work);
      }
    }
  }
  return sums;
}

void finish_self_energy(const MeanField& field, const SigmaOptions& options,
                        std::vector<SelfEnergyAtK>& sums) {
  for (SelfEnergyAtK& sum : sums) {
    if (options.method == SigmaMethod::kCohsex)
      for (auto& ch : sum.ch_ry) ch = sum.ch_static_ry;
    if (options.method == SigmaMethod::kImaginaryAxis)
      continue_to_real_energies(outer_energies(field, sum, options), midgap_ry(field, sum.spin),
                                options, sum);
  }
}

std::vector<SelfEnergyAtK> self_energy(const MeanField& field,
                                       const std::vector<DielectricMatrix>& epsilon,
                                       const SigmaOptions& options,
                                       const CoulombInteraction& coulomb, GwKernels& kernels,
                                       Progress& progress, SigmaStatistics* statistics) {
  auto sums = self_energy_part(field, epsilon, options, {0, epsilon.size(), 0, options.bands},
                               coulomb, kernels, progress, statistics);
  finish_self_energy(field, options, sums);
  return sums;
}

}  // namespace quasi::gw
