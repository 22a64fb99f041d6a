// First orders of filtered pseudobands, against finite displacements with the same random vectors.

#include "workers/gw/solver/perturbation/response/pseudoband_response.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/pseudoband_crystals.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"
#include "workers/gw/solver/mean_field/filtered_pseudobands.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

/// GaAs at Γ. H is complex at rest and displaced, so that both have the same random vectors.
EmpiricalCrystal gallium_arsenide() {
  EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  crystal.name = "gaas";
  crystal.k_grid = {1, 1, 1};
  crystal.by_velocity = true;
  return crystal;
}

/// Gives a mean field the lowest states of a potential, and its Hamiltonian.
void take_potential(const PotentialElements& potential, GwKernels& kernels, MeanField& field) {
  field.hamiltonian = [potential](const Wavefunctions& waves, int, int ik) {
    const auto at = static_cast<std::size_t>(ik);
    return local_parts(waves.header.crystal, waves.k[at], waves.waves[at].g, potential);
  };
  const std::vector<IVec3>& g = field.waves.waves[0].g;
  const auto n = static_cast<std::int64_t>(g.size());
  const GIndex index(g);
  std::vector<Cplx> h(static_cast<std::size_t>(n * n));
  for (std::size_t i = 0; i < g.size(); ++i) {
    for (const auto& [difference, value] : potential)
      if (const std::int32_t j = index.find(g[i] - difference); j >= 0)
        h[i * g.size() + static_cast<std::size_t>(j)] += value;
    const Vec3 wave = to_real(g[i]);
    h[i * g.size() + i] += metric_dot(field.crystal().bdot, wave, wave);
  }
  std::vector<Cplx> states(static_cast<std::size_t>(field.waves.n_bands * n));
  kernels.dense().eigen_hermitian(view<const Cplx>(h, n, n),
                                  view<double>(field.waves.energy_ry, field.waves.n_bands),
                                  view<Cplx>(states, field.waves.n_bands, n));
  field.waves.waves[0].coefficients[0] = states;
}

/// Σ_lm(E) = Σ_x + Σ_c of GaAs at Γ, between the states at rest, with given inner states.
class SigmaOfInnerStates {
 public:
  SigmaOfInnerStates(const SmallSilicon& rest, const SigmaOptions& options)
      : rest_(rest), options_(options), box_(sum_box(rest.field, rest.field.waves.header.g)) {}

  std::vector<Cplx> of(const Wavefunctions& inner, double energy_ry) const {
    const MeanField& field = rest_.field;
    const DielectricMatrix& epsilon = rest_.epsilon.front();
    const ScreeningAtQ w = screening_at(field, epsilon, options_.screened_cutoff_ry, rest_.coulomb);
    const auto screened = products(inner, w.sphere, true);
    const std::int64_t n = screened->n_left(), n_b = inner.n_bands;
    std::vector<double> occupation(static_cast<std::size_t>(n_b));
    for (int i = 0; i < field.n_occupied; ++i) occupation[static_cast<std::size_t>(i)] = 1.0;
    const double weight = 1.0 / field.zone_volume_bohr3();
    const PlasmonPoleModel poles =
        plasmon_poles(field, w, options_, rest_.coulomb, wing_factors(w.epsilon));
    const std::vector<double> energies{energy_ry};
    std::vector<Cplx> sum(static_cast<std::size_t>(n * n));
    rest_.kernels->pole_sums()
        .load(poles.view(), options_.rules)
        ->add_offdiagonal(
            *screened,
            {view<const double>(energies, 1), view<const double>(inner.energy_ry, n_b),
             view<const double>(occupation, n_b), weight},
            {}, view<Cplx>(sum, 1, n, n));
    const GSphere bare = make_g_sphere(field.crystal().bdot, {}, options_.bare_cutoff_ry);
    const std::vector<double> v = averaged_coulomb(epsilon, bare, rest_.coulomb);
    const auto block = products(inner, bare, false);
    std::vector<Cplx> m(static_cast<std::size_t>(n * n_b * block->n_g()));
    block->read(view<Cplx>(m, n, n_b, block->n_g()));
    const auto at = view<const Cplx>(m, n, n_b, block->n_g());
    for (std::int64_t l = 0; l < n; ++l)
      for (std::int64_t k = 0; k < n; ++k)
        for (std::int64_t i = 0; i < field.n_occupied; ++i)
          for (std::int64_t g = 0; g < block->n_g(); ++g)
            sum[static_cast<std::size_t>(l * n + k)] -=
                weight * v[static_cast<std::size_t>(g)] * at(l, i, g) * std::conj(at(k, i, g));
    return sum;
  }

