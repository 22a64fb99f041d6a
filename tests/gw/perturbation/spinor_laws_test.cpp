// Tests laws of first orders of states of two components (docs/theory/gw.md 15.5): time reversal,
// independence of the choice of Kramers partners and of the device, and the splitting of a
// coupling.

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "tests/gw/support/coupled_crystal.hpp"
#include "tests/support/every_device.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/response/sternheimer.hpp"

namespace quasi::gw {
namespace {

using test::BasisFreeSums;
using test::coupled_crystal;
using test::SmallSilicon;

const Vec3 kDirection{0.6, 0.0, 0.8};

/// Returns T_l'l = ⟨l'|Θ|l⟩ of time reversal Θ = iσ_y K between states of one k ≡ −k.
std::vector<Cplx> reversal(const Wavefunctions& waves, int k_index, std::int64_t n) {
  const KPointWaves& at = waves.waves[static_cast<std::size_t>(k_index)];
  const std::size_t n_pw = at.g.size(), count = static_cast<std::size_t>(n);
  const GIndex index(at.g);
  const std::span<const Cplx> c(at.coefficients[0]);
  IVec3 twice{};
  for (int i = 0; i < 3; ++i)
    twice[i] = static_cast<int>(
        std::lround(2.0 * waves.k[static_cast<std::size_t>(k_index)][static_cast<std::size_t>(i)]));
  std::vector<Cplx> t(count * count);
  for (std::size_t i = 0; i < n_pw; ++i) {
    const auto j = static_cast<std::size_t>(index.find(IVec3{} - at.g[i] - twice));
    for (std::size_t bra = 0; bra < count; ++bra)
      for (std::size_t ket = 0; ket < count; ++ket)
        t[bra * count + ket] +=
            std::conj(c[2 * bra * n_pw + i]) * std::conj(c[(2 * ket + 1) * n_pw + j]) -
            std::conj(c[(2 * bra + 1) * n_pw + i]) * std::conj(c[2 * ket * n_pw + j]);
  }
  return t;
}

/// Returns the largest element of G T − T G*, and of G itself.
std::pair<double, double> defect(const std::vector<Cplx>& g, const std::vector<Cplx>& t,
                                 std::size_t n) {
  std::pair<double, double> largest{0.0, 0.0};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      Cplx sum;
      for (std::size_t x = 0; x < n; ++x)
        sum += g[i * n + x] * t[x * n + j] - t[i * n + x] * std::conj(g[x * n + j]);
      largest.first = std::max(largest.first, std::abs(sum));
      largest.second = std::max(largest.second, std::abs(g[i * n + j]));
    }
  return largest;
}

/// Calculates the first orders of two displacements at one energy.
std::vector<std::vector<SigmaDerivativeAtK>> derivatives(const SmallSilicon& made,
                                                         const EmpiricalCrystal& crystal,
                                                         int band_max = 12) {
  SigmaOptions options = made.options(band_max);
  options.slope = false;
  SilentProgress silent;
  std::vector<Perturbation> list;
  for (const int atom : {0, 1})
    list.push_back(atom_displacement(crystal, made.field.crystal(), atom, kDirection));
  return sigma_derivatives(made.field, made.epsilon, options, list, {0.3},
                           {made.coulomb, *made.kernels, silent});
}

// Time reversal Θ commutes with ∂V and maps the states of k ≡ −k onto each other with a
// matrix T, so that G T = T G*. A Kramers pair therefore has one diagonal element and no element
// between its partners. ∂Σ obeys this law, because W does. 1e-10 Ry/Bohr.
TEST(SpinorDerivative, CommutesWithTimeReversal) {
  const EmpiricalCrystal crystal = coupled_crystal();
  const SmallSilicon made(crystal);
  for (const auto& of_atom : derivatives(made, crystal))
    for (const SigmaDerivativeAtK& at : of_atom) {
      const auto n = static_cast<std::size_t>(at.n);
      const std::vector<Cplx> t = reversal(made.field.waves, at.k_index, at.n);
      std::vector<Cplx> sigma;
      for (std::int64_t l = 0; l < at.n; ++l)
        for (std::int64_t m = 0; m < at.n; ++m) sigma.push_back(at.at(0, l, m));
      for (const std::vector<Cplx>* matrix : {&at.mean_field, &std::as_const(sigma)}) {
        const auto [found, size] = defect(*matrix, t, n);
        EXPECT_LT(found, 1e-10) << at.k_index;
        EXPECT_GT(size, 1e-2);
      }
      for (const auto& [begin, end] :
           multiplets(made.field.waves, 0, at.k_index, 0, static_cast<int>(at.n))) {
        if (end - begin != 2) continue;
        const std::int64_t l = begin, partner = begin + 1;
        EXPECT_LT(std::abs(at.at(0, l, l) - at.at(0, partner, partner)), 1e-10);
        EXPECT_LT(std::abs(at.at(0, l, partner)), 1e-10);
      }
    }
}

// Kramers pairs and larger multiplets are mixed at random at every k, inside the sums, too. Sums
// of ∂V and ∂Σ over multiplets stay: 1e-11 of values up to 1.
TEST(SpinorDerivative, DoesNotDependOnTheBasisOfKramersPairs) {
  const EmpiricalCrystal crystal = coupled_crystal();
  SmallSilicon made(crystal);
  const auto before = derivatives(made, crystal);
  for (int ik = 0; ik < made.field.waves.n_k(); ++ik)
    test::rotate_multiplets(made.field, ik, made.options().bands,
                            17u + static_cast<std::uint32_t>(ik));
  const auto after = derivatives(made, crystal);
  double moved = 0.0;
  for (std::size_t d = 0; d < 2; ++d)
    for (std::size_t k = 0; k < before[d].size(); ++k) {
      const ElementsAtK a = at_bra_and_ket(before[d][k]), b = at_bra_and_ket(after[d][k]);
      const int n = static_cast<int>(before[d][k].n);
      const auto sets = multiplets(made.field.waves, 0, before[d][k].k_index, 0, n);
      for (const auto& l : sets)
        for (const auto& m : sets) {
          const auto size = static_cast<std::size_t>(n);
          const BasisFreeSums x(a, size, l, m), y(b, size, l, m);
          EXPECT_NEAR(x.g, y.g, 1e-11);
          EXPECT_NEAR(x.sigma, y.sigma, 1e-11);
          EXPECT_NEAR(x.product, y.product, 1e-11);
          EXPECT_LT(std::abs(x.trace_sigma - y.trace_sigma), 1e-11);
        }
      moved = std::max(moved, std::abs(a.mean_field[1] - b.mean_field[1]));
      moved = std::max(moved, std::abs(a.mean_field[9] - b.mean_field[9]));
    }
  EXPECT_GT(moved, 1e-3);
}

/// Holds the first orders of silicon at Γ in the motion of its atoms against each other.
class OpticalPattern {
 public:
  explicit OpticalPattern(std::optional<double> lambda_ry_bohr2) {
    EmpiricalCrystal crystal = SmallSilicon::small_crystal();
    crystal.wavefunction_cutoff_ry = 4.0;
    crystal.k_grid = {1, 1, 1};
    crystal.bands = lambda_ry_bohr2 ? 16 : 8;
    crystal.by_velocity = true;
    if (lambda_ry_bohr2) crystal.spin_orbit_ry_bohr2 = {*lambda_ry_bohr2, *lambda_ry_bohr2};
    found_ = derivatives(SmallSilicon(crystal), crystal, crystal.bands / 2);
  }
  /// Returns Σ |∂V|² and Σ |∂Σ|² between bands [first, second) of bra and ket, from 0.
  std::pair<double, double> between(const std::pair<int, int>& bra,
                                    const std::pair<int, int>& ket) const {
    const SigmaDerivativeAtK &a = found_[0][0], &b = found_[1][0];
    std::pair<double, double> sums{0.0, 0.0};
    for (std::int64_t l = bra.first; l < bra.second; ++l)
      for (std::int64_t m = ket.first; m < ket.second; ++m) {
        const auto i = static_cast<std::size_t>(l * a.n + m);
        sums.first += std::norm(a.mean_field[i] - b.mean_field[i]);
        sums.second += std::norm(a.at(0, l, m) - b.at(0, l, m));
      }
    return sums;
  }

