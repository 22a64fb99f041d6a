#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cpu.hpp"

#include <algorithm>
#include <cmath>

#include "workers/gw/kernels/pole_sums/diagonal/response_rows.hpp"
#include "workers/gw/physics/plasmon_pole.hpp"
#include "workers/gw/physics/pole_response.hpp"

// Compiled with -fno-trapping-math: the rules near poles become blends, and the loops vectorise.

namespace quasi::gw {
namespace {

/// Rows and columns of a tile of elements, whose eight sums stay in the first-level caches.
constexpr std::int64_t kRows = 4;
constexpr std::int64_t kColumns = 128;

/// P, P' and their slopes of the elements of one row of a tile, in planes.
struct RowSums {
  double re[kColumns], im[kColumns], tau_re[kColumns], tau_im[kColumns];
  double slope_re[kColumns], slope_im[kColumns], slope_tau_re[kColumns], slope_tau_im[kColumns];
};

/// Elements [begin, end) of row g of a model, and the products of one pair with them.
struct RowElements {
  std::int64_t g = 0, begin = 0, end = 0;
  const double *tau = nullptr, *pole = nullptr;
};
struct PairOfRow {
  double x = 0.0, closed_x = 0.0;
  double g_re = 0.0, g_im = 0.0;
  const double *re = nullptr, *im = nullptr;
};

/// Adds one pair to the sums of a row; f(τ, ω̃) is the factor of its band.
template <bool kSlope, typename Factor>
void add_pair(const RowElements& row, const PairOfRow& pair, Factor factor, RowSums& sums) {
  const double* __restrict__ tau = row.tau;
  const double* __restrict__ pole = row.pole;
  const double* __restrict__ m_re = pair.re;
  const double* __restrict__ m_im = pair.im;
  const double x = pair.x, x_closed = pair.closed_x, g_re = pair.g_re, g_im = pair.g_im;
  RowSums* __restrict__ to = &sums;
#pragma omp simd
  for (std::int64_t h = 0; h < row.end - row.begin; ++h) {
    const double re = std::fma(g_re, m_re[h], g_im * m_im[h]);
    const double im = std::fma(g_im, m_re[h], -g_re * m_im[h]);
    const PoleResponse f = pole_response(factor(tau[h], pole[h]), x, tau[h]);
    const double closed = x_closed < 0.0 ? smooth_pole_value(x_closed, tau[h], -1.0) : 0.0;
    const double value = f.value - closed, by_tau = f.by_tau + x_closed * closed * closed;
    to->re[h] = std::fma(re, value, to->re[h]);
    to->im[h] = std::fma(im, value, to->im[h]);
    to->tau_re[h] = std::fma(re, by_tau, to->tau_re[h]);
    to->tau_im[h] = std::fma(im, by_tau, to->tau_im[h]);
    if constexpr (kSlope) {
      to->slope_re[h] = std::fma(re, f.slope, to->slope_re[h]);
      to->slope_im[h] = std::fma(im, f.slope, to->slope_im[h]);
      to->slope_tau_re[h] = std::fma(re, f.slope_by_tau, to->slope_tau_re[h]);
      to->slope_tau_im[h] = std::fma(im, f.slope_by_tau, to->slope_tau_im[h]);
    }
  }
}

/// The response of one block of products.
class ResponseSum {
 public:
  ResponseSum(const PolePlanes& model, const PoleRules& rules,
              const std::vector<const PoleChange*>& changes, View<const Cplx, 3> products,
              const ResponseTerms& terms)
      : model_(model),
        rules_(rules),
        changes_(changes),
        rows_(make_response_rows(terms, rules)),
        closed_x_(terms.closed_x_ry),
        n_left_(products.extent[0]),
        n_right_(products.extent[1]),
        split_(static_cast<std::size_t>(2 * products.size())) {
    const std::int64_t n_g = model.n_g;
#pragma omp parallel for schedule(static)
    for (std::int64_t p = 0; p < n_left_ * n_right_; ++p)
      for (std::int64_t g = 0; g < n_g; ++g) {
        const Cplx value = products.data[p * n_g + g];
        split_[static_cast<std::size_t>(p * 2 * n_g + g)] = value.real();
        split_[static_cast<std::size_t>((p * 2 + 1) * n_g + g)] = value.imag();
      }
  }

  /// Sums rows [first, end) of the model into total and slope, [n_changes][n_left] each.
  template <bool kSlope>
  void run(std::int64_t first, std::int64_t end, std::vector<double>& total,
           std::vector<double>& slope) const {
    std::vector<RowSums> sums(kRows);
    const std::int64_t columns = model_.folded ? end : model_.n_g;
    for (std::int64_t column = 0; column < columns; column += kColumns)
      for (std::int64_t l = 0; l < n_left_; ++l) {
        std::fill(sums.begin(), sums.end(), RowSums{});
        for (std::int64_t n = 0; n < n_right_; ++n)
          for (std::int64_t g = first; g < end; ++g)
            add<kSlope>(l * n_right_ + n, elements(g, column),
                        sums[static_cast<std::size_t>(g - first)]);
        for (std::int64_t g = first; g < end; ++g)
          for (std::size_t c = 0; c < changes_.size(); ++c)
            multiply<kSlope>(elements(g, column), sums[static_cast<std::size_t>(g - first)],
                             *changes_[c], total[c * static_cast<std::size_t>(n_left_) + l],
                             slope[c * static_cast<std::size_t>(n_left_) + l]);
      }
  }