 private:
  std::unique_ptr<PairBlock> products(const Wavefunctions& inner, const GSphere& sphere,
                                      bool with_phases) const {
    auto& kernels = rest_.kernels->pair_products();
    const SphereAtPoint at = rotated_sphere(rest_.field, {}, sphere, box_);
    const auto n_g = std::ssize(at.box_index);
    const auto kept =
        kernels.load_sphere(box_, view<const std::int32_t>(at.box_index, n_g),
                            with_phases ? view<const Cplx>(at.factor, n_g) : View<const Cplx, 1>{});
    const WavesAtPoint outer =
        waves_at(rest_.field, {}, 0, options_.band_min - 1, options_.band_max, box_);
    const auto left = load(*rest_.kernels, outer);
    const StateCoefficients& c = inner.waves[0].coefficients[0];
    const std::int64_t n_pw = std::ssize(inner.waves[0].g);
    const auto right = kernels.load_bands(box_, {c.data(), {inner.n_bands, n_pw}},
                                          view<const std::int32_t>(outer.box_index, n_pw));
    auto block = kernels.make_block();
    kernels.fill({*left, {0, options_.band_max - options_.band_min + 1}},
                 {*right, {0, inner.n_bands}}, *kept, *block);
    return block;
  }

  const SmallSilicon& rest_;
  const SigmaOptions& options_;
  FftBox box_;
};

/// Holds GaAs with filtered pseudobands, and their Σ after a displacement of an atom.
struct DisplacedPseudobands {
  EmpiricalCrystal crystal = gallium_arsenide();
  SmallSilicon rest{crystal};
  PseudobandPlan plan;
  SigmaOptions options;
  Vec3 direction{0.6, 0.0, 0.8};

  DisplacedPseudobands() {
    take_potential(empirical_potential(crystal), *rest.kernels, rest.field);
    plan = plan_filtered_pseudobands(
        rest.field, {.vectors = 2, .protected_ry = 0.5, .ratio = 0.3, .seed = 3}, true);
    options = rest.options(5);
    options.bands = plan.bands();
    options.kpoints = {0};
    options.rules = {.half_width_ry = 0.0, .max_ratio = 1e300, .screened_exchange_cut = 1e300};
    options.slope = false;
  }
  Wavefunctions made(const MeanField& field) const {
    return filtered_pseudobands(field, plan, PseudobandUse::kSelfEnergy,
                                rest.kernels->hamiltonian());
  }
  std::vector<Cplx> sigma(double step_bohr, double energy_ry) const {
    MeanField field = SmallSilicon(crystal).field;
    take_potential(displaced_potential(crystal, field.crystal(), 1, step_bohr * direction),
                   *rest.kernels, field);
    return SigmaOfInnerStates(rest, options).of(made(field), energy_ry);
  }
};

// ∂Σ of the protected states and of the windows is the derivative of Σ with pseudobands of the
// same random vectors. Richardson's rule of steps h and 2h leaves h⁴. 1e-5 eV/Bohr.
TEST(PseudobandResponse, IsThatOfFiniteDisplacements) {
  DisplacedPseudobands silicon;
  EXPECT_GT(silicon.plan.kept, 5);
  EXPECT_GT(silicon.plan.bands(), silicon.plan.kept + 10);
  const double energy_ry = midgap_ry(silicon.rest.field, 0) + 0.03, h = 2e-3;
  const auto up = silicon.sigma(h, energy_ry), down = silicon.sigma(-h, energy_ry),
             up2 = silicon.sigma(2 * h, energy_ry), down2 = silicon.sigma(-2 * h, energy_ry);
  const std::vector<Perturbation> perturbations{
      atom_displacement(silicon.crystal, silicon.rest.field.crystal(), 0, {1, 0, 0}),
      atom_displacement(silicon.crystal, silicon.rest.field.crystal(), 1, silicon.direction)};
  silicon.rest.field.waves = silicon.made(silicon.rest.field);
  const StateResponse response{empirical_potential(silicon.crystal), 1e-12};
  const std::vector<double> energies_ry{energy_ry};
  SilentProgress silent;
  DeviceTeam team(*silicon.rest.kernels);
  Checkpoint none;
  const Wavefunctions factors =
      vectors_of_filter(silicon.rest.field, silicon.plan, PseudobandUse::kSelfEnergy);
  const FilteredPseudobands random{silicon.plan, factors};
  const auto found =
      sigma_derivatives(silicon.rest.field, silicon.rest.epsilon, silicon.options,
                        DerivativeRequest{perturbations, energies_ry, nullptr, &response, &random},
                        StepContext{silicon.rest.coulomb, team, none, silent});
  const SigmaDerivativeAtK& at = found[1][0];
  double largest = 0.0;
  for (std::int64_t l = 0; l < at.n; ++l)
    for (std::int64_t m = 0; m < at.n; ++m) {
      const auto i = static_cast<std::size_t>(l * at.n + m);
      const Cplx difference = (8.0 * (up[i] - down[i]) - (up2[i] - down2[i])) / (12.0 * h);
      EXPECT_LT(std::abs(at.at(0, l, m) - difference) * kRydberg_ev, 1e-5)
          << l << ' ' << m << ' ' << at.at(0, l, m) << ' ' << difference;
      largest = std::max(largest, std::abs(difference));
    }
  EXPECT_GT(largest * kRydberg_ev, 0.1);
}

