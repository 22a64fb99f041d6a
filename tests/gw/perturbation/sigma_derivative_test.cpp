#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/state_coupling.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

const Vec3 kAlongZ{0.0, 0.0, 1.0};

/// Options with the rules near the poles switched off, because they make Σ discontinuous.
SigmaOptions smooth_options(const SmallSilicon& silicon) {
  SigmaOptions options = silicon.options();
  options.rules = {.half_width_ry = 0.0, .max_ratio = 1e300, .screened_exchange_cut = 1e300};
  options.slope = false;
  options.reduce_q = false;
  return options;
}

/// ∂V of a smooth local potential at any wave vector: −i (Q·e) e^{−Q²} e^{−iQ·τ}.
Perturbation smooth_perturbation(const Crystal& crystal, const Vec3& p) {
  Perturbation perturbation{.name = "smooth", .p = p, .potential = {}};
  perturbation.potential = [bdot = crystal.bdot, p](const Vec3& /*k*/,
                                                    const std::vector<IVec3>& bra,
                                                    const std::vector<IVec3>& ket) {
    std::vector<Cplx> matrix;
    for (const IVec3& g : bra)
      for (const IVec3& h : ket) {
        const Vec3 q = p + to_real(g - h);
        const double along = 0.7 * q[0] + 0.2 * q[1] - 0.5 * q[2];
        const double phase = 2.0 * kPi * (0.11 * q[0] + 0.23 * q[1] + 0.31 * q[2]);
        matrix.push_back(Cplx(0.0, -along) * std::exp(-0.3 * metric_dot(bdot, q, q)) *
                         std::polar(1.0, -phase));
      }
    return matrix;
  };
  return perturbation;
}

