#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cpu.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "workers/gw/kernels/pole_sums/diagonal/response_rows.hpp"
#include "workers/gw/physics/plasmon_pole.hpp"
#include "workers/gw/physics/pole_response.hpp"

// Compiled with -fno-trapping-math: the rules near poles become blends, and the loops vectorise.

namespace quasi::gw {
namespace {

/// A tile has this number of rows and of columns of elements (G, G'). Its sums fit the first-level
/// caches.
constexpr std::int64_t kRows = 4;
constexpr std::int64_t kColumns = 64;

/// Holds the real and imaginary parts of one sum for all elements of a row of a tile.
struct Plane {
  double re[kColumns], im[kColumns];
};
/// Sums over bands of M M* times powers of x and f, and of the second factor e of a row
/// (response_rows.hpp), for the elements of one row of a tile.
struct RowSums {
  Plane product;  ///< of the run so far
  Plane one, f, f2, xf2, e;
  Plane xf3, e2;  ///< of slopes
};

/// Elements [begin, end) of row g of a model, and the products of one pair with them.
struct RowElements {
  std::int64_t g = 0, begin = 0, end = 0;
  const double *tau = nullptr, *pole = nullptr;
  std::int64_t size() const { return end - begin; }
};
struct PairOfRow {
  double g_re = 0.0, g_im = 0.0;
  const double *re = nullptr, *im = nullptr;
};
/// Holds the pole factors f and e of one band at one element (docs/theory/gw.md 9.3).
struct Factors {
  double f, e;
};

/// Selects a variant of the loop over elements at compile time.
struct Form {
  bool real;   ///< all products are real
  bool slope;  ///< slopes of responses are wanted
};

/// Adds M M* of one pair to the product of its run.
template <Form kForm>
void add_product(const RowElements& row, const PairOfRow& pair, RowSums& sums) {
  const double* __restrict__ m_re = pair.re;
  const double* __restrict__ m_im = pair.im;
  const double g_re = pair.g_re, g_im = pair.g_im;
  Plane* __restrict__ to = &sums.product;
#pragma omp simd
  for (std::int64_t h = 0; h < row.size(); ++h) {
    to->re[h] = std::fma(g_re, m_re[h], to->re[h]);
    if constexpr (kForm.real) continue;
    to->re[h] = std::fma(g_im, m_im[h], to->re[h]);
    to->im[h] = std::fma(g_im, m_re[h], std::fma(-g_re, m_im[h], to->im[h]));
  }
}

/// Adds the product of a run to the sums of a row of elements, and begins the next run. `factors`
/// returns those of the run at (τ, ω̃). @param x  x of the run, Ry
template <Form kForm, bool kTwo, typename Function>
void add_run(const RowElements& row, double x, Function factors, RowSums& sums) {
  const double* __restrict__ tau = row.tau;
  const double* __restrict__ pole = row.pole;
  RowSums* __restrict__ to = &sums;
#pragma omp simd
  for (std::int64_t h = 0; h < row.size(); ++h) {
    const Factors at = factors(tau[h], pole[h]);
    const double square = at.f * at.f, by_x = x * square;
    const double re = to->product.re[h];
    to->product.re[h] = 0.0;
    to->one.re[h] += re;
    to->f.re[h] = std::fma(re, at.f, to->f.re[h]);
    to->f2.re[h] = std::fma(re, square, to->f2.re[h]);
    to->xf2.re[h] = std::fma(re, by_x, to->xf2.re[h]);
    if constexpr (kTwo) to->e.re[h] = std::fma(re, at.e, to->e.re[h]);
    if constexpr (kForm.slope) to->xf3.re[h] = std::fma(re, by_x * at.f, to->xf3.re[h]);
    if constexpr (kForm.slope && kTwo) to->e2.re[h] = std::fma(re, at.e * at.e, to->e2.re[h]);
    if constexpr (kForm.real) continue;
    const double im = to->product.im[h];
    to->product.im[h] = 0.0;
    to->one.im[h] += im;
    to->f.im[h] = std::fma(im, at.f, to->f.im[h]);
    to->f2.im[h] = std::fma(im, square, to->f2.im[h]);
    to->xf2.im[h] = std::fma(im, by_x, to->xf2.im[h]);
    if constexpr (kTwo) to->e.im[h] = std::fma(im, at.e, to->e.im[h]);
    if constexpr (kForm.slope) to->xf3.im[h] = std::fma(im, by_x * at.f, to->xf3.im[h]);
    if constexpr (kForm.slope && kTwo) to->e2.im[h] = std::fma(im, at.e * at.e, to->e2.im[h]);
  }
}

/// Calls add(factors, std::bool_constant of a second factor) for the rule of a row.
template <typename Add>
void with_factors(const ResponseRow& row, const PoleRules& rules, const Add& add) {
  const double x = row.x_ry, other = row.other_x_ry, low = row.low_tau, high = row.high_tau,
               width = rules.half_width_ry, ratio = rules.max_ratio,
               cut = rules.screened_exchange_cut;
  const std::false_type one;
  const std::true_type two;
  switch (row.rule) {
    case RowRule::kNone:
      return add([](double, double) { return Factors{0.0, 0.0}; }, one);
    case RowRule::kSmoothOccupied:
      return add(
          [=](double tau, double) {
            return Factors{smooth_pole_value(x, tau, 1.0), 0.0};
          },
          one);
    case RowRule::kSmoothEmpty:
      return add(
          [=](double tau, double) {
            return Factors{smooth_pole_value(x, tau, -1.0), 0.0};
          },
          one);
    case RowRule::kDirectOccupied:
      return add(
          [=](double, double pole) {
            return Factors{pole * pole_factor_occupied(x, pole, cut), 0.0};
          },
          one);
    case RowRule::kDirectEmpty:
      return add(
          [=](double, double pole) {
            return Factors{pole * pole_factor_empty(x, pole, width, ratio), 0.0};
          },
          one);
    case RowRule::kSplitSmooth:
      return add(
          [=](double tau, double) {
            const SplitPoleValues both = split_pole_values(x, tau, low, high);
            return Factors{both.total, both.screened_exchange};
          },
          two);
    case RowRule::kSplitDirect:
      return add(
          [=](double, double pole) {
            return Factors{pole * pole_factor_occupied(x, pole, cut),
                           pole * pole_factor_screened_exchange(x, pole, width, ratio, cut)};
          },
          two);
    case RowRule::kTwoSmooth:
      return add(
          [=](double tau, double) {
            return Factors{smooth_pole_value(x, tau, -1.0), smooth_pole_value(other, tau, -1.0)};
          },
          two);
    case RowRule::kTwoDirect:
      return add(
          [=](double, double pole) {
            return Factors{pole * pole_factor_empty(x, pole, width, ratio),
                           pole * pole_factor_empty(other, pole, width, ratio)};
          },
          two);
  }
}

/// Sums of one task over its elements.
struct TaskSums {
  std::vector<double> total, slope;  ///< [n_changes][n_groups]
  std::vector<double> own;           ///< [n_segments][kOwnSums][n_groups]
};

/// The response of one block of products.
class ResponseSum {
 public:
  ResponseSum(const PolePlanes& model, const PoleRules& rules,
              const std::vector<const PoleChange*>& changes, View<const Cplx, 3> products,
              const ResponseTerms& terms, bool wants_own)
      : model_(model),
        rules_(rules),
        changes_(changes),
        rows_(make_response_rows(terms, rules)),
        closed_x_(terms.closed_x_ry),
        wants_own_(wants_own),
        split_(static_cast<std::size_t>(2 * products.size())) {
    const std::int64_t n_g = model.n_g;
#pragma omp parallel for schedule(static)
    for (std::int64_t p = 0; p < products.extent[0] * products.extent[1]; ++p)
      for (std::int64_t g = 0; g < n_g; ++g) {
        const Cplx value = products.data[p * n_g + g];
        split_[static_cast<std::size_t>(p * 2 * n_g + g)] = value.real();
        split_[static_cast<std::size_t>((p * 2 + 1) * n_g + g)] = value.imag();
      }
    real_ = std::all_of(products.data, products.data + products.size(),
                        [](const Cplx& value) { return value.imag() == 0.0; });
  }

