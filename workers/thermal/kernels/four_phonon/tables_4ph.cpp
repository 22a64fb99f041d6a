#include "workers/thermal/kernels/four_phonon/tables_4ph.hpp"

namespace quasi::thermal {

namespace {

const Complex<double>* complex_view(const double* values) {
  return reinterpret_cast<const Complex<double>*>(values);
}

ContractionArrays4ph contraction_arrays(const Problem4ph& problem) {
  const ContractionPlan4ph& plan = problem.plan;
  return {.n_triples = plan.n_triples,
          .n_pairs = plan.n_pairs,
          .n_cells = plan.n_cells,
          .real_elements = plan.real_elements,
          .tensor = plan.tensor.data(),
          .block_atom = plan.block_atom.data(),
          .block_cell = plan.block_cell.data(),
          .triple_begin = plan.triple_begin.data(),
          .triple_atom = plan.triple_atom.data(),
          .triple_cell = plan.triple_cell.data(),
          .pair_begin = plan.pair_begin.data(),
          .pair_third = plan.pair_third.data(),
          .pair_fourth = plan.pair_fourth.data(),
          .pair_cell = plan.pair_cell.data(),
          .phase = complex_view(problem.phase.data())};
}

}  // namespace

Tables4ph host_tables(const Problem4ph& problem) {
  Tables4ph t{ModeArrays4ph{.omega = problem.omega_rad_ps.data(),
                            .set = problem.set.data(),
                            .spread = problem.spread_rad_ps.data(),
                            .occupation = problem.occupation.data(),
                            .eigenvector = reinterpret_cast<const Complex<double>*>(
                                problem.eigenvector.data()),
                            .zone = problem.zone.data()},
              RowArrays4ph{.n_points = static_cast<std::int32_t>(problem.point.size()),
                           .point = problem.point.data(),
                           .partner_weight = problem.partner_weight.data()},
              contraction_arrays(problem),
              problem.mesh,
              problem.n_branches,
              problem.plan.n_atoms,
              static_cast<int>(problem.temperatures_k.size()),
              problem.rules,
              std::nullopt,
              std::nullopt,
              nullptr};
  if (!problem.star.empty())
    t.exchange = {.star = problem.star.data(),
                  .star_size = problem.star_size.data(),
                  .precedence = problem.precedence.data()};
  const TotalOrder4ph& totals = problem.totals;
  if (!totals.total.empty())
    t.order = {.total = totals.total.data(),
               .star = totals.star.data(),
               .representative = totals.representative.data(),
               .operation = totals.operation.data(),
               .rotated = totals.rotated.data(),
               .rotated_back = totals.rotated_back.data()};
  return t;
}

}  // namespace quasi::thermal
