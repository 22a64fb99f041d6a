#include "workers/gw/solver/perturbation/divided_differences.hpp"

#include "workers/gw/physics/pole_difference.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {
namespace {

static_assert(kMultipletEnergies_ry == kDegenerate_ry);

PairKind kind_of(const CoupledProducts& products, std::int64_t bra, std::int64_t ket) {
  return pair_kind(products.bra, bra, products.ket, ket);
}

/// A matrix K_GG' in split form, so that products with it run on vectors of real numbers.
struct SplitMatrix {
  explicit SplitMatrix(std::int64_t n) : n_g(n), re(n * n), im(n * n) {}

  /// Sets element (G, G') to A_GG' factor(ω̃_GG').
  template <typename Factor>
  void set(const PlasmonPoleView& model, const Factor& factor) {
    for (std::int64_t i = 0; i < n_g * n_g; ++i) {
      const double f = factor(model.pole_ry.data[i]);
      re[static_cast<std::size_t>(i)] = model.strength.data[i].real() * f;
      im[static_cast<std::size_t>(i)] = model.strength.data[i].imag() * f;
    }
  }

  std::int64_t n_g;
  std::vector<double> re, im;
};

/// Calculates result[m][G] = Σ_G' K_GG' conj(M_m(G')) for one band of the ket.
/// @param products  M, rows of stride `stride` from `first`
void times_ket(const SplitMatrix& k, const Cplx* first, std::int64_t stride, std::int64_t n_rows,
               std::vector<Cplx>& result) {
  const std::int64_t n_g = k.n_g;
  result.resize(static_cast<std::size_t>(n_rows * n_g));
  std::vector<double> re(static_cast<std::size_t>(n_g)), im(static_cast<std::size_t>(n_g));
  for (std::int64_t m = 0; m < n_rows; ++m) {
    for (std::int64_t g = 0; g < n_g; ++g) {
      re[static_cast<std::size_t>(g)] = first[m * stride + g].real();
      im[static_cast<std::size_t>(g)] = -first[m * stride + g].imag();
    }
    for (std::int64_t g = 0; g < n_g; ++g) {
      const double *kr = k.re.data() + g * n_g, *ki = k.im.data() + g * n_g;
      double sum_re = 0.0, sum_im = 0.0;
#pragma omp simd reduction(+ : sum_re, sum_im)
      for (std::int64_t h = 0; h < n_g; ++h) {
        sum_re += kr[h] * re[static_cast<std::size_t>(h)] - ki[h] * im[static_cast<std::size_t>(h)];
        sum_im += kr[h] * im[static_cast<std::size_t>(h)] + ki[h] * re[static_cast<std::size_t>(h)];
      }
      result[static_cast<std::size_t>(m * n_g + g)] = {sum_re, sum_im};
    }
  }
}

/// Calculates result[l][G'] = Σ_G M_l(G) K_GG' for one band of the bra.
void bra_times(const SplitMatrix& k, const Cplx* first, std::int64_t stride, std::int64_t n_rows,
               std::vector<Cplx>& result) {
  const std::int64_t n_g = k.n_g;
  result.assign(static_cast<std::size_t>(n_rows * n_g), Cplx{});
  std::vector<double> re(static_cast<std::size_t>(n_g)), im(static_cast<std::size_t>(n_g));
  for (std::int64_t l = 0; l < n_rows; ++l) {
    std::fill(re.begin(), re.end(), 0.0);
    std::fill(im.begin(), im.end(), 0.0);
    for (std::int64_t g = 0; g < n_g; ++g) {
      const double a = first[l * stride + g].real(), b = first[l * stride + g].imag();
      const double *kr = k.re.data() + g * n_g, *ki = k.im.data() + g * n_g;
#pragma omp simd
      for (std::int64_t h = 0; h < n_g; ++h) {
        re[static_cast<std::size_t>(h)] += a * kr[h] - b * ki[h];
        im[static_cast<std::size_t>(h)] += a * ki[h] + b * kr[h];
      }
    }
    for (std::int64_t h = 0; h < n_g; ++h)
      result[static_cast<std::size_t>(l * n_g + h)] = {re[static_cast<std::size_t>(h)],
                                                       im[static_cast<std::size_t>(h)]};
  }
}

/// Returns Σ_G a(G) b(G).
Cplx plain_dot(const Cplx* a, const Cplx* b, std::int64_t n_g) {
  double re = 0.0, im = 0.0;
  for (std::int64_t g = 0; g < n_g; ++g) {
    re += a[g].real() * b[g].real() - a[g].imag() * b[g].imag();
    im += a[g].real() * b[g].imag() + a[g].imag() * b[g].real();
  }
  return {re, im};
}

/// Returns Σ_G a(G) conj(b(G)).
Cplx mixed_dot(const Cplx* a, const Cplx* b, std::int64_t n_g) {
  double re = 0.0, im = 0.0;
  for (std::int64_t g = 0; g < n_g; ++g) {
    re += a[g].real() * b[g].real() + a[g].imag() * b[g].imag();
    im += a[g].imag() * b[g].real() - a[g].real() * b[g].imag();
  }
  return {re, im};
}

/// Terms of one band at one energy, for all perturbations: [n_perturbations][n_l][n_m] each.
struct BandTerms {
  std::vector<Cplx> all, of_multiplets;
};

/// The sum over one q at one energy E.
class SumAtEnergy {
 public:
  SumAtEnergy(const PlasmonPoleView& model, const PoleRules& rules, const CoupledProducts& products,
              const std::vector<Coupling>& couplings, double energy_ry)
      : model_(model),
        rules_(rules),
        products_(products),
        couplings_(couplings),
        energy_ry_(energy_ry),
        n_l_(products.left.extent[0]),
        n_m_(products.right.extent[0]),
        n_g_(model.pole_ry.extent[0]) {}

