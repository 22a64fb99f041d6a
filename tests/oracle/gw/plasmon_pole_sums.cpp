#include "tests/oracle/gw/plasmon_pole_sums.hpp"

#include <cmath>
#include <limits>

namespace quasi::oracle::gw {

Terms split_terms(double x_ry, double pole_ry, bool occupied, const Rules& rules) {
  Terms terms;
  if (pole_ry == 0.0) return terms;
  if (std::isinf(pole_ry)) {
    terms.ch = -0.5;
    if (occupied) terms.sx = 1.0;
    return terms;
  }
  const double delta = pole_ry / (x_ry - pole_ry);
  if (std::abs(x_ry - pole_ry) > rules.half_width_ry && delta * delta < rules.max_delta_squared) {
    terms.ch = 0.5 * delta;
    if (occupied) terms.sx = -pole_ry * pole_ry / (x_ry * x_ry - pole_ry * pole_ry);
  } else if (occupied) {
    terms.sx = delta / (4.0 * delta + 2.0);
  }
  if (occupied && x_ry < 0.0 &&
      std::abs(pole_ry * pole_ry / (x_ry * x_ry - pole_ry * pole_ry)) > rules.screened_exchange_cut)
    terms.sx = 0.0;
  return terms;
}

Terms split_slopes(double x_ry, double pole_ry, bool occupied, const Rules& rules) {
  Terms slopes;
  if (pole_ry == 0.0 || std::isinf(pole_ry)) return slopes;
  const double delta = pole_ry / (x_ry - pole_ry);
  const double square = x_ry * x_ry - pole_ry * pole_ry;
  if (std::abs(x_ry - pole_ry) > rules.half_width_ry && delta * delta < rules.max_delta_squared) {
    slopes.ch = -0.5 * pole_ry / ((x_ry - pole_ry) * (x_ry - pole_ry));
    if (occupied) slopes.sx = 2.0 * x_ry * pole_ry * pole_ry / (square * square);
  } else if (occupied) {
    // δ/(4δ + 2) = ½ ω̃/(x + ω̃).
    slopes.sx = -0.5 * pole_ry / ((x_ry + pole_ry) * (x_ry + pole_ry));
  }
  if (occupied && x_ry < 0.0 && std::abs(pole_ry * pole_ry / square) > rules.screened_exchange_cut)
    slopes.sx = 0.0;
  return slopes;
}

namespace {

Terms weighted_terms(double x_ry, double pole_ry, double occupation, const Rules& rules) {
  const Terms occupied = split_terms(x_ry, pole_ry, true, rules);
  const Terms empty = split_terms(x_ry, pole_ry, false, rules);
  return {occupation * occupied.sx, occupation * occupied.ch + (1.0 - occupation) * empty.ch};
}

}  // namespace

Sums diagonal(const PoleModel& model, const Rules& rules, const std::vector<Complex>& products,
              const std::vector<double>& x_ry, const std::vector<double>& occupation) {
  Sums sums;
  const int n_g = model.n_g;
  for (std::size_t n = 0; n < x_ry.size(); ++n)
    for (int g = 0; g < n_g; ++g)
      for (int h = 0; h < n_g; ++h) {
        const Terms terms =
            weighted_terms(x_ry[n], model.pole_ry[g * n_g + h], occupation[n], rules);
        const Complex element = products[n * n_g + g] * model.i_minus_epsinv[g * n_g + h] *
                                model.coulomb[h] * std::conj(products[n * n_g + h]);
        sums.sx += terms.sx * element;
        sums.ch += terms.ch * element;
      }
  return sums;
}

Sums diagonal_slope(const PoleModel& model, const Rules& rules,
                    const std::vector<Complex>& products, const std::vector<double>& x_ry,
                    const std::vector<double>& occupation) {
  Sums sums;
  const int n_g = model.n_g;
  for (std::size_t n = 0; n < x_ry.size(); ++n)
    for (int g = 0; g < n_g; ++g)
      for (int h = 0; h < n_g; ++h) {
        const double pole = model.pole_ry[g * n_g + h];
        const Terms occupied = split_slopes(x_ry[n], pole, true, rules);
        const Terms empty = split_slopes(x_ry[n], pole, false, rules);
        const Complex element = products[n * n_g + g] * model.i_minus_epsinv[g * n_g + h] *
                                model.coulomb[h] * std::conj(products[n * n_g + h]);
        const double sx = occupation[n] * occupied.sx;
        const double ch = occupation[n] * occupied.ch + (1.0 - occupation[n]) * empty.ch;
        sums.sx += sx * element;
        sums.ch += ch * element;
        sums.magnitude += (std::abs(sx) + std::abs(ch)) * std::abs(element);
      }
  return sums;
}

ComplexTerms imaginary_terms(double x_ry, double pole_ry, bool occupied, const Rules& rules) {
  const Complex w(0.0, pole_ry), delta = w / (x_ry - w);
  ComplexTerms terms;
  if (std::abs(x_ry - w) > rules.half_width_ry && std::norm(delta) < rules.max_delta_squared) {
    terms.ch = 0.5 * delta;
    terms.sx = -w * w / (x_ry * x_ry - w * w);
  } else {
    terms.sx = delta / (4.0 * delta + 2.0);
  }
  if (x_ry < 0.0 && std::abs(terms.sx) > rules.screened_exchange_cut) terms.sx = 0.0;
  if (!occupied) terms.sx = 0.0;
  return terms;
}

ComplexTerms imaginary_slopes(double x_ry, double pole_ry, bool occupied, const Rules& rules) {
  const auto difference = [&](double h) {
    const ComplexTerms a = imaginary_terms(x_ry + h, pole_ry, occupied, rules),
                       b = imaginary_terms(x_ry - h, pole_ry, occupied, rules);
    return ComplexTerms{(a.sx - b.sx) / (2.0 * h), (a.ch - b.ch) / (2.0 * h)};
  };
  const double h = 2e-4;
  const ComplexTerms wide = difference(2.0 * h), narrow = difference(h);
  return {(4.0 * narrow.sx - wide.sx) / 3.0, (4.0 * narrow.ch - wide.ch) / 3.0};
}

Complex off_diagonal(const PoleModel& model, const Rules& rules,
                     const std::vector<Complex>& products_l, const std::vector<Complex>& products_m,
                     const std::vector<double>& x_ry, const std::vector<double>& occupation) {
  Complex sum;
  const int n_g = model.n_g;
  for (std::size_t n = 0; n < x_ry.size(); ++n)
    for (int g = 0; g < n_g; ++g)
      for (int h = 0; h < n_g; ++h) {
        const Terms terms =
            weighted_terms(x_ry[n], model.pole_ry[g * n_g + h], occupation[n], rules);
        sum += (terms.sx + terms.ch) * products_l[n * n_g + g] * model.i_minus_epsinv[g * n_g + h] *
               model.coulomb[h] * std::conj(products_m[n * n_g + h]);
      }
  return sum;
}

std::vector<Complex> polarizability(int n_g, const std::vector<Complex>& products,
                                    const std::vector<Complex>& weight) {
  std::vector<Complex> chi(static_cast<std::size_t>(n_g) * n_g);
  for (std::size_t p = 0; p < weight.size(); ++p)
    for (int g = 0; g < n_g; ++g)
      for (int h = 0; h < n_g; ++h)
        chi[g * n_g + h] += weight[p] * std::conj(products[p * n_g + g]) * products[p * n_g + h];
  return chi;
}

std::vector<Complex> pair_product(const std::vector<Complex>& left,
                                  const std::vector<Complex>& right,
                                  const std::vector<int>& left_frequencies,
                                  const std::vector<int>& right_frequencies,
                                  const std::vector<int>& sphere, const int box[3]) {
  const std::size_t n_g = sphere.size() / 3;
  std::vector<Complex> product(n_g);
  for (std::size_t g = 0; g < n_g; ++g)
    for (std::size_t i = 0; i < left.size(); ++i)
      for (std::size_t j = 0; j < right.size(); ++j) {
        bool meets = true;
        for (int d = 0; d < 3; ++d)
          meets = meets &&
                  (left_frequencies[3 * i + d] - right_frequencies[3 * j + d] - sphere[3 * g + d]) %
                          box[d] ==
                      0;
        if (meets) product[g] += std::conj(left[i]) * right[j];
      }
  return product;
}

}  // namespace quasi::oracle::gw
