#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cpu.hpp"

#include <algorithm>
#include <cmath>

#include "workers/gw/physics/plasmon_pole.hpp"

// Compiled with -fno-trapping-math: the rules near poles become blends, and the loops vectorise.

namespace quasi::gw {
namespace {

/// Rows G of one parallel task, and columns G' of one tile. 16·512 elements of 32 B stay in the
/// second-level cache of a core while all bands are summed.
constexpr std::int64_t kRowsPerTask = 16;
constexpr std::int64_t kColumnsPerTile = 512;

/// One pair product in separate planes of real and imaginary parts.
struct SplitProduct {
  const double* re;
  const double* im;
};

/// M(G) of the row that is summed.
struct RowProduct {
  double re;
  double im;
};

/// Rows and first column of the elements that one task sums at a time.
struct Tile {
  std::int64_t first_row;
  std::int64_t end_row;
  std::int64_t column;
};

/// The elements of one row G of a tile: planes starting at its first column.
struct TileRow {
  const double* b_re;
  const double* b_im;
  const double* tau;
  const double* pole;
  std::int64_t first_column;
  std::int64_t n_columns;
};

/// Moments t_0 … t_{K−1} of one band in separate planes of real and imaginary parts.
template <int K>
struct Moments {
  double re[K] = {};
  double im[K] = {};
};

/// Adds t_m += Σ_G' M(G) B_GG' M*(G') τ^m / D(τ) over one tile row, D(τ) = 1 + Σ_k d_k τ^{k+1}
/// (pole_groups.hpp).
template <int K, bool kReal>
void add_smooth(const TileRow& row, SplitProduct m, RowProduct mg, const double* d, Moments<K>& t) {
  const double* __restrict__ b_re = row.b_re;
  const double* __restrict__ b_im = row.b_im;
  const double* __restrict__ tau = row.tau;
  const double* __restrict__ m_re = m.re + row.first_column;
  const double* __restrict__ m_im = m.im + row.first_column;
  const double mg_re = mg.re, mg_im = mg.im;
  double r0 = 0, r1 = 0, r2 = 0, r3 = 0, i0 = 0, i1 = 0, i2 = 0, i3 = 0;
#pragma omp simd reduction(+ : r0, r1, r2, r3, i0, i1, i2, i3)
  for (std::int64_t h = 0; h < row.n_columns; ++h) {
    const double u_re = std::fma(b_re[h], m_re[h], b_im[h] * m_im[h]);
    const double u_im = std::fma(b_im[h], m_re[h], -b_re[h] * m_im[h]);
    const double c_re = std::fma(mg_re, u_re, -mg_im * u_im);
    const double x = tau[h];
    double polynomial = d[K - 1];
    if constexpr (K > 3) polynomial = std::fma(polynomial, x, d[2]);
    if constexpr (K > 2) polynomial = std::fma(polynomial, x, d[1]);
    if constexpr (K > 1) polynomial = std::fma(polynomial, x, d[0]);
    const double p0 = 1.0 / std::fma(polynomial, x, 1.0);
    r0 = std::fma(c_re, p0, r0);
    const double p1 = p0 * x;
    if constexpr (K > 1) r1 = std::fma(c_re, p1, r1);
    const double p2 = p1 * x;
    if constexpr (K > 2) r2 = std::fma(c_re, p2, r2);
    const double p3 = p2 * x;
    if constexpr (K > 3) r3 = std::fma(c_re, p3, r3);
    if constexpr (!kReal) {
      const double c_im = std::fma(mg_re, u_im, mg_im * u_re);
      i0 = std::fma(c_im, p0, i0);
      if constexpr (K > 1) i1 = std::fma(c_im, p1, i1);
      if constexpr (K > 2) i2 = std::fma(c_im, p2, i2);
      if constexpr (K > 3) i3 = std::fma(c_im, p3, i3);
    }
  }
  const double sums_re[] = {r0, r1, r2, r3};
  const double sums_im[] = {i0, i1, i2, i3};
  for (int k = 0; k < K; ++k) {
    t.re[k] += sums_re[k];
    t.im[k] += sums_im[k];
  }
}

/// Calculates Σ_G' M(G) A_GG' M*(G') factor(ω̃) over one tile row, for one of the rules near poles.
template <typename Factor>
Cplx sum_direct(const TileRow& row, SplitProduct m, RowProduct mg, Factor factor) {
  const double* __restrict__ b_re = row.b_re;
  const double* __restrict__ b_im = row.b_im;
  const double* __restrict__ pole = row.pole;
  const double* __restrict__ m_re = m.re + row.first_column;
  const double* __restrict__ m_im = m.im + row.first_column;
  const double mg_re = mg.re, mg_im = mg.im;
  double re = 0, im = 0;
#pragma omp simd reduction(+ : re, im)
  for (std::int64_t h = 0; h < row.n_columns; ++h) {
    const double u_re = std::fma(b_re[h], m_re[h], b_im[h] * m_im[h]);
    const double u_im = std::fma(b_im[h], m_re[h], -b_re[h] * m_im[h]);
    const double f = pole[h] * factor(pole[h]);
    re = std::fma(std::fma(mg_re, u_re, -mg_im * u_im), f, re);
    im = std::fma(std::fma(mg_re, u_im, mg_im * u_re), f, im);
  }
  return {re, im};
}

/// Total, SX − X and slope of one split row of pole_groups.hpp at one energy.
struct SplitSums {
  Cplx total, sx, slope;
};
/// The numbers of a split row at one energy.
struct SplitEnergy {
  double x, tau_low, tau_high;
};

/// Sums M(G) B_GG' M*(G') times the factors of total, SX − X and, with kSlope, slope over one
/// tile row. kReal: the imaginary parts cancel, and stay 0.
template <bool kSlope, bool kReal>
SplitSums sum_split(const TileRow& row, SplitProduct m, RowProduct mg, SplitEnergy energy) {
  const double* __restrict__ b_re = row.b_re;
  const double* __restrict__ b_im = row.b_im;
  const double* __restrict__ tau = row.tau;
  const double* __restrict__ m_re = m.re + row.first_column;
  const double* __restrict__ m_im = m.im + row.first_column;
  const double mg_re = mg.re, mg_im = mg.im, x = energy.x, low = energy.tau_low,
               high = energy.tau_high;
  double total_re = 0, total_im = 0, sx_re = 0, sx_im = 0, slope_re = 0, slope_im = 0;
#pragma omp simd reduction(+ : total_re, total_im, sx_re, sx_im, slope_re, slope_im)
  for (std::int64_t h = 0; h < row.n_columns; ++h) {
    const double u_re = std::fma(b_re[h], m_re[h], b_im[h] * m_im[h]);
    const double u_im = std::fma(b_im[h], m_re[h], -b_re[h] * m_im[h]);
    const double c_re = std::fma(mg_re, u_re, -mg_im * u_im);
    const double plus = std::fma(x, tau[h], 1.0), minus = std::fma(-x, tau[h], 1.0);
    const bool near = (tau[h] >= low) & (tau[h] <= high);
    const double r = 1.0 / (near ? plus : plus * minus);
    const double total = near ? r : minus * r, sx = near ? r : 2.0 * r;
    const double slope = -tau[h] * total * total;
    total_re = std::fma(c_re, total, total_re);
    sx_re = std::fma(c_re, sx, sx_re);
    if constexpr (kSlope) slope_re = std::fma(c_re, slope, slope_re);
    if constexpr (!kReal) {
      const double c_im = std::fma(mg_re, u_im, mg_im * u_re);
      total_im = std::fma(c_im, total, total_im);
      sx_im = std::fma(c_im, sx, sx_im);
      if constexpr (kSlope) slope_im = std::fma(c_im, slope, slope_im);
    }
  }
  return {{total_re, total_im}, {sx_re, sx_im}, {slope_re, slope_im}};
}

/// Sums of one task for the energies of one group, [n_left][K].
struct Partial {
  std::vector<Cplx> total, sx;
};

/// The sum over one model and one group of K energies (docs/theory/gw.md 6.2): bands far from all
/// poles by moments, the others by the rules near poles.
template <int K>
class GroupSum {
 public:
  GroupSum(const PolePlanes& model, const PoleRules& rules, const PoleGroup& group,
           const double* split, std::int64_t n_right)
      : model_(model), rules_(rules), group_(group), split_(split), n_right_(n_right) {}

