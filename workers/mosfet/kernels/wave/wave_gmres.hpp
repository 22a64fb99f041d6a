#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>
#include <vector>

#include "workers/mosfet/kernels/wave/wave_problem.hpp"

/// This file has complex GMRES [saad1986] for all columns of right sides of a small-signal problem
/// (docs/theory/mosfet.md 17.8). Every column has its own directions and ends by itself. Vectors
/// stay on the machine that holds the problem. Only inner products reach the host.
namespace quasi::mosfet {

/// GMRES begins a new cycle after this number of directions.
constexpr int kWaveRestart = 100;
/// An inner product is summed in kWaveDotParts parts. Two further steps add kWaveDotsAtOnce numbers
/// each. The order of all sums is thus fixed.
constexpr int kWaveDotParts = 4096, kWaveDotsAtOnce = 64;

/// Holds one factor for each column of a vector.
struct WaveFactors {
  WaveValue of[kWaveColumns];
};
/// Holds the addresses of the directions of a cycle for the function objects below.
struct WaveDirections {
  const WaveValue* at[kWaveRestart] = {};
  int count = 0;
};

/// Computes the parts of the inner products Σ weight² d* v of all directions d and columns
/// [directions][kWaveColumns][kWaveDotParts].
struct WaveDotParts {
  WaveDirections directions;
  std::int64_t size;
  const double* weight;
  const WaveValue* vector;
  WaveValue* parts;
  QUASI_HD void operator()(std::int64_t number) const {
    const std::int64_t product = number / kWaveDotParts, column = product % kWaveColumns;
    const WaveValue* a = directions.at[product / kWaveColumns] + column * size;
    const WaveValue* b = vector + column * size;
    WaveValue sum;
    for (std::int64_t at = number % kWaveDotParts; at < size; at += kWaveDotParts)
      sum += (weight[at] * conj(a[at])) * (weight[at] * b[at]);
    parts[number] = sum;
  }
};
/// Adds every group of kWaveDotsAtOnce consecutive numbers.
struct WaveDotSums {
  const WaveValue* parts;
  WaveValue* sums;
  QUASI_HD void operator()(std::int64_t number) const {
    WaveValue sum;
    for (int n = 0; n < kWaveDotsAtOnce; ++n) sum += parts[number * kWaveDotsAtOnce + n];
    sums[number] = sum;
  }
};
/// Subtracts Σ share·direction from a vector of all columns. The shares have the shape
/// [directions][kWaveColumns].
struct WaveSubtract {
  WaveDirections directions;
  std::int64_t size;
  const WaveValue* share;
  WaveValue* to;
  QUASI_HD void operator()(std::int64_t number) const {
    const std::int64_t column = number / size;
    WaveValue value = to[number];
    for (int n = 0; n < directions.count; ++n)
      value -= share[n * kWaveColumns + column] * directions.at[n][number];
    to[number] = value;
  }
};
/// Writes scale·to + factor·from into `to`, with one factor for each column. With a scale of 0
/// the old values are not read.
struct WaveAdd {
  std::int64_t size;
  double scale;
  WaveFactors factor;
  const WaveValue* from;
  WaveValue* to;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveValue kept = scale != 0.0 ? scale * to[number] : WaveValue{};
    to[number] = kept + factor.of[number / size] * from[number];
  }
};
/// Copies either the means of δg or all other unknowns of a vector, and writes zeros in place of
/// the rest.
struct WaveSplit {
  WaveShape shape;
  bool takes_means;
  const WaveValue* from;
  WaveValue* to;
  QUASI_HD void operator()(std::int64_t number) const {
    const bool is_mean = number % shape.size() < shape.rows();
    to[number] = is_mean == takes_means ? from[number] : WaveValue{};
  }
};

/// Solves the least-squares problem of one column in one cycle. Givens rotations keep it
/// triangular.
class WaveCycle {
 public:
  using Value = std::complex<double>;
  /// Begins a cycle. @param length  weighted norm of the residual at its start
  explicit WaveCycle(double length) : rhs_{length} {}

