#include "workers/gw/kernels/pole_sums/first_order/first_order_cpu.hpp"

#include <algorithm>
#include <functional>

#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/kernels/hamiltonian/local_coupling_cpu.hpp"
#include "workers/gw/kernels/pole_sums/first_order/first_order_form.hpp"
#include "workers/gw/physics/plasmon_pole.hpp"
#include "workers/gw/physics/pole_difference.hpp"

namespace quasi::gw {
namespace {

/// Kets whose terms are kept until they are added in order.
constexpr std::int64_t kKetsAtOnce = 16;

/// Steps that the terms of correlation and exchange share, for one ket at a time.
class TermsOfKet {
 public:
  TermsOfKet(const FirstOrderArrays& products, const FirstOrderPairs& pairs)
      : n_p(pairs.coupling.n_p()),
        n_l(products.bra.extent[0]),
        n_m(products.ket.extent[0]),
        n_bra(products.bra.extent[1]),
        n_g(products.bra.extent[2]),
        products_(products),
        pairs_(pairs),
        coupling_(dynamic_cast<const CpuCouplingBlock&>(pairs.coupling).view()) {}

  /// Returns conj(M_mn(G)) of ket n of the part, [n_m][n_g].
  std::vector<Cplx> conjugate_rows(std::int64_t n) const {
    std::vector<Cplx> rows(static_cast<std::size_t>(n_m * n_g));
    for (std::int64_t m = 0; m < n_m; ++m)
      for (std::int64_t g = 0; g < n_g; ++g)
        rows[static_cast<std::size_t>(m * n_g + g)] =
            std::conj(products_.ket(m, pairs_.part.begin + n, g));
    return rows;
  }

  /// Returns Z = Σ_G M_ln'(G) y_m(G) of all n', [n_l][n_bra][n_m].
  /// @param y  [n_m][n_g]
  std::vector<Cplx> with_all_bras(const std::vector<Cplx>& y) const {
    std::vector<Cplx> z(static_cast<std::size_t>(n_l * n_bra * n_m));
    zgemm({.transpose_b = CblasTrans, .m = n_l * n_bra, .n = n_m, .k = n_g},
          {products_.bra.data, n_g}, {y.data(), n_g}, {z.data(), n_m});
    return z;
  }
  /// Adds Σ_n' factor V_n'n Z to the terms of every perturbation, `step` apart.
  /// @param factor  [n_bra][part.size()]
  void add_couplings(std::int64_t n, const double* factor, const std::vector<Cplx>& z, Cplx* terms,
                     std::int64_t step) const {
    const std::int64_t n_part = pairs_.part.size();
    std::vector<Cplx> v(static_cast<std::size_t>(n_p * n_bra));
    for (std::int64_t p = 0; p < n_p; ++p)
      for (std::int64_t bra = 0; bra < n_bra; ++bra)
        v[static_cast<std::size_t>(p * n_bra + bra)] =
            factor[bra * n_part + n] * coupling_(p, bra, n);
    for (std::int64_t l = 0; l < n_l; ++l)
      zgemm({.transpose_b = CblasNoTrans, .m = n_p, .n = n_m, .k = n_bra, .beta = 1.0},
            {v.data(), n_bra}, {z.data() + l * n_bra * n_m, n_m}, {terms + l * n_m, step});
  }
  /// Adds Σ_n' factor V_n'n Σ_G M_ln'(G) y_m(G) to the terms of every perturbation, `step` apart.
  /// @param y  [n_m][n_g]
  void add_all_bras(std::int64_t n, const std::vector<double>& factor, const std::vector<Cplx>& y,
                    Cplx* terms, std::int64_t step) const {
    add_couplings(n, factor.data(), with_all_bras(y), terms, step);
  }

  /// Adds w V_n'n Σ_G M_ln'(G) y_m(G) of one pair.
  void add_pair(const FirstOrderPlan::ClosePair& pair, const std::vector<Cplx>& y, Cplx* terms,
                std::int64_t step) const {
    std::vector<Cplx> d(static_cast<std::size_t>(n_l * n_m));
    zgemm({.transpose_b = CblasTrans, .m = n_l, .n = n_m, .k = n_g},
          {products_.bra.data + pair.bra * n_g, n_bra * n_g}, {y.data(), n_g}, {d.data(), n_m});
    for (std::int64_t p = 0; p < n_p; ++p) {
      const Cplx v = pair.weight * coupling_(p, pair.bra, pair.ket);
      for (std::int64_t i = 0; i < n_l * n_m; ++i)
        terms[p * step + i] += v * d[static_cast<std::size_t>(i)];
    }
  }

