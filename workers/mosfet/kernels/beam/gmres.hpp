#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace quasi::mosfet {

/// Number of directions after which gmres() starts again, unless its caller says otherwise.
constexpr int kGmresRestart = 40;

/// Result of a GMRES iteration.
struct GmresReport {
  int products = 0;     ///< applications of the operator
  double residual = 0;  ///< ‖b − A x‖/‖b‖ in the norm of the vectors
  bool converged = false;
};

/// Least-squares problem of one cycle of GMRES, kept triangular by Givens rotations.
/// See docs/theory/mosfet.md 17.5 and saad1986 for the method.
class GmresCycle {
 public:
  explicit GmresCycle(double length) : rhs_{length} {}

  /// Adds a column of the Hessenberg matrix [k+2] and returns the residual.
  double add_column(std::vector<double> h) {
    const std::size_t k = column_.size();
    for (std::size_t i = 0; i < k; ++i) {
      const double upper = cosine_[i] * h[i] + sine_[i] * h[i + 1];
      h[i + 1] = -sine_[i] * h[i] + cosine_[i] * h[i + 1];
      h[i] = upper;
    }
    const double length = std::hypot(h[k], h[k + 1]);
    cosine_.push_back(length > 0.0 ? h[k] / length : 1.0);
    sine_.push_back(length > 0.0 ? h[k + 1] / length : 0.0);
    h[k] = length;
    rhs_.push_back(-sine_[k] * rhs_[k]);
    rhs_[k] *= cosine_[k];
    h.resize(k + 1);
    column_.push_back(std::move(h));
    return std::fabs(rhs_.back());
  }

  /// Returns the weights of the directions.
  std::vector<double> solve() const {
    std::vector<double> y(column_.size());
    for (std::size_t k = y.size(); k-- > 0;) {
      double sum = rhs_[k];
      for (std::size_t i = k + 1; i < y.size(); ++i) sum -= column_[i][k] * y[i];
      y[k] = column_[k][k] != 0.0 ? sum / column_[k][k] : 0.0;
    }
    return y;
  }

 private:
  std::vector<std::vector<double>> column_;  ///< columns of R
  std::vector<double> cosine_, sine_, rhs_;
};

/// Vectors of gmres() on the host, with the inner product Σ weight² a b.
struct HostVectors {
  using Vector = std::vector<double>;
  std::vector<double> weight;  ///< empty: 1
  double dot(const Vector& a, const Vector& b) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < a.size(); ++k) {
      const double w = weight.empty() ? 1.0 : weight[k];
      sum += (w * a[k]) * (w * b[k]);
    }
    return sum;
  }
  /// Subtracts from `next` its components along an orthonormal basis, one after the other
  /// (modified Gram–Schmidt), and leaves the rest.
  /// @return the components, followed by the length of the rest
  std::vector<double> orthogonalise(const std::vector<Vector>& basis, Vector* next) const {
    std::vector<double> h;
    for (const Vector& direction : basis) {
      h.push_back(dot(direction, *next));
      add(-h.back(), direction, next);
    }
    h.push_back(std::sqrt(dot(*next, *next)));
    return h;
  }
  /// Adds `factor` times `from` to `to`.
  void add(double factor, const Vector& from, Vector* to) const {
    for (std::size_t k = 0; k < to->size(); ++k) (*to)[k] += factor * from[k];
  }
  void scale(double factor, Vector* v) const {
    for (double& value : *v) value *= factor;
  }
};

/// Solves A x = b by GMRES with restarts and Givens rotations [saad1986].
///
/// The recurrence of a cycle can fall while b − A x does not, since A x is rounded. If the
/// recurrence falls to a tenth, or to the tolerance, and b − A x is not halved, rounding ends the
/// iteration. The solution then counts as converged if b − A x is below 100 tolerances. The
/// recurrence of an iteration that is merely slow does not fall so far.
/// @param vectors  dot, orthogonalise, add and scale of the type of `b`, as HostVectors has them
/// @param apply  returns A x for a vector x
/// @param x  in: start, out: solution
/// @tparam kRestart  number of directions after which the iteration starts again
template <int kRestart = kGmresRestart, typename Vectors, typename Apply>
GmresReport gmres(const Vectors& vectors, const Apply& apply, const typename Vectors::Vector& b,
                  double tolerance, int max_products, typename Vectors::Vector* x) {
  using Vector = typename Vectors::Vector;
  constexpr double kRounding = 100.0;  // of the tolerance
  GmresReport report;
  const double scale = std::sqrt(vectors.dot(b, b));
  if (!(scale > 0.0)) {
    vectors.scale(0.0, x);
    report.converged = true;
    return report;
  }
  double last = INFINITY;        // residual before the last cycle
  bool recurrence_fell = false;  // to a tenth or to the tolerance, in the last cycle
  while (report.products < max_products) {
    Vector residual = apply(*x);
    ++report.products;
    vectors.scale(-1.0, &residual);
    vectors.add(1.0, b, &residual);
    const double length = std::sqrt(vectors.dot(residual, residual));
    report.residual = length / scale;
    const bool at_rounding = recurrence_fell && report.residual > 0.5 * last;
    last = report.residual;
    report.converged =
        report.residual <= tolerance || (at_rounding && report.residual <= kRounding * tolerance);
    if (report.converged || at_rounding || !(length > 0.0)) return report;
    vectors.scale(1.0 / length, &residual);
    std::vector<Vector> basis;
    basis.push_back(std::move(residual));
    GmresCycle cycle(length);
    recurrence_fell = false;
    for (int k = 0; k < kRestart && report.products < max_products; ++k) {
      Vector next = apply(basis.back());
      ++report.products;
      std::vector<double> h = vectors.orthogonalise(basis, &next);
      const double norm = h.back();
      const double left = cycle.add_column(std::move(h));
      const bool is_reached = left <= tolerance * scale;
      recurrence_fell = is_reached || left <= 0.1 * length;
      if (is_reached || !(norm > 0.0)) break;
      vectors.scale(1.0 / norm, &next);
      basis.push_back(std::move(next));
    }
    const std::vector<double> y = cycle.solve();
    for (std::size_t k = 0; k < y.size(); ++k) vectors.add(y[k], basis[k], x);
  }
  return report;
}

}  // namespace quasi::mosfet