  /// Adds a column of the Hessenberg matrix.
  /// @param h  components of the new vector along the k + 1 directions so far
  /// @param below  length of its orthogonal rest
  /// @return the norm of the residual of the least-squares problem
  double add_column(std::vector<Value> h, double below) {
    const std::size_t k = column_.size();
    h.emplace_back(below);
    for (std::size_t i = 0; i < k; ++i) {
      const Value upper = std::conj(cosine_[i]) * h[i] + sine_[i] * h[i + 1];
      h[i + 1] = -sine_[i] * h[i] + cosine_[i] * h[i + 1];
      h[i] = upper;
    }
    const double length = std::hypot(std::abs(h[k]), below);
    cosine_.push_back(length > 0.0 ? h[k] / length : Value(1.0));
    sine_.push_back(length > 0.0 ? below / length : 0.0);
    h[k] = length;
    rhs_.push_back(-sine_[k] * rhs_[k]);
    rhs_[k] *= std::conj(cosine_[k]);
    h.resize(k + 1);
    column_.push_back(std::move(h));
    return std::abs(rhs_.back());
  }

  /// Returns the weights of the directions in the solution.
  std::vector<Value> solve() const {
    std::vector<Value> y(column_.size());
    for (std::size_t k = y.size(); k-- > 0;) {
      Value sum = rhs_[k];
      for (std::size_t i = k + 1; i < y.size(); ++i) sum -= column_[i][k] * y[i];
      y[k] = column_[k][k] != 0.0 ? sum / column_[k][k] : 0.0;
    }
    return y;
  }

 private:
  std::vector<std::vector<Value>> column_;  ///< columns of R
  std::vector<Value> cosine_, rhs_;
  std::vector<double> sine_;
};

/// Holds the directions of GMRES for all columns on a machine, and computes sums of vectors and
/// inner products Σ weight² a* b of every column. A vector has the shape [kWaveColumns][size].
/// @tparam Machine  see WaveSolver
template <typename Machine>
class WaveVectors {
 public:
  using Vector = typename Machine::template Array<WaveValue>;

  /// Prepares vectors of `size` numbers in each column. Neither `machine` nor `weight` [size] is
  /// copied.
  WaveVectors(const Machine& machine, std::int64_t size, const double* weight)
      : machine_(machine), size_(size), weight_(weight) {}

  /// Makes a vector of all columns on the machine.
  Vector take() const {
    return machine_.template make<WaveValue>(static_cast<std::size_t>(kWaveColumns * size_),
                                             "vectors of the small signal");
  }
  /// Returns the direction with a number. It is made on first use.
  Vector& direction(std::size_t number) {
    while (directions_.size() <= number) directions_.push_back(take());
    return directions_[number];
  }

  /// Writes scale·to + factor·from into `to`, with one factor for each column.
  void add(double scale, const WaveFactors& factor, const Vector& from, Vector* to) const {
    machine_.run(kWaveColumns * size_, WaveAdd{size_, scale, factor, from.data(), to->data()},
                 "sum of vectors");
  }

  /// Returns the weighted norms of the columns of a vector [kWaveColumns].
  std::vector<double> lengths(const Vector& v) {
    WaveDirections one;
    one.at[one.count++] = v.data();
    dots(one, v, 0);
    std::vector<double> out;
    for (const WaveValue& value : sums(1)) out.push_back(std::sqrt(value.re));
    return out;
  }

