// Four phonons, smallest example: one point q = 0, one atom, three modes, one quartet.
//
// The modes move the atom along x, y and z with ω = 1, 2 and 5 rad/ps. Energy is conserved by
// 1 + 2 + 2 = 5 alone, and processes such as 1 + 5 = 5 + 1 exchange nothing. Every number below can
// be checked with pencil and paper (docs/theory/thermal.md 7).

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "tests/support/every_device.hpp"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"
#include "workers/thermal/solver/four_phonon/contraction_plan_4ph.hpp"
#include "workers/thermal/solver/four_phonon/precedence_4ph.hpp"

namespace quasi::thermal {
namespace {

constexpr double kMass_amu = 2.0;
constexpr double kConstant = 7.0;  ///< Ψ_xyyz and its permutations, eV/Å⁴

/// Ψ of one atom with itself: 7 where the four axes are x, y, y, z in any order, else 0.
SparseForceConstants fourth_order() {
  SparseForceConstants constants{.order = 4, .atom = {0, 0, 0, 0}, .cell = std::vector<int>(9, 0)};
  for (int element = 0; element < 81; ++element) {
    std::array<int, 4> axis{element / 27, element / 9 % 3, element / 3 % 3, element % 3};
    std::sort(axis.begin(), axis.end());
    constants.tensor.push_back(axis == std::array<int, 4>{0, 1, 1, 2} ? kConstant : 0.0);
  }
  return constants;
}

/// n = 1, ½ and ⅒; widths all equal, with δ(0) = 1 ps.
/// @param exchange  phonons share the visits of their processes (exchange_4ph.hpp)
Problem4ph one_quartet(bool exchange) {
  Crystal crystal;
  crystal.position.resize(1);
  crystal.mass_amu = {kMass_amu};
  Problem4ph p;
  p.mesh.n[0] = p.mesh.n[1] = p.mesh.n[2] = 1;
  p.n_branches = 3;
  p.rules.cut = 0.1;
  p.rules.sigma_floor_rad_ps = 1.0 / std::sqrt(std::numbers::pi);
  p.omega_rad_ps = {1.0, 2.0, 5.0};
  p.set = {0, 1, 2};
  p.spread_rad_ps.assign(9, 0.0);
  p.temperatures_k = {300.0};
  p.occupation = {1.0, 0.5, 0.1};
  p.eigenvector = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};
  p.zone = {0, 0, 0};
  p.point = {0};
  p.partner_weight = {1};
  p.plan = plan_contraction_4ph(crystal, fourth_order());
  p.phase = phase_table_4ph(p.mesh, p.plan);
  if (exchange) {
    p.star = {0};
    p.star_size = {1};
    order_precedence_4ph(p);
  }
  return p;
}

class OneQuartet : public quasi::test::OnEveryDevice {};

/// Compares the sums of the one quartet with rates by hand. @return  matrix elements evaluated
double check_rates(const Device& device, bool exchange) {
  const Problem4ph problem = one_quartet(exchange);
  const auto kernels = make_scattering_kernels_4ph(device, 0);
  kernels->load(problem);
  const auto sums = kernels->sums(0, 1);
  const SumLayout4ph layout{1};

  // |V|² = (Ψ/√(m m m m))², and W = B δ/(ω ω' ω'' ω''') with δ = 1 ps and ω ω' ω'' ω''' = 1·2·2·5.
  const double squared = std::pow(kConstant / (kMass_amu * kMass_amu), 2);
  const double product = 1.0 * 2.0 * 2.0 * 5.0;
  struct Expected {
    const char* process;
    int branch;
    Channel4ph channel;
    double multiplicity;  ///< times the Bose factor B and squared/product it is the rate
    double bose;
  };
  // B of ++ is n'n''(1+n''') − (1+n')(1+n'')n'''; of --, (1+n')(1+n'')(1+n''') − n'n''n'''.
  const Expected expected[] = {
      {"x + y + y -> z", 0, Channel4ph::kRecombination, 0.5, 0.25 * 1.1 - 1.5 * 1.5 * 0.1},
      {"y + x + y -> z", 1, Channel4ph::kRecombination, 1.0, 0.5 * 1.1 - 2.0 * 1.5 * 0.1},
      {"z -> x + y + y", 2, Channel4ph::kSplitting, 0.5, 2.0 * 1.5 * 1.5 - 1.0 * 0.5 * 0.5}};
  double rates = 0.0;
  for (const Expected& e : expected) {
    const double* row = &sums[static_cast<std::size_t>(
        (e.branch * kChannels4ph + static_cast<int>(e.channel)) * layout.size())];
    const double rate = e.multiplicity * e.bose / product * squared;
    EXPECT_NEAR(row[layout.normal(0)], rate, 1e-12 * rate) << e.process;
    EXPECT_EQ(row[layout.umklapp(0)], 0.0) << e.process;
    EXPECT_NEAR(row[layout.phase_space()], e.multiplicity, 1e-12) << e.process;
    EXPECT_NEAR(row[layout.six_count()], 6.0 * e.multiplicity, 1e-12) << e.process;
    rates += rate;
  }
  double all = 0.0, evaluations = 0.0;
  for (std::size_t r = 0; r < sums.size(); r += static_cast<std::size_t>(layout.size())) {
    all += sums[r + static_cast<std::size_t>(layout.normal(0))] +
           sums[r + static_cast<std::size_t>(layout.umklapp(0))];
    evaluations += sums[r + static_cast<std::size_t>(layout.evaluations())];
  }
  EXPECT_NEAR(all, rates, 1e-12 * rates) << "there is no other process";
  return evaluations;
}

// Each row visits the process by itself: x with (y, y), y with (x, y) and (y, x), z with x and with
// y as λ'. Where they share visits, it is visited with y as λ'' alone, from (x, y) and (y, x).
TEST_P(OneQuartet, HasTheRatesOfPencilAndPaper) {
  EXPECT_EQ(check_rates(GetParam(), false), 5.0);
  const double shared = check_rates(GetParam(), true);
  EXPECT_EQ(shared, 2.0);
}

QUASI_ON_EVERY_DEVICE(OneQuartet);

}  // namespace
}  // namespace quasi::thermal
