#include "workers/gw/solver/perturbation/finite_difference.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/filtered_pseudobands.hpp"
#include "workers/gw/solver/perturbation/contour_first_order.hpp"
#include "workers/gw/solver/perturbation/screened_poles.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

/// Inner states at one k of a displaced crystal.
struct DisplacedStates {
  std::vector<double> energy_ry;
  std::vector<Cplx> coefficients;  ///< [n][G]
};

/// Returns the lowest eigenstates of a displaced crystal on the plane waves of those at rest.
DisplacedStates displaced_states(const MeanField& field, const PotentialElements& potential,
                                 const WavesAtPoint& at_rest, const Vec3& k, std::int64_t n_bands,
                                 GwKernels& kernels) {
  const std::vector<IVec3>& g = at_rest.waves.g;
  const auto n_g = static_cast<std::int64_t>(g.size());
  const GIndex index(g);
  std::vector<Cplx> h(static_cast<std::size_t>(n_g * n_g));
  for (std::size_t i = 0; i < g.size(); ++i) {
    for (const auto& [difference, value] : potential)
      if (const std::int32_t j = index.find(g[i] - difference); j >= 0)
        h[i * g.size() + static_cast<std::size_t>(j)] = value;
    const Vec3 wave = k + to_real(g[i]);
    h[i * g.size() + i] += metric_dot(field.crystal().bdot, wave, wave);
  }
  DisplacedStates states{std::vector<double>(static_cast<std::size_t>(n_bands)),
                         std::vector<Cplx>(static_cast<std::size_t>(n_bands * n_g))};
  kernels.dense().eigen_hermitian(view<const Cplx>(h, n_g, n_g),
                                  view<double>(states.energy_ry, n_bands),
                                  view<Cplx>(states.coefficients, n_bands, n_g));
  return states;
}

/// Adds the windows of a displaced H to its protected states, from the random vectors of the
/// crystal at rest.
void add_windows(const MeanField& field, const HamiltonianOperator& h, const WavesAtPoint& at_rest,
                 const FilteredPseudobands& random, GwKernels& kernels, DisplacedStates& states) {
  const PseudobandPlan& plan = random.plan;
  const RotatedWaves vectors = rotated_waves(random.factors, field.zone.operations(),
                                             at_rest.rotation, 0, 0, random.factors.n_bands);
  const std::vector<Cplx> windows = windows_of_vectors(
      plan, view<const Cplx>(states.coefficients, plan.kept, std::ssize(at_rest.waves.g)),
      vectors.coefficients, *kernels.hamiltonian().load(h));
  states.coefficients.insert(states.coefficients.end(), windows.begin(), windows.end());
  for (int band = plan.kept; band < plan.bands(); ++band)
    states.energy_ry.push_back(field.waves.energy(0, at_rest.rotation.irreducible, band));
}

/// Holds W of one irreducible q of the undisplaced crystal, as poles or at the frequencies of a
/// contour.
class ScreeningAtRest {
 public:
  ScreeningAtRest(const MeanField& field, const DielectricMatrix& epsilon,
                  const SigmaOptions& options, const DeviceContext& context)
      : field_(field), options_(options), context_(context) {
    if (options.method == SigmaMethod::kContour)
      contour_.emplace(field, epsilon, options, context.coulomb, context.kernels);
    else
      poles_.emplace(field, epsilon, options, context.coulomb);
  }
  const GSphere& sphere() const { return contour_ ? contour_->sphere() : poles_->sphere(); }

  /// Takes W at one q of the star.
  void move_to(const Vec3& q) {
    if (contour_)
      contour_->move_to(q, context_.coulomb, field_.crystal().bdot);
    else
      loaded_ = context_.kernels.pole_sums().load(poles_->at_point(q).view(), options_.rules);
  }

  /// Adds Σ_c of one block of products to `sum`, [E][l][m]. A subspace projects the products.
  void add(const BandBlock& block, const std::vector<double>& energies_ry, PairBlock& products,
           std::vector<Cplx>& sum) const {
    const auto n_e = static_cast<std::int64_t>(energies_ry.size());
    if (contour_) {
      SigmaMatrixAtK found{.n = block.n_l, .energy_ry = energies_ry, .x_ry = {}};
      found.correlation_ry = std::move(sum);
      add_contour_matrix(contour_->at_q(), options_.contour, block, products, found);
      sum = std::move(found.correlation_ry);
      return;
    }
    loaded_->add_offdiagonal(
        products,
        {view<const double>(energies_ry, n_e), view<const double>(block.inner_ry, block.n_b),
         view<const double>(block.occupation, block.n_b), block.weight},
        {}, view<Cplx>(sum, n_e, block.n_l, block.n_l));
  }