/// The inner states of one k after a displacement by h, within the space of the states at rest:
/// eigenstates of diag(E) + h V. The first order of Σ in h is then that of the same bands.
struct DisplacedStates {
  std::vector<double> energy_ry;
  std::vector<Cplx> rotation;  ///< rows: displaced states in the states at rest
};
DisplacedStates displaced(const std::vector<double>& energy_ry, const std::vector<Cplx>& coupling,
                          double step_bohr, GwKernels& kernels) {
  const std::size_t n = energy_ry.size();
  std::vector<Cplx> h(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      h[i * n + j] = step_bohr * coupling[i * n + j] + (i == j ? energy_ry[i] : 0.0);
  DisplacedStates states{std::vector<double>(n), std::vector<Cplx>(n * n)};
  kernels.dense().eigen_hermitian(view<const Cplx>(h, n, n), view<double>(states.energy_ry, n),
                                  view<Cplx>(states.rotation, n, n));
  return states;
}

/// Σ_lm(E) = Σ_x + Σ_c between the states at rest at one outer k, with displaced inner states.
class SigmaOfDisplacedStates {
 public:
  SigmaOfDisplacedStates(const SmallSilicon& silicon, const SigmaOptions& options,
                         const Perturbation& perturbation, int k_index, double energy_ry)
      : silicon_(silicon),
        options_(options),
        perturbation_(perturbation),
        k_(silicon.field.waves.k[static_cast<std::size_t>(k_index)]),
        energy_ry_(energy_ry),
        n_(options.band_max - options.band_min + 1) {}

  std::vector<Cplx> at(double step_bohr) {
    sum_.assign(static_cast<std::size_t>(n_ * n_), Cplx{});
    for (std::size_t iq = 0; iq < silicon_.epsilon.size(); ++iq) add_star(iq, step_bohr);
    return sum_;
  }

 private:
  void add_star(std::size_t iq, double step_bohr) {
    const MeanField& field = silicon_.field;
    const DielectricMatrix& epsilon = silicon_.epsilon[iq];
    const ScreeningAtQ w =
        screening_at(field, epsilon, options_.screened_cutoff_ry, silicon_.coulomb);
    const GSphere bare = make_g_sphere(field.crystal().bdot, epsilon.at_gamma ? Vec3{} : epsilon.q,
                                       options_.bare_cutoff_ry);
    const std::vector<double> v = averaged_coulomb(epsilon, bare, silicon_.coulomb);
    for (const ZonePoint& point : field.transfers().points()) {
      if (point.irreducible != static_cast<int>(iq)) continue;
      load_inner(point.k, step_bohr);
      add_correlation(w, *products(point.k, w.sphere, true));
      add_exchange(*products(point.k, bare, false), v);
    }
  }
  void add_correlation(const ScreeningAtQ& w, PairBlock& block) {
    const auto n_b = static_cast<std::int64_t>(states_.energy_ry.size());
    std::vector<double> occupation(static_cast<std::size_t>(n_b));
    for (int n = 0; n < silicon_.field.n_occupied; ++n)
      occupation[static_cast<std::size_t>(n)] = 1.0;
    const double weight = 1.0 / silicon_.field.zone_volume_bohr3();
    const WingFactors wings = wing_factors(w.epsilon);
    if (options_.method == SigmaMethod::kContour) {
      SigmaMatrixAtK found{.n = n_, .energy_ry = {energy_ry_}, .x_ry = {}, .correlation_ry = sum_};
      add_contour_matrix({w, wings, SubspaceOfW{}}, options_.contour,
                         {.n_l = n_,
                          .n_b = n_b,
                          .inner_ry = states_.energy_ry,
                          .occupation = occupation,
                          .weight = weight},
                         block, found);
      sum_ = found.correlation_ry;
      return;
    }
    const PlasmonPoleModel poles =
        plasmon_poles(silicon_.field, w, options_, silicon_.coulomb, wings);
    const std::vector<double> energies{energy_ry_};
    silicon_.kernels->pole_sums()
        .load(poles.view(), options_.rules)
        ->add_offdiagonal(
            block,
            {view<const double>(energies, 1), view<const double>(states_.energy_ry, n_b),
             view<const double>(occupation, n_b), weight},
            {}, view<Cplx>(sum_, 1, n_, n_));
  }
  void load_inner(const Vec3& q, double step_bohr) {
    const MeanField& field = silicon_.field;
    box_ = sum_box(field, field.waves.header.g);
    inner_ = waves_at(field, k_ - q, 0, 0, options_.bands, box_);
    std::vector<double> energy_ry;
    for (int n = 0; n < options_.bands; ++n)
      energy_ry.push_back(field.waves.energy(0, inner_.rotation.irreducible, n));
    const auto coupling = state_coupling(perturbation_, k_ - q, inner_, IVec3{}, inner_);
    states_ = displaced(energy_ry, coupling, step_bohr, *silicon_.kernels);
  }
  std::unique_ptr<PairBlock> products(const Vec3& q, const GSphere& sphere, bool with_phases) {
    const auto n_b = static_cast<std::int64_t>(states_.energy_ry.size()),
               n_pw = inner_.waves.coefficients.extent[1];
    std::vector<Cplx> rotated(static_cast<std::size_t>(n_b * n_pw));
    for (std::int64_t i = 0; i < n_b; ++i)
      for (std::int64_t j = 0; j < n_b; ++j)
        for (std::int64_t g = 0; g < n_pw; ++g)
          rotated[static_cast<std::size_t>(i * n_pw + g)] +=
              states_.rotation[static_cast<std::size_t>(i * n_b + j)] *
              inner_.waves.coefficients(j, g);
    auto& kernels = silicon_.kernels->pair_products();
    const SphereAtPoint at = rotated_sphere(silicon_.field, q, sphere, box_);
    const auto n_g = static_cast<std::int64_t>(at.box_index.size());
    const auto on_device =
        kernels.load_sphere(box_, view<const std::int32_t>(at.box_index, n_g),
                            with_phases ? view<const Cplx>(at.factor, n_g) : View<const Cplx, 1>{});
    const auto left = load(*silicon_.kernels, waves_at(silicon_.field, k_, 0, options_.band_min - 1,
                                                       options_.band_max, box_));
    const auto right = kernels.load_bands(box_, view<const Cplx>(rotated, n_b, n_pw),
                                          view<const std::int32_t>(inner_.box_index, n_pw));
    auto block = kernels.make_block();
    kernels.fill({*left, {0, n_}}, {*right, {0, n_b}}, *on_device, *block);
    return block;
  }
  void add_exchange(const PairBlock& block, const std::vector<double>& v) {
    const std::int64_t n_g = block.n_g(), n_b = block.n_right();
    std::vector<Cplx> m(static_cast<std::size_t>(n_ * n_b * n_g));
    block.read(view<Cplx>(m, n_, n_b, n_g));
    const auto at = view<const Cplx>(m, n_, n_b, n_g);
    for (std::int64_t l = 0; l < n_; ++l)
      for (std::int64_t k = 0; k < n_; ++k)
        for (std::int64_t n = 0; n < silicon_.field.n_occupied; ++n)
          for (std::int64_t g = 0; g < n_g; ++g)
            sum_[static_cast<std::size_t>(l * n_ + k)] -= v[static_cast<std::size_t>(g)] *
                                                          at(l, n, g) * std::conj(at(k, n, g)) /
                                                          silicon_.field.zone_volume_bohr3();
  }

  const SmallSilicon& silicon_;
  const SigmaOptions& options_;
  const Perturbation& perturbation_;
  Vec3 k_;
  double energy_ry_;
  std::int64_t n_;
  std::array<int, 3> box_{};
  WavesAtPoint inner_;
  DisplacedStates states_;
  std::vector<Cplx> sum_;
};

/// Compares the derivative at one energy with finite displacements at every k of the options.
/// Richardson's rule of steps h and 2h leaves h⁴ and the rounding of Σ over h.
/// @return the largest difference of an element and its adjoint, Ry/Bohr
double compare_with_displacements(const SmallSilicon& silicon, const SigmaOptions& options,
                                  double energy_ry, double limit_ry) {
  const Perturbation perturbation =
      atom_displacement(SmallSilicon::small_crystal(), silicon.field.crystal(), 1, kAlongZ);
  SilentProgress silent;
  const auto derivative =
      sigma_derivatives(silicon.field, silicon.epsilon, options, {perturbation}, {energy_ry},
                        {silicon.coulomb, *silicon.kernels, silent});
  EXPECT_EQ(derivative.size(), 1u);
  EXPECT_EQ(derivative[0].size(), options.kpoints.size());
  double decay = 0.0;
  for (const SigmaDerivativeAtK& at : derivative[0]) {
    SigmaOfDisplacedStates sigma(silicon, options, perturbation, at.k_index, energy_ry);
    const double h = 2e-3;
    const std::vector<Cplx> up = sigma.at(h), down = sigma.at(-h), up2 = sigma.at(2 * h),
                            down2 = sigma.at(-2 * h);
    double largest = 0.0;
    for (std::int64_t l = 0; l < at.n; ++l)
      for (std::int64_t m = 0; m < at.n; ++m) {
        const auto i = static_cast<std::size_t>(l * at.n + m);
        const Cplx difference = (8.0 * (up[i] - down[i]) - (up2[i] - down2[i])) / (12.0 * h);
        EXPECT_LT(std::abs(at.at(0, l, m) - difference), limit_ry)
            << at.k_index << ' ' << l << ' ' << m << ' ' << at.at(0, l, m) << ' ' << difference;
        largest = std::max(largest, std::abs(difference));
        decay = std::max(decay, std::abs(at.at(0, l, m) - std::conj(at.at(0, m, l))));
      }
    EXPECT_GT(largest, 0.01) << at.k_index;
  }
  return decay;
}

// ∂Σ of a displaced atom is the derivative of Σ with displaced inner states, on a grid of k
// with all its symmetry, at a point without inversion of its own too. The finite difference uses
// the product's Σ matrix, which shares no sum with the derivative. The limit is 1e-7 Ry/Bohr; the
// elements are 0.1.
TEST(SigmaDerivative, IsThatOfFiniteDisplacements) {
  SmallSilicon silicon;
  compare_with_displacements(silicon, smooth_options(silicon), midgap_ry(silicon.field, 0) + 0.07,
                             1e-7);
}

// Contour deformation has the derivative of its own Σ. In the gap no residue is left, and ∂Σ is
// Hermitian. Among the occupied bands residues make it complex, and points of the real axis are
// interpolated. No state crosses a point of that axis within 4e-3 Bohr here.
TEST(SigmaDerivative, ByContourIsThatOfFiniteDisplacements) {
  SmallSilicon silicon;
  SigmaOptions options = smooth_options(silicon);
  options.method = SigmaMethod::kContour;
  options.contour.imaginary_ry = imaginary_grid(12, 2.0);
  for (int i = 0; i <= 30; ++i) options.contour.real_ry.push_back(0.5 * i / kRydberg_ev);
  silicon.epsilon = silicon.screening(
      silicon.field, options.contour.frequencies_ry(0.1 / kRydberg_ev, 1e-4 / kRydberg_ev));
  const double midgap = midgap_ry(silicon.field, 0);
  EXPECT_LT(compare_with_displacements(silicon, options, midgap + 0.01, 1e-7), 1e-12);
  EXPECT_GT(compare_with_displacements(silicon, options, midgap - 0.31, 1e-7), 1e-3);
}

// A perturbation of p and its adjoint of −p: ∂Σ_lm(k → k+p) = conj ∂Σ_ml(k+p → k), because W is
// Hermitian. k, k+p and their inner states differ, so that every index of the sum matters. 1e-12
// Ry/Bohr: rounding of 1e5 terms.
TEST(SigmaDerivative, OfAnAdjointPerturbationIsTheAdjoint) {
  SmallSilicon silicon;
  SigmaOptions options = smooth_options(silicon);
  const Vec3 p = silicon.field.waves.k[1];  // from Γ to a listed point
  options.kpoints.clear();
  for (int ik = 0; ik < silicon.field.waves.n_k(); ++ik) options.kpoints.push_back(ik);
  SilentProgress silent;
  const auto of = [&](const Vec3& wave_vector) {
    return sigma_derivatives(silicon.field, silicon.epsilon, options,
                             {smooth_perturbation(silicon.field.crystal(), wave_vector)}, {0.2},
                             {silicon.coulomb, *silicon.kernels, silent})[0];
  };
  const auto forth = of(p), back = of(Vec3{} - p);
  int compared = 0;
  for (const SigmaDerivativeAtK& at : forth) {
    const Vec3 bra = bra_point(silicon.field.waves.k[static_cast<std::size_t>(at.k_index)], p).k;
    for (const SigmaDerivativeAtK& other : back) {
      // The states at k + p are rotated ones unless k + p is in the list of irreducible points.
      const Vec3 listed = silicon.field.waves.k[static_cast<std::size_t>(other.k_index)];
      if (listed != bra) continue;
      ++compared;
      double largest = 0.0;
      for (std::int64_t l = 0; l < at.n; ++l)
        for (std::int64_t m = 0; m < at.n; ++m) {
          EXPECT_LT(std::abs(at.at(0, l, m) - std::conj(other.at(0, m, l))), 1e-12);
          largest = std::max(largest, std::abs(at.at(0, l, m)));
        }
      EXPECT_GT(largest, 1e-3);
    }
  }
  EXPECT_GE(compared, 1);
}

// Silicon has an inversion centre between its atoms, which exchanges them. It maps the states of Γ
// onto themselves and reverses a rigid shift, so that diagonal elements of the sum over both atoms
// vanish at fixed W. Without inversion they do not, because W does not move with the atoms.
// 1e-9 eV/Bohr.
TEST(SigmaDerivative, DiagonalElementsObeyTheAcousticSumRule) {
  EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  crystal.k_grid = {1, 1, 1};
  crystal.bands = 59;  // all plane waves below 5 Ry
  crystal.wavefunction_cutoff_ry = 5.0;
  crystal.by_velocity = true;
  SmallSilicon silicon(crystal);
  SigmaOptions options = smooth_options(silicon);
  ASSERT_EQ(options.bands, static_cast<int>(silicon.field.waves.waves[0].g.size()));
  std::vector<Perturbation> perturbations;
  for (const int atom : {0, 1})
    perturbations.push_back(
        atom_displacement(crystal, silicon.field.crystal(), atom, {0.6, 0.0, 0.8}));
  SilentProgress silent;
  const auto derivative = sigma_derivatives(silicon.field, silicon.epsilon, options, perturbations,
                                            {0.3}, {silicon.coulomb, *silicon.kernels, silent});
  const SigmaDerivativeAtK &a = derivative[0][0], &b = derivative[1][0];
  double largest = 0.0;
  for (std::int64_t l = 0; l < a.n; ++l) {
    EXPECT_LT(std::abs(a.at(0, l, l) + b.at(0, l, l)) * kRydberg_ev, 1e-9) << l;
    for (std::int64_t m = 0; m < a.n; ++m) largest = std::max(largest, std::abs(a.at(0, l, m)));
  }
  EXPECT_GT(largest, 0.01);
}

// Static COHSEX has a first order, too: only pairs of an occupied and an empty state remain, and
// the poles at infinity add nothing else. The elements are those of the sum with (f_n − f_n') W.
TEST(SigmaDerivative, OfStaticCohsexHasNoPairsOfOneOccupation) {
  SmallSilicon silicon;
  SigmaOptions options = smooth_options(silicon);
  options.method = SigmaMethod::kCohsex;
  options.kpoints = {0};
  SilentProgress silent;
  const auto derivative = sigma_derivatives(
      silicon.field, silicon.epsilon, options,
      {atom_displacement(SmallSilicon::small_crystal(), silicon.field.crystal(), 0, kAlongZ)},
      {0.1, 0.2}, {silicon.coulomb, *silicon.kernels, silent});
  const SigmaDerivativeAtK& at = derivative[0][0];
  ASSERT_EQ(at.energy_ry.size(), 1u);
  double largest = 0.0;
  for (std::size_t i = 0; i < at.sigma.correlation.size(); ++i) {
    EXPECT_LT(std::abs(at.sigma.correlation[i] - at.sigma.fixed_energies[i]), 1e-15);
    largest = std::max(largest, std::abs(at.sigma.correlation[i]));
  }
  EXPECT_GT(largest, 0.01);
}

TEST(SigmaDerivative, RefusesWhatItDoesNotHave) {
  SmallSilicon silicon;
  SilentProgress silent;
  const DeviceContext context{silicon.coulomb, *silicon.kernels, silent};
  const Crystal& crystal = silicon.field.crystal();
  const auto perturbation = atom_displacement(SmallSilicon::small_crystal(), crystal, 0, kAlongZ);
  const auto message_of = [&](const SigmaOptions& options,
                              const std::vector<Perturbation>& perturbations) {
    try {
      sigma_derivatives(silicon.field, silicon.epsilon, options, perturbations, {0.1}, context);
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  SigmaOptions options = smooth_options(silicon);
  options.method = SigmaMethod::kRealAxis;
  EXPECT_NE(message_of(options, {perturbation}).find("plasmon poles"), std::string::npos);
  options = smooth_options(silicon);
  options.invalid = InvalidMode::kImaginary;
  EXPECT_NE(message_of(options, {perturbation}).find("invalid_modes"), std::string::npos);
  options = smooth_options(silicon);
  EXPECT_NE(message_of(options, {perturbation, smooth_perturbation(crystal, {0.5, 0, 0})})
                .find("another wave vector"),
            std::string::npos);
  EXPECT_THROW(atom_displacement(SmallSilicon::small_crystal(), crystal, 2, kAlongZ), InvalidInput);
  EmpiricalCrystal deformed;
  deformed.deformation[0][0] = 1.01;
  EXPECT_THROW(atom_displacement(deformed, crystal, 0, kAlongZ), InvalidInput);
}

}  // namespace
}  // namespace quasi::gw