  void run(std::int64_t first_row, std::int64_t end_row, Partial& partial) const {
    const std::int64_t n_left = static_cast<std::int64_t>(group_.smooth_begin.size()) - 1;
    for (std::int64_t column = 0; column < model_.n_g; column += kColumnsPerTile) {
      if (model_.folded && column >= end_row) break;
      const Tile tile{first_row, end_row, column};
      for (std::int64_t l = 0; l < n_left; ++l) {
        for (int i = group_.smooth_begin[l]; i < group_.smooth_begin[l + 1]; ++i)
          add_smooth_band(l, i, tile, partial.total.data() + l * K);
        for (int i = group_.split_begin[l]; i < group_.split_begin[l + 1]; ++i)
          add_split_band(l, i, tile, partial.total.data() + l * K, partial.sx.data() + l * K);
        for (int i = group_.direct_begin[l]; i < group_.direct_begin[l + 1]; ++i)
          add_direct_band(l, i, tile, partial.total.data() + l * K, partial.sx.data() + l * K);
      }
    }
  }

 private:
  SplitProduct product(std::int64_t l, std::int64_t n) const {
    const double* at = split_ + (l * n_right_ + n) * 2 * model_.n_g;
    return {at, at + model_.n_g};
  }

  TileRow tile_row(std::int64_t g, std::int64_t column) const {
    const std::int64_t end = std::min(column + kColumnsPerTile, model_.folded ? g + 1 : model_.n_g);
    const std::size_t at = model_.at(g, column);
    return {model_.b_re.data() + at,
            model_.b_im.data() + at,
            model_.tau_per_ry.data() + at,
            model_.pole_ry.data() + at,
            column,
            std::max<std::int64_t>(0, end - column)};
  }