  /// Subtracts the closed sum at x from that of `add`, which has empty states of one energy.
  void subtract_closed_sum(const BandBlock& block, double x_ry, PairBlock& products,
                           std::vector<Cplx>& sum) const {
    const std::vector<double> inner_ry(static_cast<std::size_t>(block.n_b), -x_ry),
        occupation(inner_ry.size()), zero{0.0};
    const auto size = static_cast<std::size_t>(block.n_l * block.n_l);
    std::vector<Cplx> closed(size);
    add({.n_l = block.n_l,
         .n_b = block.n_b,
         .inner_ry = inner_ry,
         .occupation = occupation,
         .weight = block.weight},
        zero, products, closed);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] -= closed[i % size];
  }

 private:
  const MeanField& field_;
  const SigmaOptions& options_;
  const DeviceContext& context_;
  std::optional<ContourScreening> contour_;
  std::optional<ScreenedPoles> poles_;
  std::shared_ptr<const LoadedPoleModel> loaded_;
};

/// Σ_lm(E) between the states at rest of one k, with the inner states of displaced crystals.
class SigmaOfDisplacedStates {
 public:
  SigmaOfDisplacedStates(const MeanField& field, const SigmaOptions& options,
                         const std::vector<double>& energies_ry,
                         const FilteredPseudobands* pseudobands, const DeviceContext& context)
      : field_(field),
        options_(options),
        energies_ry_(energies_ry),
        pseudobands_(pseudobands),
        box_(sum_box(field, field.waves.header.g)),
        context_(context),
        k_(field.waves.k[static_cast<std::size_t>(options.kpoints.front())]),
        n_(options.band_max - options.band_min + 1),
        outer_(load(context.kernels,
                    waves_at(field, k_, 0, options.band_min - 1, options.band_max, box_))),
        block_(context.kernels.pair_products().make_block()) {
    for (int n = 0; n < options.bands; ++n) occupation_.push_back(n < field.n_occupied ? 1.0 : 0.0);
  }

  std::vector<Cplx> empty() const {
    return std::vector<Cplx>(energies_ry_.size() * static_cast<std::size_t>(n_ * n_));
  }

  /// Adds all q of the star of one irreducible q, for each potential.
  void add_star(const DielectricMatrix& epsilon, int iq,
                const std::vector<const PotentialElements*>& potentials,
                std::vector<std::vector<Cplx>>& sums) {
    ScreeningAtRest w(field_, epsilon, options_, context_);
    const GSphere bare = make_g_sphere(field_.crystal().bdot, epsilon.at_gamma ? Vec3{} : epsilon.q,
                                       options_.bare_cutoff_ry);
    const std::vector<double> coulomb = averaged_coulomb(epsilon, bare, context_.coulomb);
    for (const ZonePoint& point : field_.transfers().points()) {
      if (point.irreducible != iq) continue;
      w.move_to(point.k);
      const auto screened = load_sphere(point.k, w.sphere(), true);
      const auto unscreened = load_sphere(point.k, bare, false);
      const Vec3 k = k_ - point.k;
      const WavesAtPoint at_rest = waves_at(field_, k, 0, 0, options_.bands, box_);
      for (std::size_t i = 0; i < potentials.size(); ++i) {
        const DisplacedStates states = inner_states(*potentials[i], at_rest, k);
        const auto n_g = static_cast<std::int64_t>(at_rest.waves.g.size());
        const auto inner = context_.kernels.pair_products().load_bands(
            box_, view<const Cplx>(states.coefficients, options_.bands, n_g),
            view<const std::int32_t>(at_rest.box_index, n_g));
        fill(*inner, *screened);
        const BandBlock bands{.n_l = n_,
                              .n_b = options_.bands,
                              .inner_ry = states.energy_ry,
                              .occupation = occupation_,
                              .weight = weight()};
        w.add(bands, energies_ry_, *block_, sums[i]);
        if (const auto x_ry = closed_x_ry(options_, pseudobands_))
          w.subtract_closed_sum(bands, *x_ry, *block_, sums[i]);
        fill(*inner, *unscreened);
        add_exchange(coulomb, sums[i]);
        context_.progress.throw_if_cancelled();
      }
    }
  }

