#include "workers/gw/solver/calculation/slices/slices_plan.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "workers/gw/input/slices/deck_slices.hpp"
#include "workers/gw/model/column_slices.hpp"

namespace quasi::gw {
namespace {

/// Bytes of the rows of C that a device holds in one product of the inversion (kRows_bytes of
/// adjoint_product_cuda.cu).
constexpr double kRowsInWork_bytes = 1073741824.0;
/// Lists the numbers of slices that the plan tries in this order. The first one is 8 and not 2, so
/// that several devices can share the slices.
constexpr int kCounts[] = {8, 16, 32, kMostColumnSlices};

/// Raises the number of slices of χ that a device sums at the same time, because every pass over
/// the slices transforms all pairs of bands again.
void sum_several_at_once(const Workplace& place, Calculation& run) {
  Plan& plan = run.plan;
  if (plan.stored) return;
  constexpr double kUsed = 0.9;  // share of the device memory; CUDA libraries take some of the rest
  const double n_g = run.field.crystal().volume_bohr3 *
                     std::pow(plan.epsilon.epsilon_cutoff_ry, 1.5) / (6.0 * kPi * kPi),
               of_slice =
                   bytes_of_slices(n_g, n_g, plan.epsilon.column_slices, plan.real_states).chi,
               n_c = plan.epsilon.bands - run.field.n_occupied,
               summing = static_cast<double>(bytes_of_static_sums(run.field, plan, n_c)),
               free = kUsed * static_cast<double>(place.memory_limit_bytes) - summing;
  plan.epsilon.slices_at_once =
      1 + std::clamp(static_cast<int>(free / of_slice), 0, plan.epsilon.column_slices - 1);
  plan.device.sums =
      std::max(plan.device.sums, summing + (plan.epsilon.slices_at_once - 1) * of_slice);
  plan.set_peaks();
}

}  // namespace

double SliceBytes::least() const { return std::max({chi, inversion, poles}); }

SliceBytes bytes_of_slices(double n_g, double n_screened, int count, bool real) {
  const auto n = std::llround(n_g), n_w = std::llround(n_screened);
  const double number = real ? 8.0 : 16.0,
               panel = static_cast<double>(rows_of_panel(n, count)) * n_g;
  double rows = 0.0, work = 0.0;
  for (const ElementRows& slice : slices_of_upper_triangle(n, count)) {
    const auto size = static_cast<double>(slice.size());
    rows = std::max(rows, size);
    work = std::max(work, number * size * static_cast<double>(n - slice.begin));
  }
  return {.chi = number * static_cast<double>(largest_chi_slice(n, count)),
          .inversion = number * (panel + panel / n_g * rows) + std::min(work, kRowsInWork_bytes),
          .poles = 24.0 * static_cast<double>(largest_pole_slice(n_w, count))};
}

void plan_slices(const Deck& deck, const Workplace& place,
                 const std::function<void(const Deck&)>& plan_job, Calculation& run) {
  plan_job(deck);
  const auto fits = [&] {
    return place.memory_limit_bytes <= 0 || run.plan.least_memory_bytes <= place.memory_limit_bytes;
  };
  const bool wanted = deck.epsilon.column_slices > 0;
  if (!wanted && (fits() || obstacle_to_slices(deck))) return;
  for (const int count : kCounts) {
    if (wanted || (count > kCounts[0] && fits())) break;
    Deck cut = deck;
    cut.epsilon.column_slices = count;
    plan_job(cut);
  }
  if (!wanted && fits()) sum_several_at_once(place, run);
  const Plan& plan = run.plan;
  run.plan.notes.push_back(
      "matrices between plane waves are cut into " + std::to_string(plan.epsilon.column_slices) +
      " slices (epsilon.column_slices)" +
      (wanted ? "" : ", because one device cannot hold them whole") + "; a device sums " +
      std::to_string(plan.epsilon.slices_at_once) + " of them at the same time");
}

}  // namespace quasi::gw
