#include "workers/gw/kernels/pole_sums/imaginary_poles_cpu.hpp"

#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw {

namespace {

Cplx number(Complex<double> a) { return {a.re, a.im}; }

}  // namespace

void add_imaginary_pole_sums(const std::vector<ImaginaryPoleSums>& sums, std::int64_t n_left,
                             std::int64_t n_right, double weight, View<Cplx, 2> total,
                             View<Cplx, 2> sx, View<Cplx, 1> slope) {
  const std::int64_t n_energies = total.extent[1];
  for (std::int64_t l = 0; l < n_left; ++l)
    for (std::int64_t n = 0; n < n_right; ++n)
      for (std::int64_t e = 0; e < n_energies; ++e) {
        const ImaginaryPoleSums& of =
            sums[static_cast<std::size_t>((l * n_right + n) * n_energies + e)];
        total(l, e) += weight * (of.ch + of.sx);
        sx(l, e) += weight * of.sx;
        if (e == 0 && slope.data) slope(l) += weight * of.slope;
      }
}

void add_imaginary_poles_cpu(const std::vector<ImaginaryPole>& poles, const PoleRules& rules,
                             View<const Cplx, 3> products, View<const double, 3> x_ry,
                             View<const double, 1> occupation, double weight, View<Cplx, 2> total,
                             View<Cplx, 2> sx, View<Cplx, 1> slope) {
  const std::int64_t n_left = products.extent[0], n_right = products.extent[1],
                     n_g = products.extent[2], n_energies = x_ry.extent[2];
  std::vector<ImaginaryPoleSums> sums(static_cast<std::size_t>(n_left * n_right * n_energies));
#pragma omp parallel for schedule(static)
  for (std::int64_t pair = 0; pair < n_left * n_right; ++pair) {
    const Cplx* m = products.data + pair * n_g;
    const double f = occupation(pair % n_right);
    for (std::int64_t e = 0; e < n_energies; ++e) {
      ImaginaryPoleSums& sum = sums[static_cast<std::size_t>(pair * n_energies + e)];
      const double x = x_ry.data[pair * n_energies + e];
      for (const ImaginaryPole& pole : poles) {
        const ImaginaryPoleTerms terms =
            imaginary_pole_terms(x, pole.pole_ry, rules.half_width_ry, rules.screened_exchange_cut);
        const Cplx mm = m[pole.g] * pole.half_i_v * std::conj(m[pole.h]);
        sum.ch += mm * number(terms.ch);
        sum.sx += f * mm * number(terms.sx);
        sum.slope += mm * (number(terms.ch_slope) + f * number(terms.sx_slope));
      }
    }
  }
  add_imaginary_pole_sums(sums, n_left, n_right, weight, total, sx, slope);
}

}  // namespace quasi::gw