  /// Calls make(n, terms) for every ket of the part, with threads, and adds the terms to `sums` in
  /// the order of the kets.
  void add_in_order(
      const std::vector<Cplx*>& sums, std::int64_t size,
      const std::function<void(std::int64_t, const std::vector<Cplx*>&)>& make) const {
    const std::int64_t n_part = pairs_.part.size(), n_sums = std::ssize(sums);
    std::vector<Cplx> kept(static_cast<std::size_t>(kKetsAtOnce * n_sums * size));
    for (std::int64_t first = 0; first < n_part; first += kKetsAtOnce) {
      const std::int64_t count = std::min(kKetsAtOnce, n_part - first);
      std::fill(kept.begin(), kept.end(), Cplx{});
#pragma omp parallel for schedule(dynamic)
      for (std::int64_t i = 0; i < count; ++i) {
        std::vector<Cplx*> terms;
        for (std::int64_t s = 0; s < n_sums; ++s)
          terms.push_back(kept.data() + (i * n_sums + s) * size);
        make(first + i, terms);
      }
#pragma omp parallel for schedule(static)
      for (std::int64_t at = 0; at < size; ++at)
        for (std::int64_t i = 0; i < count; ++i)
          for (std::int64_t s = 0; s < n_sums; ++s)
            sums[static_cast<std::size_t>(s)][at] +=
                kept[static_cast<std::size_t>((i * n_sums + s) * size + at)];
    }
  }

  const std::int64_t n_p, n_l, n_m, n_bra, n_g;