  /// Adds a band far from all poles, at position i of the group's list, to total [K].
  void add_smooth_band(std::int64_t l, int i, const Tile& tile, Cplx* total) const {
    const SplitProduct m = product(l, group_.smooth_band[i]);
    const double* d = group_.smooth_row.data() + std::int64_t{i} * smooth_row_length(K);
    Moments<K> t;
    for (std::int64_t g = tile.first_row; g < tile.end_row; ++g) {
      const TileRow row = tile_row(g, tile.column);
      if (model_.folded)
        add_smooth<K, true>(row, m, {m.re[g], m.im[g]}, d, t);
      else
        add_smooth<K, false>(row, m, {m.re[g], m.im[g]}, d, t);
    }
    const double* c = d + K;
    for (int j = 0; j < K; ++j)
      for (int k = 0; k < K; ++k) total[j] += Cplx(c[j * K + k] * t.re[k], c[j * K + k] * t.im[k]);
  }

  /// Adds an occupied band far from all poles whose SX is told apart, at position i of the group's
  /// list, to total [K] and SX − X [K].
  void add_split_band(std::int64_t l, int i, const Tile& tile, Cplx* total, Cplx* sx) const {
    const SplitProduct m = product(l, group_.split_band[i]);
    const double* row = group_.split_row.data() + std::int64_t{i} * split_row_length(K);
    for (std::int64_t g = tile.first_row; g < tile.end_row; ++g) {
      const TileRow elements = tile_row(g, tile.column);
      const auto add = [&]<bool kSlope>(int k) {
        const SplitEnergy energy{row[k], row[K + k], row[2 * K + k]};
        const RowProduct mg{m.re[g], m.im[g]};
        const SplitSums sums = model_.folded ? sum_split<kSlope, true>(elements, m, mg, energy)
                                             : sum_split<kSlope, false>(elements, m, mg, energy);
        total[k] += row[3 * K] * sums.total;
        sx[k] += row[3 * K] * sums.sx;
        if constexpr (kSlope) total[K - 1] += row[3 * K] * sums.slope;
      };
      if (group_.second_is_slope)
        add.template operator()<true>(0);
      else
        for (int k = 0; k < K; ++k) add.template operator()<false>(k);
    }
  }