 private:
  std::vector<std::vector<SigmaDerivativeAtK>> found_;
};

// Spin–orbit coupling splits Γ25' of silicon (bands 2 to 4) into Γ7 (3 and 4 of the spinors)
// and Γ8 (5 to 8). In the limit of weak coupling the projectors are (1 − L·σ)/3 and
// (2 + L·σ)/3. They give Σ |g|² between two states of Γ8, and between Γ8 and Γ7. Each is 2/3
// of the sum over Γ25'. Γ7 is one Kramers pair, and the symmetry of the site forbids its trace.
// λ = 1e-5 Ry Bohr² changes states by about 1e-4 of themselves.
TEST(SpinorDerivative, SplitsTheCouplingOfGamma25) {
  const OpticalPattern one({}), spinors(1e-5);
  const std::pair<int, int> gamma25{1, 4}, gamma7{2, 4}, gamma8{4, 8};
  const auto [g, sigma] = one.between(gamma25, gamma25);
  EXPECT_GT(g, 1e-2);
  EXPECT_GT(sigma, 1e-4);
  for (const auto& bra : {gamma7, gamma8}) {
    const auto found = spinors.between(bra, gamma8);
    EXPECT_NEAR(found.first, g * 2.0 / 3.0, 3e-4 * g);
    EXPECT_NEAR(found.second, sigma * 2.0 / 3.0, 3e-4 * sigma);
  }
  const auto within = spinors.between(gamma7, gamma7);
  EXPECT_LT(within.first, 1e-20);
  EXPECT_LT(within.second, 1e-20);
}

class SpinorDerivativeOn : public quasi::test::OnEveryDevice {};
QUASI_ON_EVERY_DEVICE(SpinorDerivativeOn);

// ∂V and ∂Σ of spinors are the same on all devices, at p = 0 and at another p. 1e-11 Ry/Bohr:
// rounding of values up to 1.
TEST_P(SpinorDerivativeOn, IsThatOfTheProcessor) {
  const EmpiricalCrystal crystal = coupled_crystal();
  const SmallSilicon made(crystal);
  const auto kernels = make_gw_kernels(GetParam());
  SigmaOptions options = made.options(10);
  options.slope = false;
  SilentProgress silent;
  for (const Vec3& p : {Vec3{}, Vec3{0.5, 0.0, 0.0}}) {
    const std::vector<Perturbation> list{
        atom_displacement(crystal, made.field.crystal(), 0, kDirection,
                          {.p = p, .all_lengths = true}),
        atom_displacement(crystal, made.field.crystal(), 1, {1.0, 0.0, 0.0},
                          {.p = p, .all_lengths = true})};
    const auto on = [&](GwKernels& device) {
      return sigma_derivatives(made.field, made.epsilon, options, list, {0.3},
                               {made.coulomb, device, silent});
    };
    const auto found = on(*kernels), expected = on(*made.kernels);
    for (std::size_t d = 0; d < 2; ++d)
      for (std::size_t k = 0; k < expected[d].size(); ++k)
        for (std::int64_t l = 0; l < expected[d][k].n; ++l)
          for (std::int64_t m = 0; m < expected[d][k].n; ++m) {
            const auto i = static_cast<std::size_t>(l * expected[d][k].n + m);
            const SigmaDerivativeAtK &a = found[d][k], &b = expected[d][k];
            EXPECT_LT(std::abs(a.mean_field[i] - b.mean_field[i]), 1e-11);
            EXPECT_LT(std::abs(a.at(0, l, m) - b.at(0, l, m)), 1e-11);
          }
  }
}

// States beyond the bands follow from H as an operator on spinors on every device. The
// tolerance of 1e-10 Ry/Bohr is the residual of 1e-13 over the smallest energy difference of 0.01
// Ry, and rounding.
TEST_P(SpinorDerivativeOn, WithStatesBeyondTheBandsIsThatOfTheProcessor) {
  const EmpiricalCrystal crystal = coupled_crystal();
  const SmallSilicon made(crystal);
  const auto kernels = make_gw_kernels(GetParam());
  SigmaOptions options = made.options(10);
  options.slope = false;
  const std::vector<Perturbation> list{
      atom_displacement(crystal, made.field.crystal(), 1, {1.0, 0.0, 0.0})};
  const std::vector<double> energies_ry{0.3};
  const StateResponse response{empirical_potential(crystal), 1e-13, made.field.spin_orbit};
  SilentProgress silent;
  const auto on = [&](GwKernels& device) {
    DeviceTeam team(device);
    Checkpoint none;
    return sigma_derivatives(made.field, made.epsilon, options,
                             DerivativeRequest{list, energies_ry, nullptr, &response},
                             StepContext{made.coulomb, team, none, silent})[0][0];
  };
  const SigmaDerivativeAtK found = on(*kernels), expected = on(*made.kernels),
                           of_bands = sigma_derivatives(made.field, made.epsilon, options, list,
                                                        energies_ry,
                                                        {made.coulomb, *kernels, silent})[0][0];
  double beyond = 0.0;
  for (std::int64_t l = 0; l < expected.n; ++l)
    for (std::int64_t m = 0; m < expected.n; ++m) {
      EXPECT_LT(std::abs(found.at(0, l, m) - expected.at(0, l, m)), 1e-10);
      beyond = std::max(beyond, std::abs(found.at(0, l, m) - of_bands.at(0, l, m)));
    }
  EXPECT_GT(beyond, 1e-4);
}

}  // namespace
}  // namespace quasi::gw