/// Returns ∂Σ_lm with every plane wave as a random vector, so that it has no noise, Ry/Bohr.
SigmaDerivativeAtK of_every_plane_wave(SmallSilicon& silicon, PseudobandPlan plan,
                                       SigmaOptions options,
                                       const std::vector<Perturbation>& perturbations,
                                       const std::vector<double>& energies_ry,
                                       const StateResponse& response) {
  MeanField field = silicon.field;
  field.waves = test::of_every_plane_wave(silicon.field, plan, PseudobandUse::kSelfEnergy);
  options.bands = plan.bands();
  const std::vector<IVec3>& g = field.waves.waves[0].g;
  Wavefunctions factors = without_states(field.waves, static_cast<int>(g.size()));
  std::vector<Cplx> unit(g.size() * g.size());
  for (std::size_t i = 0; i < g.size(); ++i) unit[i * (g.size() + 1)] = 1.0;
  factors.waves.push_back({.g = g, .coefficients = {std::move(unit)}});
  const FilteredPseudobands random{plan, factors};
  SilentProgress silent;
  DeviceTeam team(*silicon.kernels);
  Checkpoint none;
  return sigma_derivatives(
      field, silicon.epsilon, options,
      DerivativeRequest{perturbations, energies_ry, nullptr, &response, &random},
      StepContext{silicon.coulomb, team, none, silent})[0][0];
}

// The windows hold all states if every plane wave is a vector, and the first order is that of the
// sum over all eigenstates. The identity is known to 1e-3 and elements are up to 0.2 eV/Bohr, which
// leaves 2e-4. The closed sum does not move, so that it changes ∂Σ by no more.
TEST(PseudobandResponse, EveryPlaneWaveGivesTheSumOverAllStates) {
  EmpiricalCrystal crystal = gallium_arsenide();
  crystal.bands = 65;
  SmallSilicon silicon(crystal);
  take_potential(empirical_potential(crystal), *silicon.kernels, silicon.field);
  ASSERT_EQ(silicon.field.waves.waves[0].g.size(), 65u);
  SigmaOptions options = silicon.options(5);
  options.kpoints = {0};
  options.slope = false;
  const std::vector<Perturbation> perturbations{
      atom_displacement(crystal, silicon.field.crystal(), 1, {0.6, 0.0, 0.8})};
  const std::vector<double> energies_ry{midgap_ry(silicon.field, 0) + 0.03};
  SilentProgress silent;
  const SigmaDerivativeAtK exact =
      sigma_derivatives(silicon.field, silicon.epsilon, options, perturbations, energies_ry,
                        {silicon.coulomb, *silicon.kernels, silent})[0][0];
  const StateResponse response{empirical_potential(crystal), 1e-12};
  const PseudobandPlan plan =
      plan_filtered_pseudobands(silicon.field, {.vectors = 1, .protected_ry = 0.5}, true);
  const auto open =
      of_every_plane_wave(silicon, plan, options, perturbations, energies_ry, response);
  options.closed_sum_x_ry = kClosedSumX_ry;
  const auto closed =
      of_every_plane_wave(silicon, plan, options, perturbations, energies_ry, response);
  double largest = 0.0;
  for (std::int64_t l = 0; l < exact.n; ++l)
    for (std::int64_t m = 0; m < exact.n; ++m) {
      EXPECT_LT(std::abs(closed.at(0, l, m) - exact.at(0, l, m)) * kRydberg_ev, 2e-4);
      EXPECT_LT(std::abs(closed.at(0, l, m) - open.at(0, l, m)) * kRydberg_ev, 2e-4);
      largest = std::max(largest, std::abs(exact.at(0, l, m)) * kRydberg_ev);
    }
  EXPECT_GT(largest, 0.05);
}

}  // namespace
}  // namespace quasi::gw