  TaskSums no_sums() const {
    const auto n_groups = static_cast<std::size_t>(rows_.n_groups());
    return {std::vector<double>(changes_.size() * n_groups),
            std::vector<double>(changes_.size() * n_groups),
            std::vector<double>(static_cast<std::size_t>(rows_.n_segments * kOwnSums) * n_groups)};
  }

  bool is_real() const { return real_; }
  const std::vector<std::int64_t>& group_end() const { return rows_.group_end; }

  /// Sums rows [first, end) of the model.
  template <Form kForm>
  void run(std::int64_t first, std::int64_t end, TaskSums& to) const {
    std::vector<RowSums> sums(kRows);
    const std::int64_t columns = model_.folded ? end : model_.n_g;
    for (std::int64_t column = 0; column < columns; column += kColumns) {
      const Tile tile{first, end, column};
      // Σ so far over the segments of a group, of which each segment gets the increase.
      double before[kOwnSums] = {};
      for (const RowSegment& segment : rows_.segment) {
        if (segment.segment == 0) {
          std::fill(sums.begin(), sums.end(), RowSums{});
          std::fill_n(before, kOwnSums, 0.0);
        }
        for (std::int64_t row = segment.begin; row < segment.end;
             row += rows_.row[static_cast<std::size_t>(row)].run)
          for (std::int64_t g = first; g < end; ++g)
            add<kForm>(static_cast<std::size_t>(row), elements(g, column),
                       sums[static_cast<std::size_t>(g - first)]);
        if (wants_own_) add_own(tile, segment, sums, before, to);
        if (segment.segment + 1 == rows_.n_segments)
          add_changes<kForm.slope>(tile, segment.group, sums, to);
      }
    }
  }

