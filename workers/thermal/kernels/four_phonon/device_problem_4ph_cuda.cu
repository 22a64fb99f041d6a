#include "workers/thermal/kernels/four_phonon/device_problem_4ph_cuda.cuh"

namespace quasi::thermal::cuda4ph {

cuda::DeviceBuffer<Complex<double>> upload_complex(const void* values, std::size_t n,
                                                   const char* what) {
  cuda::DeviceBuffer<Complex<double>> buffer(n, what);
  buffer.copy_from(static_cast<const Complex<double>*>(values), n, what);
  return buffer;
}

DeviceProblem4ph::DeviceProblem4ph(const Problem4ph& p)
    : host_(host_tables(p)),
      omega_(p.omega_rad_ps, "ω"),
      spread_(p.spread_rad_ps, "mode spreads"),
      occupation_(p.occupation, "occupations"),
      tensor_(p.plan.tensor, "fourth-order constants"),
      eigenvector_(upload_complex(p.eigenvector.data(), p.eigenvector.size(), "eigenvectors")),
      phase_(upload_complex(p.phase.data(), p.phase.size() / 2, "phases")),
      zone_(p.zone, "zone coordinates"),
      partner_weight_(p.partner_weight, "weights of q'"),
      set_(p.set, "degenerate sets"),
      point_(p.point, "points") {
  if (host_.exchange) {
    star_ = Integers(p.star, "stars");
    star_size_ = Integers(p.star_size, "stars");
    precedence_ = Integers(p.precedence, "precedence");
  }
  const ContractionPlan4ph& plan = p.plan;
  const std::vector<std::int32_t>* lists[kPlanLists] = {
      &plan.block_atom, &plan.block_cell, &plan.triple_begin, &plan.triple_atom, &plan.triple_cell,
      &plan.pair_begin, &plan.pair_third, &plan.pair_fourth,  &plan.pair_cell};
  for (int i = 0; i < kPlanLists; ++i) plan_[i] = Integers(*lists[i], "contraction plan");
  if (!host_.order) return;
  const TotalOrder4ph& totals = p.totals;
  const std::vector<std::int32_t>* orders[kOrderLists] = {
      &totals.total,     &totals.star,    &totals.representative,
      &totals.operation, &totals.rotated, &totals.rotated_back};
  for (int i = 0; i < kOrderLists; ++i) order_[i] = Integers(*orders[i], "order of total momenta");
}

Tables4ph DeviceProblem4ph::tables() const {
  Tables4ph t = host_;
  static_cast<ModeArrays4ph&>(t) = {.omega = omega_.data(),
                                    .set = set_.data(),
                                    .spread = spread_.data(),
                                    .occupation = occupation_.data(),
                                    .eigenvector = eigenvector_.data(),
                                    .zone = zone_.data()};
  t.point = point_.data();
  t.partner_weight = partner_weight_.data();
  static_cast<ContractionArrays4ph&>(t) = {.n_triples = host_.n_triples,
                                           .n_pairs = host_.n_pairs,
                                           .n_cells = host_.n_cells,
                                           .real_elements = host_.real_elements,
                                           .tensor = tensor_.data(),
                                           .block_atom = plan_[0].data(),
                                           .block_cell = plan_[1].data(),
                                           .triple_begin = plan_[2].data(),
                                           .triple_atom = plan_[3].data(),
                                           .triple_cell = plan_[4].data(),
                                           .pair_begin = plan_[5].data(),
                                           .pair_third = plan_[6].data(),
                                           .pair_fourth = plan_[7].data(),
                                           .pair_cell = plan_[8].data(),
                                           .phase = phase_.data()};
  if (t.exchange)
    t.exchange = {
        .star = star_.data(), .star_size = star_size_.data(), .precedence = precedence_.data()};
  if (t.order)
    t.order = {.total = order_[0].data(),
               .star = order_[1].data(),
               .representative = order_[2].data(),
               .operation = order_[3].data(),
               .rotated = order_[4].data(),
               .rotated_back = order_[5].data()};
  return t;
}

}  // namespace quasi::thermal::cuda4ph