 private:
  double weight() const { return 1.0 / field_.zone_volume_bohr3(); }

  DisplacedStates inner_states(const PotentialElements& potential, const WavesAtPoint& at_rest,
                               const Vec3& k) const {
    const int n_bands = pseudobands_ != nullptr ? pseudobands_->plan.kept : options_.bands;
    DisplacedStates states =
        displaced_states(field_, potential, at_rest, k, n_bands, context_.kernels);
    if (pseudobands_ == nullptr) return states;
    const HamiltonianOperator h(local_parts(field_.crystal(), k, at_rest.waves.g, potential));
    add_windows(field_, h, at_rest, *pseudobands_, context_.kernels, states);
    return states;
  }

  std::unique_ptr<const LoadedSphere> load_sphere(const Vec3& q, const GSphere& sphere,
                                                  bool with_phases) const {
    const SphereAtPoint rotated = rotated_sphere(field_, q, sphere, box_);
    const auto n_g = static_cast<std::int64_t>(rotated.box_index.size());
    return context_.kernels.pair_products().load_sphere(
        box_, view<const std::int32_t>(rotated.box_index, n_g),
        with_phases ? view<const Cplx>(rotated.factor, n_g) : View<const Cplx, 1>{});
  }

  void fill(const LoadedBands& inner, const LoadedSphere& sphere) {
    context_.kernels.pair_products().fill({*outer_, {0, n_}}, {inner, {0, options_.bands}}, sphere,
                                          *block_);
  }

  void add_exchange(const std::vector<double>& coulomb, std::vector<Cplx>& sum) const {
    const std::int64_t n_b = options_.bands, n_g = block_->n_g();
    std::vector<Cplx> values(static_cast<std::size_t>(n_ * n_b * n_g));
    block_->read(view<Cplx>(values, n_, n_b, n_g));
    const auto m = view<const Cplx>(values, n_, n_b, n_g);
    for (std::int64_t l = 0; l < n_; ++l)
      for (std::int64_t r = 0; r < n_; ++r) {
        Cplx x;
        for (std::int64_t n = 0; n < field_.n_occupied; ++n)
          for (std::int64_t g = 0; g < n_g; ++g)
            x -= coulomb[static_cast<std::size_t>(g)] * m(l, n, g) * std::conj(m(r, n, g));
        for (std::size_t e = 0; e < energies_ry_.size(); ++e)
          sum[e * static_cast<std::size_t>(n_ * n_) + static_cast<std::size_t>(l * n_ + r)] +=
              weight() * x;
      }
  }

  const MeanField& field_;
  const SigmaOptions& options_;
  const std::vector<double>& energies_ry_;
  const FilteredPseudobands* pseudobands_;
  std::array<int, 3> box_;
  const DeviceContext& context_;
  Vec3 k_;
  std::int64_t n_;
  std::unique_ptr<const LoadedBands> outer_;
  std::unique_ptr<PairBlock> block_;
  std::vector<double> occupation_;
};

}  // namespace

std::vector<std::vector<Cplx>> finite_differences(const MeanField& field,
                                                  const std::vector<DielectricMatrix>& epsilon,
                                                  const SigmaOptions& options,
                                                  const DifferenceRequest& wanted,
                                                  const DeviceContext& context) {
  const std::vector<double> energies_ry =
      options.method == SigmaMethod::kCohsex ? std::vector<double>{0.0} : wanted.energies_ry;
  SigmaOfDisplacedStates sigma(field, options, energies_ry, wanted.pseudobands, context);
  std::vector<const PotentialElements*> potentials;
  for (const DisplacedPotentials& pair : wanted.potentials) {
    potentials.push_back(&pair.forth);
    potentials.push_back(&pair.back);
  }
  std::vector<std::vector<Cplx>> sums(potentials.size(), sigma.empty());
  for (std::size_t iq = 0; iq < epsilon.size(); ++iq)
    sigma.add_star(epsilon[iq], static_cast<int>(iq), potentials, sums);
  std::vector<std::vector<Cplx>> differences;
  for (std::size_t i = 0; i < sums.size(); i += 2) {
    differences.push_back(std::move(sums[i]));
    for (std::size_t x = 0; x < differences.back().size(); ++x)
      differences.back()[x] = (differences.back()[x] - sums[i + 1][x]) / (2.0 * wanted.step_bohr);
  }
  return differences;
}

}  // namespace quasi::gw