  /// Returns the terms F_n/(E_n − E_n') of a band n of the ket with all n', and its close pairs.
  BandTerms of_ket(std::int64_t n) const {
    BandTerms terms = empty();
    SplitMatrix k(n_g_);
    k.set(model_, [&](double pole_ry) { return quotient(products_.ket, n, pole_ry).value(); });
    std::vector<Cplx> y;
    times_ket(k, ket_row(n), ket_stride(), n_m_, y);
    for (std::int64_t bra = 0; bra < products_.bra.size(); ++bra) {
      const PairKind kind = kind_of(products_, bra, n);
      if (kind == PairKind::kQuotient) {
        add(bra, n, 1.0 / difference_ry(bra, n), y, terms.all);
        continue;
      }
      std::vector<Cplx> of_pair;
      k.set(model_, [&](double pole_ry) {
        return pole_difference(quotient(products_.ket, n, pole_ry),
                               quotient(products_.bra, bra, pole_ry), difference_ry(bra, n));
      });
      times_ket(k, ket_row(n), ket_stride(), n_m_, of_pair);
      add(bra, n, 1.0, of_pair, terms.all);
      if (kind == PairKind::kMultiplet) add(bra, n, 1.0, of_pair, terms.of_multiplets);
    }
    return terms;
  }

  /// Returns the terms −F_n'/(E_n − E_n') of a band n' of the bra with all n but close ones.
  BandTerms of_bra(std::int64_t bra) const {
    BandTerms terms = empty();
    SplitMatrix k(n_g_);
    k.set(model_, [&](double pole_ry) { return quotient(products_.bra, bra, pole_ry).value(); });
    std::vector<Cplx> z;
    bra_times(k, products_.left.data + bra * n_g_, products_.bra.size() * n_g_, n_l_, z);
    for (std::int64_t n = 0; n < products_.ket.size(); ++n) {
      if (kind_of(products_, bra, n) != PairKind::kQuotient) continue;
      const double factor = -1.0 / difference_ry(bra, n);
      for (std::int64_t l = 0; l < n_l_; ++l)
        for (std::int64_t m = 0; m < n_m_; ++m)
          spread(bra, n, l, m,
                 factor * mixed_dot(z.data() + l * n_g_, ket_row(n) + m * ket_stride(), n_g_),
                 terms.all);
    }
    return terms;
  }

 private:
  BandTerms empty() const {
    const auto size = static_cast<std::size_t>(n_l_ * n_m_) * couplings_.size();
    return {std::vector<Cplx>(size), std::vector<Cplx>(size)};
  }
  PoleQuotient quotient(const CoupledBands& bands, std::int64_t n, double pole_ry) const {
    const auto i = static_cast<std::size_t>(n);
    return pole_quotient(energy_ry_ - bands.energy_ry[i], pole_ry, bands.occupation[i],
                         rules_.half_width_ry, rules_.max_ratio, rules_.screened_exchange_cut);
  }
  /// E_n − E_n'.
  double difference_ry(std::int64_t bra, std::int64_t ket) const {
    return products_.ket.energy_ry[static_cast<std::size_t>(ket)] -
           products_.bra.energy_ry[static_cast<std::size_t>(bra)];
  }
  const Cplx* ket_row(std::int64_t n) const { return products_.right.data + n * n_g_; }
  std::int64_t ket_stride() const { return products_.ket.size() * n_g_; }

