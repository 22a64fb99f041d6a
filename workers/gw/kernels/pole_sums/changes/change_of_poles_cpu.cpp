#include "workers/gw/kernels/pole_sums/changes/change_of_poles_cpu.hpp"

namespace quasi::gw {
namespace {

Complex<double> plain(const Cplx& value) { return {value.real(), value.imag()}; }

}  // namespace

PoleChange change_of_poles_cpu(const PlasmonPoleView& own, const HostInverse& inverse,
                               const ScreenedElements& elements) {
  const std::int64_t n = elements.size(), edge = inverse.size(), skip = elements.n_heads - 1;
  const auto size = static_cast<std::size_t>(elements_of_change(n, true));
  PoleChange change{.strength = UnsetVector<std::complex<float>>(size),
                    .tau_per_ry = UnsetVector<float>(size)};
  const ScreenedElementsView view = elements.view(
      elements.waves.data(), reinterpret_cast<const Complex<double>*>(elements.density.data()));
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t g = n - 1 - i;  // the longest rows go first
    const Cplx* const row = inverse.values() + (g + skip) * edge + skip;
    for (std::int64_t h = 0; h <= g; ++h) {
      const PoleTerms terms = view.terms(g, h, plain(row[h])),
                      before = pole_terms(plain(own.strength(g, h)), own.pole_ry(g, h));
      const auto at = static_cast<std::size_t>(g * (g + 1) / 2 + h);
      change.strength[at] = {static_cast<float>(terms.strength.re - before.strength.re),
                             static_cast<float>(terms.strength.im - before.strength.im)};
      change.tau_per_ry[at] =
          static_cast<float>(bounded_change_of_tau(before.tau_per_ry, terms.tau_per_ry));
    }
  }
  return change;
}

}  // namespace quasi::gw