  /// Adds a band near poles, at position i of the group's list, to total [K] and SX − X [K].
  void add_direct_band(std::int64_t l, int i, const Tile& tile, Cplx* total, Cplx* sx) const {
    const SplitProduct m = product(l, group_.direct_band[i]);
    const double* x = group_.direct_row.data() + std::int64_t{i} * direct_row_length(K);
    const double occupied = x[K], empty = x[K + 1], exchange = x[K + 2];
    const PoleRules rules = rules_;
    for (std::int64_t g = tile.first_row; g < tile.end_row; ++g) {
      const TileRow row = tile_row(g, tile.column);
      const auto add = [&](double weight, Cplx& to, auto factor) {
        const Cplx sum = weight * sum_direct(row, m, {m.re[g], m.im[g]}, factor);
        to += model_.folded ? Cplx(sum.real(), 0.0) : sum;
      };
      for (int k = 0; k < K; ++k) {
        const double xk = x[k];
        if (k == 1 && group_.second_is_slope) {
          // The derivative of a factor f = 1/(x ± ω̃) is −f², which is 0 for a dropped term too.
          if (occupied != 0.0)
            add(-occupied, total[k], [=](double pole) {
              const double f = pole_factor_occupied(xk, pole, rules.screened_exchange_cut);
              return f * f;
            });
          if (empty != 0.0)
            add(-empty, total[k], [=](double pole) {
              const double f = pole_factor_empty(xk, pole, rules.half_width_ry, rules.max_ratio);
              return f * f;
            });
          continue;
        }
        if (occupied != 0.0)
          add(occupied, total[k], [=](double pole) {
            return pole_factor_occupied(xk, pole, rules.screened_exchange_cut);
          });
        if (empty != 0.0)
          add(empty, total[k], [=](double pole) {
            return pole_factor_empty(xk, pole, rules.half_width_ry, rules.max_ratio);
          });
        if (exchange != 0.0)
          add(exchange, sx[k], [=](double pole) {
            return pole_factor_screened_exchange(xk, pole, rules.half_width_ry, rules.max_ratio,
                                                 rules.screened_exchange_cut);
          });
      }
    }
  }