  /// Adds factor · V_n'n Σ_G M_ln'(G) y_m(G) for all (l, m).
  void add(std::int64_t bra, std::int64_t ket, double factor, const std::vector<Cplx>& y,
           std::vector<Cplx>& terms) const {
    for (std::int64_t l = 0; l < n_l_; ++l) {
      const Cplx* left = products_.left.data + (l * products_.bra.size() + bra) * n_g_;
      for (std::int64_t m = 0; m < n_m_; ++m)
        spread(bra, ket, l, m, factor * plain_dot(left, y.data() + m * n_g_, n_g_), terms);
    }
  }
  /// Adds V_n'n · value to the element (l, m) of every perturbation.
  void spread(std::int64_t bra, std::int64_t ket, std::int64_t l, std::int64_t m, Cplx value,
              std::vector<Cplx>& terms) const {
    const auto element = static_cast<std::size_t>(bra * products_.ket.size() + ket);
    for (std::size_t p = 0; p < couplings_.size(); ++p)
      terms[p * static_cast<std::size_t>(n_l_ * n_m_) + static_cast<std::size_t>(l * n_m_ + m)] +=
          couplings_[p].elements[element] * value;
  }

  const PlasmonPoleView& model_;
  const PoleRules& rules_;
  const CoupledProducts& products_;
  const std::vector<Coupling>& couplings_;
  double energy_ry_;
  std::int64_t n_l_, n_m_, n_g_;
};

/// Adds the terms of all bands in their order, so that bits do not depend on the threads.
void add_in_order(const std::vector<BandTerms>& terms, double weight, std::size_t energy,
                  std::vector<DerivativeSums>& sums) {
  for (const BandTerms& of_band : terms) {
    const std::size_t size = of_band.all.size() / sums.size();
    for (std::size_t p = 0; p < sums.size(); ++p)
      for (std::size_t i = 0; i < size; ++i) {
        const Cplx all = of_band.all[p * size + i];
        sums[p].correlation[energy * size + i] += weight * all;
        sums[p].fixed_energies[energy * size + i] +=
            weight * (all - of_band.of_multiplets[p * size + i]);
      }
  }
}

}  // namespace

void add_correlation_derivative(const PlasmonPoleView& model, const PoleRules& rules,
                                const CoupledProducts& products,
                                const std::vector<Coupling>& couplings,
                                const DerivativeTerms& wanted, std::vector<DerivativeSums>& sums) {
  const std::int64_t n_ket = products.ket.size(), n_bra = products.bra.size();
  for (std::size_t e = 0; e < wanted.energies_ry.size(); ++e) {
    const SumAtEnergy sum(model, rules, products, couplings, wanted.energies_ry[e]);
    std::vector<BandTerms> terms(static_cast<std::size_t>(n_ket + n_bra));
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t n = 0; n < n_ket + n_bra; ++n)
      terms[static_cast<std::size_t>(n)] = n < n_ket ? sum.of_ket(n) : sum.of_bra(n - n_ket);
    add_in_order(terms, wanted.weight, e, sums);
  }
}

void add_exchange_derivative(const std::vector<double>& coulomb, const CoupledProducts& products,
                             const std::vector<Coupling>& couplings, double weight,
                             std::vector<DerivativeSums>& sums) {
  const std::int64_t n_ket = products.ket.size(), n_bra = products.bra.size(),
                     n_g = static_cast<std::int64_t>(coulomb.size()), n_l = products.left.extent[0],
                     n_m = products.right.extent[0];
  std::vector<Cplx> weighted(static_cast<std::size_t>(n_g));
  for (std::int64_t l = 0; l < n_l; ++l)
    for (std::int64_t bra = 0; bra < n_bra; ++bra) {
      const Cplx* left = products.left.data + (l * n_bra + bra) * n_g;
      for (std::int64_t g = 0; g < n_g; ++g)
        weighted[static_cast<std::size_t>(g)] = left[g] * coulomb[static_cast<std::size_t>(g)];
      for (std::int64_t ket = 0; ket < n_ket; ++ket) {
        const double occupations = products.ket.occupation[static_cast<std::size_t>(ket)] -
                                   products.bra.occupation[static_cast<std::size_t>(bra)];
        if (occupations == 0.0) continue;
        const double factor = -weight * occupations /
                              (products.ket.energy_ry[static_cast<std::size_t>(ket)] -
                               products.bra.energy_ry[static_cast<std::size_t>(bra)]);
        const auto element = static_cast<std::size_t>(bra * n_ket + ket);
        for (std::int64_t m = 0; m < n_m; ++m) {
          const Cplx value = factor * mixed_dot(weighted.data(),
                                                products.right.data + (m * n_ket + ket) * n_g, n_g);
          for (std::size_t p = 0; p < sums.size(); ++p)
            sums[p].exchange[static_cast<std::size_t>(l * n_m + m)] +=
                couplings[p].elements[element] * value;
        }
      }
    }
}

}  // namespace quasi::gw