 private:
  RowElements elements(std::int64_t g, std::int64_t column) const {
    const std::int64_t end = std::min(column + kColumns, model_.folded ? g + 1 : model_.n_g);
    const auto at = static_cast<std::size_t>(g * model_.n_g + column);
    return {g, column, std::max(column, end), model_.tau_per_ry.data() + at,
            model_.pole_ry.data() + at};
  }

  template <bool kSlope>
  void add(std::int64_t p, const RowElements& row, RowSums& sums) const {
    const double* m = split_.data() + p * 2 * model_.n_g;
    const double x = rows_[static_cast<std::size_t>(p * kResponseRowLength)],
                 rule = rows_[static_cast<std::size_t>(p * kResponseRowLength + 1)];
    const PairOfRow pair{
        x, closed_x_, m[row.g], m[model_.n_g + row.g], m + row.begin, m + model_.n_g + row.begin};
    const PoleRules rules = rules_;
    if (rule == row_rule::kNone)
      add_pair<false>(
          row, pair, [](double, double) { return 0.0; }, sums);
    else if (rule == row_rule::kDirectOccupied)
      add_pair<kSlope>(
          row, pair,
          [=](double, double pole) {
            return pole * pole_factor_occupied(x, pole, rules.screened_exchange_cut);
          },
          sums);
    else if (rule == row_rule::kDirectEmpty)
      add_pair<kSlope>(
          row, pair,
          [=](double, double pole) {
            return pole * pole_factor_empty(x, pole, rules.half_width_ry, rules.max_ratio);
          },
          sums);
    else
      add_pair<kSlope>(
          row, pair, [=](double tau, double) { return smooth_pole_value(x, tau, rule); }, sums);
  }

  template <bool kSlope>
  void multiply(const RowElements& row, const RowSums& sums, const PoleChange& change,
                double& total, double& slope) const {
    const std::int64_t first = model_.folded ? row.g * (row.g + 1) / 2 : row.g * model_.n_g;
    const std::complex<float>* strength = change.strength.data() + first + row.begin;
    const float* tau = change.tau_per_ry.data() + first + row.begin;
    const auto at = static_cast<std::size_t>(row.g * model_.n_g + row.begin);
    for (std::int64_t h = 0; h < row.end - row.begin; ++h) {
      // The planes of a folded model hold twice the elements off the diagonal.
      const double weight = model_.folded && row.begin + h != row.g ? 2.0 : 1.0;
      const double re = weight * strength[h].real(), im = weight * strength[h].imag(), dt = tau[h];
      const double all_re = (model_.b_re[at + h] + re) * dt,
                   all_im = (model_.b_im[at + h] + im) * dt;
      total +=
          sums.re[h] * re - sums.im[h] * im + sums.tau_re[h] * all_re - sums.tau_im[h] * all_im;
      if constexpr (kSlope)
        slope += sums.slope_re[h] * re - sums.slope_im[h] * im + sums.slope_tau_re[h] * all_re -
                 sums.slope_tau_im[h] * all_im;
    }
  }

  const PolePlanes& model_;
  PoleRules rules_;
  const std::vector<const PoleChange*>& changes_;
  std::vector<double> rows_;
  double closed_x_;
  std::int64_t n_left_, n_right_;
  std::vector<double> split_;
};

}  // namespace

void add_pole_response_cpu(const PolePlanes& model, const PoleRules& rules,
                           const std::vector<const PoleChange*>& changes,
                           View<const Cplx, 3> products, const ResponseTerms& terms,
                           const ResponseSums& sums) {
  const ResponseSum sum(model, rules, changes, products, terms);
  const std::int64_t n_left = products.extent[0], n_tasks = (model.n_g + kRows - 1) / kRows;
  const std::size_t size = changes.size() * static_cast<std::size_t>(n_left);
  std::vector<std::vector<double>> total(static_cast<std::size_t>(n_tasks)), slope(total.size());
  // Folded tasks grow with their row, so that the longest go first.
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t i = 0; i < n_tasks; ++i) {
    const std::int64_t task = n_tasks - 1 - i, end = std::min(model.n_g, (task + 1) * kRows);
    auto& of_task = total[static_cast<std::size_t>(task)];
    auto& slope_of_task = slope[static_cast<std::size_t>(task)];
    of_task.assign(size, 0.0);
    slope_of_task.assign(size, 0.0);
    if (sums.slope.data != nullptr)
      sum.run<true>(task * kRows, end, of_task, slope_of_task);
    else
      sum.run<false>(task * kRows, end, of_task, slope_of_task);
  }
  for (std::size_t task = 0; task < total.size(); ++task)
    for (std::size_t i = 0; i < size; ++i) {
      sums.total.data[i] += terms.weight * total[task][i];
      if (sums.slope.data != nullptr) sums.slope.data[i] += terms.weight * slope[task][i];
    }
}

}  // namespace quasi::gw
