#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

#include <algorithm>
#include <memory>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/perturbation/screened_poles.hpp"
#include "workers/gw/solver/perturbation/state_coupling.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

void check(const MeanField& field, const SigmaOptions& options,
           const std::vector<Perturbation>& perturbations) {
  if (options.method != SigmaMethod::kCohsex && !uses_plasmon_poles(options.method))
    throw InvalidInput(
        "the derivative of Σ is built for plasmon poles and static COHSEX; set sigma.method to "
        "\"hl-gpp\", \"gn-gpp\" or \"cohsex\"");
  if (options.invalid == InvalidMode::kImaginary)
    throw InvalidInput(
        "sigma.invalid_modes = \"imaginary\" has no derivative of Σ; choose \"static\", "
        "\"two-rydberg\" or \"skip\"");
  if (options.exact_static_ch)
    throw InvalidInput(
        "the static remainder and the completed CH have no derivative of Σ; switch them off");
  if (field.n_spins() != 1)
    throw InvalidInput("the derivative of Σ is built for one spin; the mean field has two");
  for (const Perturbation& perturbation : perturbations)
    if (perturbation.p != perturbations.front().p)
      throw InvalidInput("perturbation '" + perturbation.name + "' has another wave vector than '" +
                         perturbations.front().name + "'; calculate each wave vector by itself");
}

/// Inner states on one side, on the device too.
struct InnerStates {
  WavesAtPoint waves;
  std::unique_ptr<const LoadedBands> loaded;
  CoupledBands bands;
};

/// The derivative at one outer k, as a sum over all q of the zone.
class DerivativeAtK {
 public:
  DerivativeAtK(const MeanField& field, const SigmaOptions& options,
                const std::vector<Perturbation>& perturbations, int k_index, const FftBox& box,
                GwKernels& kernels)
      : field_(field),
        options_(options),
        perturbations_(perturbations),
        box_(box),
        kernels_(kernels),
        k_(field.waves.k[static_cast<std::size_t>(k_index)]),
        bra_(bra_point(k_, perturbations.front().p)),
        left_(outer(bra_.k)),
        right_(outer(k_)),
        left_loaded_(load(kernels, left_)),
        right_loaded_(load(kernels, right_)),
        products_(kernels.pair_products().make_block()) {}

  std::vector<Cplx> outer_coupling(const Perturbation& perturbation) const {
    return state_coupling(perturbation.potential, k_, left_, bra_.umklapp, right_);
  }

  /// Loads the inner states at k − q and k + p − q for the sums that follow.
  void load_inner(const Vec3& q) {
    const Vec3 k = k_ - q;
    const InnerStates ket = inner(k), bra = inner(bra_.k - q);
    couplings_.clear();
    for (const Perturbation& perturbation : perturbations_)
      couplings_.push_back(
          {state_coupling(perturbation.potential, k, bra.waves, bra_.umklapp, ket.waves)});
    inner_ = {bra.bands, ket.bands, {}, {}};
    bra_loaded_ = load(kernels_, bra.waves);
    ket_loaded_ = load(kernels_, ket.waves);
  }

  /// Makes the products on both sides at one q.
  const CoupledProducts& fill(const Vec3& q, const GSphere& sphere, bool with_phases) {
    const SphereAtPoint rotated = rotated_sphere(field_, q, sphere, box_);
    const auto n_g = static_cast<std::int64_t>(rotated.box_index.size());
    const auto on_device = kernels_.pair_products().load_sphere(
        box_, view<const std::int32_t>(rotated.box_index, n_g),
        with_phases ? view<const Cplx>(rotated.factor, n_g) : View<const Cplx, 1>{});
    inner_.left = products(*left_loaded_, *bra_loaded_, *on_device, left_values_);
    inner_.right = products(*right_loaded_, *ket_loaded_, *on_device, right_values_);
    return inner_;
  }
  const std::vector<Coupling>& couplings() const { return couplings_; }

 private:
  WavesAtPoint outer(const Vec3& k) const {
    return waves_at(field_, k, 0, options_.band_min - 1, options_.band_max, box_);
  }
  InnerStates inner(const Vec3& k) const {
    InnerStates states{.waves = waves_at(field_, k, 0, 0, options_.bands, box_)};
    for (int n = 0; n < options_.bands; ++n) {
      states.bands.energy_ry.push_back(
          field_.waves.energy(0, states.waves.rotation.irreducible, n));
      states.bands.occupation.push_back(n < field_.n_occupied ? 1.0 : 0.0);
    }
    return states;
  }
  View<const Cplx, 3> products(const LoadedBands& outer, const LoadedBands& inner,
                               const LoadedSphere& sphere, std::vector<Cplx>& values) {
    const std::int64_t n_l = options_.band_max - options_.band_min + 1;
    kernels_.pair_products().fill({outer, {0, n_l}}, {inner, {0, options_.bands}}, sphere,
                                  *products_);
    values.resize(static_cast<std::size_t>(products_->n_pairs() * products_->n_g()));
    products_->read(view<Cplx>(values, n_l, options_.bands, products_->n_g()));
    return view<const Cplx>(values, n_l, options_.bands, products_->n_g());
  }

