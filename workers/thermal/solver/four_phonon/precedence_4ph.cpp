#include "workers/thermal/solver/four_phonon/precedence_4ph.hpp"

#include <algorithm>
#include <tuple>

namespace quasi::thermal {

void order_precedence_4ph(Problem4ph& problem) {
  const auto nb = static_cast<std::size_t>(problem.n_branches);
  // Each degenerate set of every star has the frequency of the set, the place of the point and the
  // first branch.
  using Set = std::tuple<double, std::size_t, std::size_t>;
  std::vector<Set> sets;
  std::vector<std::size_t> first_branch(problem.point.size() * nb);
  for (std::size_t i = 0; i < problem.point.size(); ++i)
    for (std::size_t s = 0; s < nb; ++s) {
      const std::size_t mode = static_cast<std::size_t>(problem.point[i]) * nb + s;
      first_branch[i * nb + s] = static_cast<std::size_t>(problem.set[mode]) % nb;
      if (first_branch[i * nb + s] == s) sets.emplace_back(problem.omega_rad_ps[mode], i, s);
    }
  std::sort(sets.begin(), sets.end());
  std::vector<std::int32_t> place(problem.point.size() * nb);
  for (std::size_t n = 0; n < sets.size(); ++n)
    place[std::get<1>(sets[n]) * nb + std::get<2>(sets[n])] = static_cast<std::int32_t>(n);
  problem.precedence.resize(problem.omega_rad_ps.size());
  for (std::size_t mode = 0; mode < problem.precedence.size(); ++mode) {
    const auto star = static_cast<std::size_t>(problem.star[mode / nb]);
    const std::size_t set = star * nb + first_branch[star * nb + mode % nb];
    problem.precedence[mode] = place[set];
  }
}

}  // namespace quasi::thermal