 private:
  const FirstOrderArrays& products_;
  const FirstOrderPairs& pairs_;
  View<const Cplx, 3> coupling_;
};

/// Computes y_m(G) = Σ_G' A_GG' f(ω̃_GG') conj(M_m(G')), with the adjoint of A if so wanted.
template <typename Factor>
std::vector<Cplx> rows_of(const PlasmonPoleView& model, bool adjoint, const Factor& factor,
                          const std::vector<Cplx>& conjugate_rows, std::vector<Cplx>& matrix) {
  const std::int64_t n_g = model.pole_ry.extent[0], n_m = std::ssize(conjugate_rows) / n_g;
  matrix.resize(static_cast<std::size_t>(n_g * n_g));
  for (std::int64_t i = 0; i < n_g * n_g; ++i)
    matrix[static_cast<std::size_t>(i)] =
        factor(model.pole_ry.data[i]) *
        (adjoint ? std::conj(model.strength.data[i]) : model.strength.data[i]);
  std::vector<Cplx> y(conjugate_rows.size());
  zgemm({.transpose_b = adjoint ? CblasNoTrans : CblasTrans, .m = n_m, .n = n_g, .k = n_g},
        {conjugate_rows.data(), n_g}, {matrix.data(), n_g}, {y.data(), n_g});
  return y;
}

}  // namespace

void add_first_order_cpu(const PlasmonPoleView& model, const PoleRules& rules,
                         const FirstOrderArrays& products, const FirstOrderPairs& pairs,
                         const FirstOrderTerms& terms, const FirstOrderSums& sums) {
  const FirstOrderPlan plan = plan_first_order(pairs, terms.mirrored);
  const TermsOfKet of_ket(products, pairs);
  const std::int64_t n_e = terms.energies_ry.extent[0], n_lm = of_ket.n_l * of_ket.n_m,
                     step = n_e * n_lm;
  const auto quotient = [&](double energy_ry, const CoupledBands& bands, std::int64_t n,
                            double pole_ry) {
    const auto i = static_cast<std::size_t>(n);
    return pole_quotient(energy_ry - bands.energy_ry[i], pole_ry, bands.occupation[i],
                         rules.half_width_ry, rules.max_ratio, rules.screened_exchange_cut);
  };
  std::vector<Cplx*> wanted{sums.quotients.data};
  if (terms.close_pairs) wanted.insert(wanted.end(), {sums.closed.data, sums.multiplets.data});
  of_ket.add_in_order(wanted, of_ket.n_p * step, [&](std::int64_t n, const std::vector<Cplx*>& to) {
    const std::int64_t ket = pairs.part.begin + n;
    const std::vector<Cplx> rows = of_ket.conjugate_rows(n);
    std::vector<Cplx> matrix;
    for (std::int64_t e = 0; e < n_e; ++e) {
      const double energy_ry = terms.energies_ry(e);
      const std::vector<Cplx> y = rows_of(
          model, terms.adjoint,
          [&](double pole_ry) { return quotient(energy_ry, pairs.ket, ket, pole_ry).value(); },
          rows, matrix);
      of_ket.add_all_bras(n, plan.factor, y, to[0] + e * n_lm, step);
      if (!terms.close_pairs) continue;
      for (const FirstOrderPlan::ClosePair& pair : plan.close) {
        if (pair.ket != n) continue;
        const double difference_ry = pairs.ket.energy_ry[static_cast<std::size_t>(ket)] -
                                     pairs.bra.energy_ry[static_cast<std::size_t>(pair.bra)];
        const std::vector<Cplx> of_pair = rows_of(
            model, terms.adjoint,
            [&](double pole_ry) {
              return pole_difference(quotient(energy_ry, pairs.ket, ket, pole_ry),
                                     quotient(energy_ry, pairs.bra, pair.bra, pole_ry),
                                     difference_ry);
            },
            rows, matrix);
        of_ket.add_pair(pair, of_pair, to[pair.kind == PairKind::kMultiplet ? 2 : 1] + e * n_lm,
                        step);
      }
    }
  });
}

void add_first_order_exchange_cpu(const FirstOrderArrays& products, View<const double, 1> coulomb,
                                  const FirstOrderPairs& pairs, View<Cplx, 3> sum) {
  const std::vector<double> factor = exchange_factors(pairs);
  const TermsOfKet of_ket(products, pairs);
  const std::int64_t n_lm = of_ket.n_l * of_ket.n_m;
  of_ket.add_in_order({sum.data}, of_ket.n_p * n_lm,
                      [&](std::int64_t n, const std::vector<Cplx*>& to) {
                        std::vector<Cplx> y = of_ket.conjugate_rows(n);
                        for (std::int64_t i = 0; i < std::ssize(y); ++i)
                          y[static_cast<std::size_t>(i)] *= coulomb(i % of_ket.n_g);
                        of_ket.add_all_bras(n, factor, y, to[0], n_lm);
                      });
}

void add_first_order_form_cpu(const FirstOrderArrays& products, const FirstOrderPairs& pairs,
                              const FirstOrderForm& form, View<Cplx, 4> sum) {
  const TermsOfKet of_ket(products, pairs);
  const std::int64_t n_e = form.factor.extent[0], n_lm = of_ket.n_l * of_ket.n_m,
                     n_factors = of_ket.n_bra * pairs.part.size();
  const std::vector<double> factor = weighted_factors(form, pairs);
  const std::vector<char> used = used_energies(factor, n_e);
  of_ket.add_in_order(
      {sum.data}, of_ket.n_p * n_e * n_lm, [&](std::int64_t n, const std::vector<Cplx*>& to) {
        const std::vector<Cplx> rows = of_ket.conjugate_rows(n);
        std::vector<Cplx> y(rows.size());
        if (form.matrix.data != nullptr)
          zgemm({.transpose_b = CblasTrans, .m = of_ket.n_m, .n = of_ket.n_g, .k = of_ket.n_g},
                {rows.data(), of_ket.n_g}, {form.matrix.data, of_ket.n_g}, {y.data(), of_ket.n_g});
        else
          for (std::int64_t i = 0; i < std::ssize(y); ++i)
            y[static_cast<std::size_t>(i)] =
                form.diagonal(i % of_ket.n_g) * rows[static_cast<std::size_t>(i)];
        const std::vector<Cplx> z = of_ket.with_all_bras(y);
        for (std::int64_t e = 0; e < n_e; ++e)
          if (used[static_cast<std::size_t>(e)])
            of_ket.add_couplings(n, factor.data() + e * n_factors, z, to[0] + e * n_lm, n_e * n_lm);
      });
}

}  // namespace quasi::gw
