#include "workers/thermal/solver/transport/derivative/fourth_order_derivative.hpp"

#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "workers/thermal/kernels/four_phonon/derivative/element_gradient_4ph_cpu.hpp"
#include "workers/thermal/model/inversion.hpp"
#include "workers/thermal/solver/four_phonon/contraction_plan_4ph.hpp"

namespace quasi::thermal {
namespace {

using Site = std::array<int, 13>;  ///< four atoms, cells of the last three from that of the first

Site site_of(const SparseForceConstants& constants, std::int64_t block,
             const Inversion* inversion) {
  Site site{};
  const int* atom = &constants.atom[static_cast<std::size_t>(4 * block)];
  const int* cell = &constants.cell[static_cast<std::size_t>(9 * block)];
  for (int leg = 0; leg < 4; ++leg) {
    site[static_cast<std::size_t>(leg)] = inversion ? inversion->partner[atom[leg]] : atom[leg];
    for (int i = 0; i < 3 && leg > 0; ++i) {
      const int x = cell[3 * (leg - 1) + i];
      site[static_cast<std::size_t>(4 + 3 * (leg - 1) + i)] =
          inversion ? inversion->shift[atom[leg]][i] - inversion->shift[atom[0]][i] - x : x;
    }
  }
  return site;
}

/// Shares the derivative of blocks with their inverted blocks, which the plan leaves out.
void share_with_inverse(const SparseForceConstants& constants, const Inversion& inversion,
                        std::vector<double>& derivative) {
  std::map<Site, std::int64_t> number;
  for (std::int64_t block = 0; block < constants.n_blocks(); ++block)
    number[site_of(constants, block, nullptr)] = block;
  const std::vector<double> own = derivative;
  for (std::int64_t block = 0; block < constants.n_blocks(); ++block) {
    const auto inverse = number.find(site_of(constants, block, &inversion));
    if (inverse == number.end()) continue;  // a block of zeros
    for (std::int64_t e = 0; e < 81; ++e)
      derivative[static_cast<std::size_t>(81 * block + e)] =
          0.5 * (own[static_cast<std::size_t>(81 * block + e)] +
                 own[static_cast<std::size_t>(81 * inverse->second + e)]);
  }
}

/// Blocks of a plan: their numbers among the constants, and the factors from constants to tensors.
struct PlanBlocks {
  std::vector<std::size_t> source;
  std::vector<double> scale;
};

/// Finds the blocks of a plan by plans of the same crystal with other constants: ones, and the
/// numbers of the blocks.
PlanBlocks blocks_of_plan(const Crystal& crystal, const SparseForceConstants& constants,
                          const Inversion* inversion) {
  SparseForceConstants ones = constants, numbers = constants;
  for (std::size_t i = 0; i < constants.tensor.size(); ++i) {
    ones.tensor[i] = 1.0;
    numbers.tensor[i] = static_cast<double>(i / 81 + 1);
  }
  const ContractionPlan4ph of_ones = plan_contraction_4ph(crystal, ones, inversion),
                           of_numbers = plan_contraction_4ph(crystal, numbers, inversion);
  PlanBlocks blocks;
  for (std::size_t i = 0; i < of_ones.tensor.size(); i += 81) {
    blocks.scale.push_back(of_ones.tensor[i]);
    blocks.source.push_back(
        static_cast<std::size_t>(std::lround(of_numbers.tensor[i] / of_ones.tensor[i])) - 1);
  }
  return blocks;
}

}  // namespace

std::vector<double> fourth_order_derivative(const DerivativeTerms& terms,
                                            const FourthOrderTerms& fourth, KappaSolution solution,
                                            const Mat3& part) {
  const Problem4ph& problem = fourth.problem;
  const TransportOptions& options = terms.transport.options;
  std::vector<double> by_rate = kappa_by_rate(terms, solution, part);
  const auto n_q = static_cast<double>(problem.mesh.size());
  for (double& x : by_rate) x *= options.constants().rate_4ph / (n_q * n_q);
  const std::vector<double> by_tensor =
      ElementGradient4phCpu(problem).gradient(fourth.temperature, by_rate);
  std::optional<Inversion> inversion;
  if (problem.plan.real_elements)
    inversion = find_inversion(terms.transport.crystal, options.harmonic.symmetry_tolerance_nm);
  const PlanBlocks blocks =
      blocks_of_plan(terms.transport.crystal, fourth.constants, inversion ? &*inversion : nullptr);
  std::vector<double> derivative(fourth.constants.tensor.size(), 0.0);
  for (std::size_t block = 0; block < blocks.source.size(); ++block)
    for (std::size_t e = 0; e < 81; ++e)
      derivative[81 * blocks.source[block] + e] = blocks.scale[block] * by_tensor[81 * block + e];
  if (inversion) share_with_inverse(fourth.constants, *inversion, derivative);
  return derivative;
}

}  // namespace quasi::thermal
