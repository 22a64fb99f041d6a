#include "workers/gw/kernels/pole_sums/changes/closed_sums_cpu.hpp"

namespace quasi::gw {
namespace {

/// Sums that threads make at a time. Their number is fixed, so that bits do not depend on the
/// number of threads.
constexpr std::int64_t kSums = 32;

PoleTerms terms_of(const PlasmonPoleView& own, std::int64_t g, std::int64_t h) {
  const Cplx strength = own.strength(g, h);
  return pole_terms({strength.real(), strength.imag()}, own.pole_ry(g, h));
}

/// Returns the first order in a change of the element that is stored at `at`.
Complex<double> change_at(const PoleChange& change, std::size_t at, const PoleTerms& own,
                          double x_ry) {
  const Cplx strength{change.strength[at]};
  return change_of_empty_band(x_ry, own,
                              {{strength.real(), strength.imag()}, change.tau_per_ry[at]});
}

}  // namespace

UnsetVector<Cplx> empty_band_matrix(const PlasmonPoleView& own, double x_ry) {
  const std::int64_t n = own.pole_ry.extent[0];
  UnsetVector<Cplx> matrix(static_cast<std::size_t>(n * n));
#pragma omp parallel for schedule(static)
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < n; ++h) {
      const Complex<double> value = empty_band_element(x_ry, terms_of(own, g, h));
      matrix[static_cast<std::size_t>(g * n + h)] = {value.re, value.im};
    }
  return matrix;
}

std::vector<Cplx> sums_by_difference_cpu(const StoredPoleRows& own, const PoleChange* change,
                                         const ElementRows& rows, double x_ry,
                                         const DifferenceBox& box) {
  const std::int64_t n = own.n;
  std::vector<std::vector<Cplx>> parts(kSums);
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t part = 0; part < kSums; ++part) {
    std::vector<Cplx>& sum = parts[static_cast<std::size_t>(part)];
    sum.resize(static_cast<std::size_t>(box.size()));
    for (std::int64_t g = rows.begin + part; g < rows.end; g += kSums)
      for (std::int64_t h = 0; h < (own.hermitian ? g + 1 : n); ++h) {
        const auto at = static_cast<std::size_t>(own.hermitian ? g * (g + 1) / 2 + h : g * n + h);
        const PoleTerms terms = own.terms(g, h);
        const Complex<double> found = change != nullptr ? change_at(*change, at, terms, x_ry)
                                                        : empty_band_element(x_ry, terms);
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