 private:
  /// Rows [first, end) of a tile of elements, and its first column.
  struct Tile {
    std::int64_t first, end, column;
  };
  RowElements elements(std::int64_t g, std::int64_t column) const {
    const std::int64_t end = std::min(column + kColumns, model_.folded ? g + 1 : model_.n_g);
    const std::size_t at = model_.at(g, column);
    return {g, column, std::max(column, end), model_.tau_per_ry.data() + at,
            model_.pole_ry.data() + at};
  }

  /// Adds the run that begins at a row.
  template <Form kForm>
  void add(std::size_t first, const RowElements& row, RowSums& sums) const {
    const ResponseRow& of_run = rows_.row[first];
    for (std::size_t at = first; at < first + static_cast<std::size_t>(of_run.run); ++at) {
      const double* m = split_.data() + rows_.pair[at] * 2 * model_.n_g;
      add_product<kForm>(
          row, {m[row.g], m[model_.n_g + row.g], m + row.begin, m + model_.n_g + row.begin}, sums);
    }
    with_factors(of_run, rules_, [&](auto factors, auto two) {
      add_run<kForm, decltype(two)::value>(row, of_run.x_ry, factors, sums);
    });
  }

  /// Gives a segment the increase of the sums of the model since `before`.
  void add_own(const Tile& tile, const RowSegment& segment, const std::vector<RowSums>& sums,
               double* before, TaskSums& to) const {
    double now[kOwnSums] = {};
    for (std::int64_t g = tile.first; g < tile.end; ++g)
      multiply_own(elements(g, tile.column), sums[static_cast<std::size_t>(g - tile.first)], now);
    for (std::int64_t k = 0; k < kOwnSums; ++k)
      to.own[static_cast<std::size_t>((segment.segment * kOwnSums + k) * rows_.n_groups() +
                                      segment.group)] += now[k] - std::exchange(before[k], now[k]);
  }
  /// Multiplies the sums of a group of outer states with every change.
  template <bool kSlope>
  void add_changes(const Tile& tile, std::int32_t group, const std::vector<RowSums>& sums,
                   TaskSums& to) const {
    for (std::int64_t g = tile.first; g < tile.end; ++g)
      for (std::size_t c = 0; c < changes_.size(); ++c) {
        const std::size_t at =
            c * static_cast<std::size_t>(rows_.n_groups()) + static_cast<std::size_t>(group);
        multiply<kSlope>(elements(g, tile.column), sums[static_cast<std::size_t>(g - tile.first)],
                         *changes_[c], to.total[at], to.slope[at]);
      }
  }