  const MeanField& field_;
  const SigmaOptions& options_;
  const std::vector<Perturbation>& perturbations_;
  FftBox box_;
  GwKernels& kernels_;
  Vec3 k_;
  BraPoint bra_;
  WavesAtPoint left_, right_;
  std::unique_ptr<const LoadedBands> left_loaded_, right_loaded_, bra_loaded_, ket_loaded_;
  std::unique_ptr<PairBlock> products_;
  std::vector<Coupling> couplings_;
  CoupledProducts inner_;
  std::vector<Cplx> left_values_, right_values_;
};

/// Makes the results of all perturbations at one k, with sums of the right shape that are 0.
std::vector<SigmaDerivativeAtK> empty_derivatives(int k_index, const SigmaOptions& options,
                                                  std::vector<double> energies_ry,
                                                  std::size_t n_perturbations) {
  const std::int64_t n = options.band_max - options.band_min + 1;
  const auto size = static_cast<std::size_t>(n * n);
  SigmaDerivativeAtK empty{.k_index = k_index,
                           .n = n,
                           .energy_ry = std::move(energies_ry),
                           .mean_field = {},
                           .sigma = {}};
  empty.sigma.exchange.resize(size);
  empty.sigma.correlation.resize(size * empty.energy_ry.size());
  empty.sigma.fixed_energies.resize(size * empty.energy_ry.size());
  return std::vector<SigmaDerivativeAtK>(n_perturbations, empty);
}

/// The step, with what all its sums share.
struct Step {
  const MeanField& field;
  const std::vector<DielectricMatrix>& epsilon;
  const SigmaOptions& options;
  const std::vector<Perturbation>& perturbations;
  const DeviceContext& context;

  GSphere bare_sphere(std::size_t iq) const {
    return make_g_sphere(field.crystal().bdot, epsilon[iq].at_gamma ? Vec3{} : epsilon[iq].q,
                         options.bare_cutoff_ry);
  }
  /// Adds all q of the star of one irreducible q.
  void add_star(std::size_t iq, DerivativeAtK& at_k, const std::vector<double>& energies_ry,
                std::vector<DerivativeSums>& sums) const;
};

void Step::add_star(std::size_t iq, DerivativeAtK& at_k, const std::vector<double>& energies_ry,
                    std::vector<DerivativeSums>& sums) const {
  ScreenedPoles w(field, epsilon[iq], options, context.coulomb);
  const GSphere bare = bare_sphere(iq);
  const std::vector<double> coulomb = averaged_coulomb(epsilon[iq], bare, context.coulomb);
  const double weight = 1.0 / field.zone_volume_bohr3();
  for (const ZonePoint& point : field.transfers().points()) {
    if (point.irreducible != static_cast<int>(iq)) continue;
    at_k.load_inner(point.k);
    add_correlation_derivative(w.at_point(point.k).view(), options.rules,
                               at_k.fill(point.k, w.sphere(), true), at_k.couplings(),
                               {energies_ry, weight}, sums);
    add_exchange_derivative(coulomb, at_k.fill(point.k, bare, false), at_k.couplings(), weight,
                            sums);
    context.progress.throw_if_cancelled();
  }
}

}  // namespace

std::vector<std::vector<SigmaDerivativeAtK>> sigma_derivatives(
    const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
    const SigmaOptions& options, const std::vector<Perturbation>& perturbations,
    const std::vector<double>& energies_ry, const DeviceContext& context) {
  check(field, options, perturbations);
  const Step step{field, epsilon, options, perturbations, context};
  const std::vector<double> energies =
      options.method == SigmaMethod::kCohsex ? std::vector<double>{0.0} : energies_ry;
  std::vector<IVec3> kept;
  for (std::size_t iq = 0; iq < epsilon.size(); ++iq)
    for (const IVec3& g : step.bare_sphere(iq).g) kept.push_back(g);
  const FftBox box = sum_box(field, kept);
  std::vector<std::vector<SigmaDerivativeAtK>> results(perturbations.size());
  for (const int ik : options.kpoints) {
    DerivativeAtK at_k(field, options, perturbations, ik, box, context.kernels);
    auto derivatives = empty_derivatives(ik, options, energies, perturbations.size());
    std::vector<DerivativeSums> sums;
    for (const SigmaDerivativeAtK& derivative : derivatives) sums.push_back(derivative.sigma);
    for (std::size_t iq = 0; iq < epsilon.size(); ++iq) step.add_star(iq, at_k, energies, sums);
    for (std::size_t p = 0; p < perturbations.size(); ++p) {
      derivatives[p].mean_field = at_k.outer_coupling(perturbations[p]);
      derivatives[p].sigma = std::move(sums[p]);
      results[p].push_back(std::move(derivatives[p]));
    }
  }
  return results;
}

}  // namespace quasi::gw
