#include "workers/gw/kernels/pole_sums/diagonal/imaginary_poles_cpu.hpp"

#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw {

namespace {

Cplx number(Complex<double> a) { return {a.re, a.im}; }

}  // namespace

void add_imaginary_pole_sums(const std::vector<ImaginaryPoleSums>& of_pairs,
                             const DiagonalTerms& terms, const ImaginarySums& sums) {
  const auto& [n_left, n_right, n_energies] = terms.x_ry.extent;
  for (std::int64_t l = 0; l < n_left; ++l)
    for (std::int64_t n = 0; n < n_right; ++n)
      for (std::int64_t e = 0; e < n_energies; ++e) {
        const ImaginaryPoleSums& of =
            of_pairs[static_cast<std::size_t>((l * n_right + n) * n_energies + e)];
        sums.values.total(l, e) += terms.weight * (of.ch + of.sx);
        sums.values.sx(l, e) += terms.weight * of.sx;
        if (e == 0 && sums.slope.data) sums.slope(l) += terms.weight * of.slope;
      }
}

void add_imaginary_poles_cpu(const std::vector<ImaginaryPole>& poles, const PoleRules& rules,
                             View<const Cplx, 3> products, const DiagonalTerms& terms,
                             const ImaginarySums& sums) {
  const std::int64_t n_left = products.extent[0], n_right = products.extent[1],
                     n_g = products.extent[2], n_energies = terms.x_ry.extent[2];
  std::vector<ImaginaryPoleSums> of_pairs(static_cast<std::size_t>(n_left * n_right * n_energies));
#pragma omp parallel for schedule(static)
  for (std::int64_t pair = 0; pair < n_left * n_right; ++pair) {
    const Cplx* m = products.data + pair * n_g;
    const double f = terms.occupation(pair % n_right);
    for (std::int64_t e = 0; e < n_energies; ++e) {
      ImaginaryPoleSums& sum = of_pairs[static_cast<std::size_t>(pair * n_energies + e)];
      const double x = terms.x_ry.data[pair * n_energies + e];
      for (const ImaginaryPole& pole : poles) {
        const ImaginaryPoleTerms of =
            imaginary_pole_terms(x, pole.pole_ry, rules.half_width_ry, rules.screened_exchange_cut);
        const Cplx mm = m[pole.g] * pole.half_i_v * std::conj(m[pole.h]);
        sum.ch += mm * number(of.ch);
        sum.sx += f * mm * number(of.sx);
        sum.slope += mm * (number(of.ch_slope) + f * number(of.sx_slope));
      }
    }
  }
  add_imaginary_pole_sums(of_pairs, terms, sums);
}

}  // namespace quasi::gw