  /// Adds the sums of the model itself.
  void multiply_own(const RowElements& row, const RowSums& sums, double* to) const {
    const std::size_t at = model_.at(row.g, row.begin);
    const auto add_at = [&](OwnSum which, const Plane& plane, std::int64_t h, double factor) {
      to[static_cast<std::size_t>(which)] +=
          factor * (plane.re[h] * model_.b_re[at + static_cast<std::size_t>(h)] -
                    plane.im[h] * model_.b_im[at + static_cast<std::size_t>(h)]);
    };
    for (std::int64_t h = 0; h < row.size(); ++h) {
      add_at(OwnSum::kTotal, sums.f, h, 1.0);
      add_at(OwnSum::kSlope, sums.f2, h, -row.tau[h]);
      add_at(OwnSum::kSecond, sums.e, h, 1.0);
      add_at(OwnSum::kSecondSlope, sums.e2, h, -row.tau[h]);
      if (closed_x_ < 0.0)
        add_at(OwnSum::kClosed, sums.one, h, smooth_pole_value(closed_x_, row.tau[h], -1.0));
    }
  }

  template <bool kSlope>
  void multiply(const RowElements& row, const RowSums& sums, const PoleChange& change,
                double& total, double& slope) const {
    const std::int64_t first = model_.folded ? row.g * (row.g + 1) / 2 : row.g * model_.n_g;
    const std::complex<float>* strength = change.strength.data() + first + row.begin;
    const float* tau = change.tau_per_ry.data() + first + row.begin;
    const std::size_t at = model_.at(row.g, row.begin);
    for (std::int64_t h = 0; h < row.size(); ++h) {
      // The planes of a folded model hold twice the elements off the diagonal.
      const double weight = model_.folded && row.begin + h != row.g ? 2.0 : 1.0;
      const double re = weight * strength[h].real(), im = weight * strength[h].imag(), dt = tau[h];
      const double all_re = (model_.b_re[at + h] + re) * dt,
                   all_im = (model_.b_im[at + h] + im) * dt;
      const double f = closed_x_ < 0.0 ? smooth_pole_value(closed_x_, row.tau[h], -1.0) : 0.0,
                   by_tau = closed_x_ * f * f;
      total += (sums.f.re[h] - f * sums.one.re[h]) * re - (sums.f.im[h] - f * sums.one.im[h]) * im +
               (by_tau * sums.one.re[h] - sums.xf2.re[h]) * all_re -
               (by_tau * sums.one.im[h] - sums.xf2.im[h]) * all_im;
      if constexpr (kSlope) {
        const double t = row.tau[h];
        slope += t * (sums.f2.im[h] * im - sums.f2.re[h] * re) +
                 (2.0 * t * sums.xf3.re[h] - sums.f2.re[h]) * all_re -
                 (2.0 * t * sums.xf3.im[h] - sums.f2.im[h]) * all_im;
      }
    }
  }

  const PolePlanes& model_;
  PoleRules rules_;
  const std::vector<const PoleChange*>& changes_;
  OrderedRows rows_;
  double closed_x_;
  bool wants_own_, real_ = false;
  std::vector<double> split_;
};

}  // namespace

void add_pole_response_cpu(const PolePlanes& model, const PoleRules& rules,
                           const ChangesOfRows& changes, View<const Cplx, 3> products,
                           const ResponseTerms& terms, const ResponseSums& sums) {
  const bool wants_own = sums.own.data != nullptr;
  const ResponseSum sum(model, rules, changes.list, products, terms, wants_own);
  const auto [begin, last] = changes.rows;
  const std::int64_t n_tasks = (last - begin + kRows - 1) / kRows;
  std::vector<TaskSums> found(static_cast<std::size_t>(n_tasks));
  // Folded tasks grow with their row, so that the longest go first.
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t i = 0; i < n_tasks; ++i) {
    const std::int64_t task = n_tasks - 1 - i, first = begin + task * kRows,
                       end = std::min(last, first + kRows);
    TaskSums& of_task = found[static_cast<std::size_t>(task)];
    of_task = sum.no_sums();
    const bool slope = sums.slope.data != nullptr;
    if (sum.is_real() && slope)
      sum.run<Form{true, true}>(first, end, of_task);
    else if (sum.is_real())
      sum.run<Form{true, false}>(first, end, of_task);
    else if (slope)
      sum.run<Form{false, true}>(first, end, of_task);
    else
      sum.run<Form{false, false}>(first, end, of_task);
  }
  for (const TaskSums& of_task : found) {
    add_group_means(of_task.total, sum.group_end(), terms.weight, sums.total.data);
    if (sums.slope.data != nullptr)
      add_group_means(of_task.slope, sum.group_end(), terms.weight, sums.slope.data);
    if (wants_own) add_group_means(of_task.own, sum.group_end(), terms.weight, sums.own.data);
  }
}

}  // namespace quasi::gw
