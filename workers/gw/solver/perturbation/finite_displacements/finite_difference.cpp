#include "workers/gw/solver/perturbation/finite_displacements/finite_difference.hpp"

#include <memory>
#include <utility>

#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/filtered_pseudobands.hpp"
#include "workers/gw/solver/perturbation/finite_displacements/screening_at_rest.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

/// Holds the inner states of a displaced crystal at one k.
struct DisplacedStates {
  std::vector<double> energy_ry;
  std::vector<Cplx> coefficients;  ///< [n][component][G]
};

/// Returns the lowest eigenstates of a displaced crystal, on the plane waves of the states at rest.
DisplacedStates displaced_states(const MeanField& field, const PotentialOfCrystal& potential,
                                 const WavesAtPoint& at_rest, const Vec3& k, std::int64_t n_bands,
                                 GwKernels& kernels) {
  const std::vector<IVec3>& g = at_rest.waves.g;
  const std::int64_t order = at_rest.waves.coefficients.extent[1];
  const auto n = static_cast<std::size_t>(order);
  const GIndex index(g);
  std::vector<Cplx> h(n * n);
  for (std::size_t row = 0; row < n; ++row) {
    // `first` is the first row of the component of a spinor that has this row.
    const std::size_t i = row % g.size(), first = row - i;
    for (const auto& [difference, value] : potential.local)
      if (const std::int32_t j = index.find(g[i] - difference); j >= 0)
        h[row * n + first + static_cast<std::size_t>(j)] = value;
    const Vec3 wave = k + to_real(g[i]);
    h[row * n + row] += metric_dot(field.crystal().bdot, wave, wave);
  }
  if (potential.spin_orbit != nullptr) potential.spin_orbit->add_to(k, g, h.data());
  DisplacedStates states{std::vector<double>(static_cast<std::size_t>(n_bands)),
                         std::vector<Cplx>(static_cast<std::size_t>(n_bands * order))};
  kernels.dense().eigen_hermitian(view<const Cplx>(h, order, order),
                                  view<double>(states.energy_ry, n_bands),
                                  view<Cplx>(states.coefficients, n_bands, order));
  return states;
}

/// Appends the pseudobands of a displaced H to its protected states. They are made from the random
/// vectors of the crystal at rest.
void add_windows(const MeanField& field, const HamiltonianOperator& h, const WavesAtPoint& at_rest,
                 const FilteredPseudobands& random, GwKernels& kernels, DisplacedStates& states) {
  const PseudobandPlan& plan = random.plan;
  const RotatedWaves vectors = rotated_waves(random.factors, field.zone.operations(),
                                             at_rest.rotation, 0, 0, random.factors.n_bands);
  const std::vector<Cplx> windows = windows_of_vectors(
      plan, view<const Cplx>(states.coefficients, plan.kept, at_rest.waves.coefficients.extent[1]),
      vectors.coefficients, *kernels.hamiltonian().load(h));
  states.coefficients.insert(states.coefficients.end(), windows.begin(), windows.end());
  for (int band = plan.kept; band < plan.bands(); ++band)
    states.energy_ry.push_back(field.waves.energy(0, at_rest.rotation.irreducible, band));
}

/// Subtracts the closed sum at x from Σ_c of one block (docs/theory/gw.md 14.12). The closed sum
/// is that of empty states with one energy.
void subtract_closed_sum(const ScreeningAtRest& w, const BandBlock& block, double x_ry,
                         PairBlock& products, std::vector<Cplx>& sum) {
  BandBlock empty = block;
  empty.inner_ry.assign(empty.inner_ry.size(), -x_ry);
  empty.occupation.assign(empty.occupation.size(), 0.0);
  const auto size = static_cast<std::size_t>(block.n_l * block.n_l);
  std::vector<Cplx> closed(size);
  w.add(empty, std::vector<double>{0.0}, products, closed);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] -= closed[i % size];
}

/// Calculates Σ_lm(E) between the states at rest of one k, with the inner states of displaced
/// crystals.
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

  /// Adds the terms of all q of the star of one irreducible q to the sums of every potential.
  void add_star(const DielectricMatrix& epsilon, int iq,
                const std::vector<const PotentialOfCrystal*>& potentials,
                std::vector<std::vector<Cplx>>& sums) {
    ScreeningAtRest w(field_, epsilon, options_, context_);
    const GSphere bare = make_g_sphere(field_.crystal().bdot, epsilon.at_gamma ? Vec3{} : epsilon.q,
                                       options_.bare_cutoff_ry);
    const std::vector<double> coulomb = averaged_coulomb(epsilon, bare, context_.coulomb);
    for (const ZonePoint& point : field_.transfers().points()) {
      if (point.irreducible != iq) continue;
      w.move_to(point.k);
      const SpheresAtPoint spheres(field_, point.k, w.sphere(), bare, box_, context_.kernels);
      const Vec3 k = k_ - point.k;
      const WavesAtPoint at_rest = waves_at(field_, k, 0, 0, options_.bands, box_);
      for (std::size_t i = 0; i < potentials.size(); ++i) {
        const DisplacedStates states = inner_states(*potentials[i], at_rest, k);
        const auto inner = context_.kernels.pair_products().load_bands(
            box_,
            view<const Cplx>(states.coefficients, options_.bands,
                             at_rest.waves.coefficients.extent[1]),
            view<const std::int32_t>(at_rest.box_index, std::ssize(at_rest.waves.g)));
        fill(*inner, *spheres.screened);
        const BandBlock bands{.n_l = n_,
                              .n_b = options_.bands,
                              .inner_ry = states.energy_ry,
                              .occupation = occupation_,
                              .weight = weight()};
        w.add(bands, energies_ry_, *block_, sums[i]);
        if (const auto x_ry = closed_x_ry(options_, pseudobands_))
          subtract_closed_sum(w, bands, *x_ry, *block_, sums[i]);
        fill(*inner, *spheres.bare);
        add_exchange_matrix(*block_, coulomb, field_.n_occupied, weight(), sums[i]);
        context_.progress.throw_if_cancelled();
      }
    }
  }

 private:
  double weight() const { return 1.0 / field_.zone_volume_bohr3(); }

  DisplacedStates inner_states(const PotentialOfCrystal& potential, const WavesAtPoint& at_rest,
                               const Vec3& k) const {
    const int n_bands = pseudobands_ != nullptr ? pseudobands_->plan.kept : options_.bands;
    DisplacedStates states =
        displaced_states(field_, potential, at_rest, k, n_bands, context_.kernels);
    if (pseudobands_ == nullptr) return states;
    HamiltonianParts parts = local_parts(field_.crystal(), k, at_rest.waves.g, potential.local);
    if (potential.spin_orbit != nullptr) potential.spin_orbit->add_to(k, at_rest.waves.g, parts);
    const HamiltonianOperator h(std::move(parts));
    add_windows(field_, h, at_rest, *pseudobands_, context_.kernels, states);
    return states;
  }

  void fill(const LoadedBands& inner, const LoadedSphere& sphere) {
    context_.kernels.pair_products().fill({*outer_, {0, n_}}, {inner, {0, options_.bands}}, sphere,
                                          *block_);
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
  std::vector<const PotentialOfCrystal*> potentials;
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