  const PolePlanes& model_;
  PoleRules rules_;
  const PoleGroup& group_;
  const double* split_;
  std::int64_t n_right_;
};

template <int K>
void add_group(const PolePlanes& model, const PoleRules& rules, const PoleGroup& group,
               View<const Cplx, 3> products, const DiagonalSums& sums) {
  const auto [n_left, n_right, n_g] = products.extent;
  std::vector<double> split(static_cast<std::size_t>(2 * products.size()));
#pragma omp parallel for schedule(static)
  for (std::int64_t p = 0; p < n_left * n_right; ++p)
    for (std::int64_t g = 0; g < n_g; ++g) {
      const Cplx value = products.data[p * n_g + g];
      split[static_cast<std::size_t>(p * 2 * n_g + g)] = value.real();
      split[static_cast<std::size_t>((p * 2 + 1) * n_g + g)] = value.imag();
    }

  const GroupSum<K> sum(model, rules, group, split.data(), n_right);
  const auto [begin, end] = model.rows;
  const std::int64_t n_tasks = (end - begin + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<Partial> partials(static_cast<std::size_t>(n_tasks));
  // Folded tasks grow with their row, so that the longest go first.
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t i = 0; i < n_tasks; ++i) {
    const std::int64_t task = n_tasks - 1 - i;
    Partial& partial = partials[static_cast<std::size_t>(task)];
    partial.total.assign(static_cast<std::size_t>(n_left * K), Cplx());
    partial.sx.assign(static_cast<std::size_t>(n_left * K), Cplx());
    const std::int64_t first = begin + task * kRowsPerTask;
    sum.run(first, std::min(end, first + kRowsPerTask), partial);
  }
  for (const Partial& partial : partials)
    for (std::int64_t l = 0; l < n_left; ++l)
      for (int k = 0; k < K; ++k) {
        const auto at = static_cast<std::size_t>(l * K + k);
        sums.total(l, group.first_energy + k) += partial.total[at];
        if (sums.sx.data) sums.sx(l, group.first_energy + k) += partial.sx[at];
      }
}

}  // namespace

bool is_hermitian(const PlasmonPoleView& model) {
  if (model.hermitian) return true;
  constexpr std::int64_t kTile =
      64;  // rows and columns compared at a time, so that both stay in cache
  const std::int64_t n_g = model.pole_ry.extent[0], n_tiles = (n_g + kTile - 1) / kTile;
  std::int64_t departures = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : departures)
  for (std::int64_t tile = 0; tile < n_tiles; ++tile)
    for (std::int64_t first = 0; first <= tile * kTile; first += kTile)
      for (std::int64_t g = tile * kTile; g < std::min(n_g, (tile + 1) * kTile); ++g)
        for (std::int64_t h = first; h < std::min(g + 1, first + kTile); ++h) {
          const double pole = model.pole_ry(g, h);
          const Cplx strength = model.strength(g, h);
          if (!(std::abs(pole - model.pole_ry(h, g)) <= kHermitianTolerance * pole) ||
              !(std::abs(strength - std::conj(model.strength(h, g))) <=
                kHermitianTolerance * std::abs(strength)))
            ++departures;
        }
  return departures == 0;
}

PolePlanes make_pole_planes(const PlasmonPoleView& model, const ElementRows& rows) {
  PolePlanes planes;
  planes.n_g = model.pole_ry.extent[0];
  planes.rows = rows;
  planes.folded = is_hermitian(model);
  planes.stride = columns_of_rows(rows, planes.n_g, planes.folded);
  for (auto* plane : {&planes.b_re, &planes.b_im, &planes.tau_per_ry, &planes.pole_ry})
    plane->resize(static_cast<std::size_t>(rows.size() * planes.stride));
#pragma omp parallel for schedule(static)
  for (std::int64_t g = rows.begin; g < rows.end; ++g)
    for (std::int64_t h = 0; h < planes.stride; ++h) {
      const std::size_t at = planes.at(g, h);
      const double pole = model.pole_ry(g, h);
      const double weight = !planes.folded || g == h ? 1.0 : 2.0;
      const Cplx b = weight * (model.strength(g, h) / pole);
      planes.b_re[at] = b.real();
      planes.b_im[at] = b.imag();
      planes.tau_per_ry[at] = pole >= kStaticPole_ry ? 0.0 : 1.0 / pole;
      planes.pole_ry[at] = pole;
    }
  return planes;
}

void add_gpp_diagonal_cpu(const PolePlanes& model, const PoleRules& rules, const PoleGroup& group,
                          View<const Cplx, 3> products, const DiagonalSums& sums) {
  switch (group.n_energies) {
    case 1:
      return add_group<1>(model, rules, group, products, sums);
    case 2:
      return add_group<2>(model, rules, group, products, sums);
    case 3:
      return add_group<3>(model, rules, group, products, sums);
    case 4:
      return add_group<4>(model, rules, group, products, sums);
  }
}

}  // namespace quasi::gw