  /// Holds the components of a vector along directions and the norm of its orthogonal rest, for
  /// each column.
  struct Components {
    std::vector<WaveCycle::Value> along[kWaveColumns];
    double left[kWaveColumns] = {};
  };
  /// Makes direction number `count` orthogonal to all directions before it, by two passes of Gram
  /// and Schmidt. The rest is not normalised. @return its components and its norm
  Components orthogonalise(int count) {
    WaveDirections all, own;
    for (; all.count < count; ++all.count)
      all.at[all.count] = directions_[static_cast<std::size_t>(all.count)].data();
    Vector& next = directions_[static_cast<std::size_t>(count)];
    own.at[own.count++] = next.data();
    for (int pass = 0; pass < 2; ++pass) {
      dots(all, next, pass * count);
      machine_.run(
          kWaveColumns * size_,
          WaveSubtract{all, size_, dots_.data() + pass * count * kWaveColumns, next.data()},
          "orthogonal vector");
    }
    dots(own, next, 2 * count);
    const std::vector<WaveValue> sum = sums(2 * count + 1);
    Components found;
    for (int c = 0; c < kWaveColumns; ++c) {
      for (int n = 0; n < count; ++n) {
        const WaveValue both = sum[n * kWaveColumns + c] + sum[(count + n) * kWaveColumns + c];
        found.along[c].emplace_back(both.re, both.im);
      }
      found.left[c] = std::sqrt(sum[2 * count * kWaveColumns + c].re);
    }
    return found;
  }

 private:
  // Writes the products of a vector with directions from this place of the sums on.
  void dots(const WaveDirections& directions, const Vector& vector, int place) {
    const std::int64_t products = static_cast<std::int64_t>(directions.count) * kWaveColumns;
    make_room();
    machine_.run(products * kWaveDotParts,
                 WaveDotParts{directions, size_, weight_, vector.data(), parts_.data()},
                 "inner products");
    machine_.run(products * kWaveDotsAtOnce, WaveDotSums{parts_.data(), groups_.data()},
                 "inner products");
    machine_.run(products, WaveDotSums{groups_.data(), dots_.data() + place * kWaveColumns},
                 "inner products");
  }
  void make_room() {
    constexpr std::size_t kProducts = static_cast<std::size_t>(kWaveRestart) * kWaveColumns;
    if (dots_.size() > 0) return;
    parts_ = machine_.template make<WaveValue>(kProducts * kWaveDotParts, "inner products");
    groups_ = machine_.template make<WaveValue>(kProducts * kWaveDotsAtOnce, "inner products");
    dots_ = machine_.template make<WaveValue>(2 * kProducts + kWaveColumns, "inner products");
  }
  std::vector<WaveValue> sums(int count) const {
    return machine_.download(dots_.data(), static_cast<std::size_t>(count * kWaveColumns),
                             "inner products");
  }

  const Machine& machine_;
  std::int64_t size_;
  const double* weight_;
  std::vector<Vector> directions_;
  Vector parts_, groups_, dots_;
};

/// Holds the result of wave_gmres().
struct WaveReport {
  int products = 0;     ///< applications of the operator to all columns
  double residual = 0;  ///< largest ‖b − A x‖/‖b‖ of a column
  bool converged = false;
};

/// Holds the state of GMRES that each column has for itself.
struct WaveColumn {
  double scale = 0;        ///< ‖b‖
  double goal = 0;         ///< norm of the residual to reach: the tolerance times ‖b‖
  double last = INFINITY;  ///< ‖b − A x‖/‖b‖ before the last cycle
  bool reached = false;    ///< the recurrence of the last cycle reached the tolerance
  bool is_done = false;
};

/// Runs one cycle of GMRES from direction 0. It ends when every column has reached its goal, or
/// after kWaveRestart directions or `max_products` applications of the operator in `report`.
template <typename Vectors, typename Apply>
void run_cycle(Vectors& vectors, const Apply& apply, int max_products, WaveColumn* columns,
               std::vector<WaveCycle>* cycles, WaveReport* report) {
  for (int k = 0; k + 1 < kWaveRestart && report->products < max_products; ++k) {
    auto& next = vectors.direction(static_cast<std::size_t>(k) + 1);
    apply(vectors.direction(static_cast<std::size_t>(k)), &next);
    ++report->products;
    auto found = vectors.orthogonalise(k + 1);
    WaveFactors factor;
    bool all_reached = true;
    for (int c = 0; c < kWaveColumns; ++c) {
      WaveColumn& own = columns[c];
      if (own.reached) continue;
      const double left = (*cycles)[static_cast<std::size_t>(c)].add_column(
          std::move(found.along[c]), found.left[c]);
      own.reached = left <= own.goal || !(found.left[c] > 0.0);
      all_reached = all_reached && own.reached;
      factor.of[c].re = own.reached ? 0.0 : 1.0 / found.left[c];
    }
    if (all_reached) return;
    vectors.add(0.0, factor, next, &next);
  }
}

