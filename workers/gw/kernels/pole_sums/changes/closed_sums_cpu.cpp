#include "workers/gw/kernels/pole_sums/changes/closed_sums_cpu.hpp"

namespace quasi::gw {
namespace {

/// Sums that threads make at a time. Their number is fixed, so that bits do not depend on the
/// number of threads.
constexpr std::int64_t kSums = 32;

}  // namespace

std::vector<Cplx> sums_by_difference_cpu(const PlasmonPoleView& own, const PoleChange& change,
                                         double x_ry, const DifferenceBox& box) {
  const std::int64_t n = own.pole_ry.extent[0];
  std::vector<std::vector<Cplx>> parts(kSums);
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t part = 0; part < kSums; ++part) {
    std::vector<Cplx>& sum = parts[static_cast<std::size_t>(part)];
    sum.resize(static_cast<std::size_t>(box.size()));
    for (std::int64_t g = part; g < n; g += kSums)
      for (std::int64_t h = 0; h < (own.hermitian ? g + 1 : n); ++h) {
        const auto at = static_cast<std::size_t>(own.hermitian ? g * (g + 1) / 2 + h : g * n + h);
        const Cplx strength = own.strength(g, h), of_strength{change.strength[at]};
        const Complex<double> found = change_of_empty_band(
            x_ry, pole_terms({strength.real(), strength.imag()}, own.pole_ry(g, h)),
            {{of_strength.real(), of_strength.imag()}, change.tau_per_ry[at]});
        const IVec3 d =
            box.waves[static_cast<std::size_t>(g)] - box.waves[static_cast<std::size_t>(h)];
        sum[static_cast<std::size_t>(box.position(d))] += Cplx{found.re, found.im};
        if (own.hermitian && h < g)
          sum[static_cast<std::size_t>(box.position(-d))] += Cplx{found.re, -found.im};
      }
  }
  std::vector<Cplx> total(static_cast<std::size_t>(box.size()));
#pragma omp parallel for schedule(static)
  for (std::size_t d = 0; d < total.size(); ++d)
    for (const std::vector<Cplx>& part : parts) total[d] += part[d];
  return total;
}

}  // namespace quasi::gw