/// Adds the directions of a cycle, times their weights, to the solutions x.
template <typename Vectors>
void add_directions(Vectors& vectors, const std::vector<WaveCycle>& cycles,
                    typename Vectors::Vector* x) {
  std::vector<std::vector<WaveCycle::Value>> weights;
  std::size_t most = 0;
  for (const WaveCycle& cycle : cycles) {
    weights.push_back(cycle.solve());
    most = std::max(most, weights.back().size());
  }
  for (std::size_t k = 0; k < most; ++k) {
    WaveFactors factor;
    for (int c = 0; c < kWaveColumns; ++c)
      if (const auto& own = weights[static_cast<std::size_t>(c)]; k < own.size())
        factor.of[c] = {own[k].real(), own[k].imag()};
    vectors.add(1.0, factor, vectors.direction(k), x);
  }
}

/// Solves A x = b for all columns by GMRES with restarts. Each column ends by the rules of gmres()
/// and then keeps its bits.
/// @param apply  apply(x, y) writes y = A x
/// @param tolerance  largest ‖b − A x‖/‖b‖ of a column
/// @param max_products  largest number of applications of A
/// @param x  in: start, out: solution
template <typename Vectors, typename Apply>
WaveReport wave_gmres(Vectors& vectors, const Apply& apply, const typename Vectors::Vector& b,
                      double tolerance, int max_products, typename Vectors::Vector* x) {
  constexpr double kRounding = 100.0;  // in tolerances
  constexpr WaveFactors kOne{{{1.0, 0.0}, {1.0, 0.0}, {1.0, 0.0}}};
  WaveReport report;
  WaveColumn columns[kWaveColumns];
  const std::vector<double> scales = vectors.lengths(b);
  for (int c = 0; c < kWaveColumns; ++c) {
    columns[c].scale = scales[static_cast<std::size_t>(c)];
    columns[c].goal = tolerance * columns[c].scale;
    columns[c].is_done = !(columns[c].scale > 0.0);
  }
  while (report.products < max_products) {
    auto& first = vectors.direction(0);
    apply(*x, &first);
    ++report.products;
    vectors.add(-1.0, kOne, b, &first);
    const std::vector<double> lengths = vectors.lengths(first);
    std::vector<WaveCycle> cycles;
    WaveFactors factor;
    report = {report.products, 0.0, true};
    for (int c = 0; c < kWaveColumns; ++c) {
      WaveColumn& own = columns[c];
      const double length = lengths[static_cast<std::size_t>(c)];
      const double residual = own.scale > 0.0 ? length / own.scale : 0.0;
      const bool at_rounding = own.reached && residual > 0.5 * own.last;
      own.is_done = own.is_done || residual <= tolerance ||
                    (at_rounding && residual <= kRounding * tolerance);
      own.last = residual;
      own.reached = own.is_done;
      cycles.emplace_back(length);
      factor.of[c].re = own.is_done ? 0.0 : 1.0 / length;
      report.residual = std::max(report.residual, residual);
      report.converged = report.converged && own.is_done;
    }
    if (report.converged) return report;
    vectors.add(0.0, factor, first, &first);
    run_cycle(vectors, apply, max_products, columns, &cycles, &report);
    add_directions(vectors, cycles, x);
  }
  return report;
}

}  // namespace quasi::mosfet
