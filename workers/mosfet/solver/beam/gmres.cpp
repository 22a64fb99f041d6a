#include "workers/mosfet/solver/beam/gmres.hpp"

#include <cmath>

namespace quasi::mosfet {
namespace {

constexpr int kRestart = 30;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

void add(double factor, const std::vector<double>& from, std::vector<double>* to) {
  for (std::size_t k = 0; k < to->size(); ++k) (*to)[k] += factor * from[k];
}

/// Least-squares problem of one cycle, kept triangular by Givens rotations.
struct Hessenberg {
  std::vector<std::vector<double>> column;  ///< columns of R
  std::vector<double> cosine, sine, rhs;

  /// Adds a column [k+2] and returns the residual.
  double add_column(std::vector<double> h) {
    const std::size_t k = column.size();
    for (std::size_t i = 0; i < k; ++i) {
      const double upper = cosine[i] * h[i] + sine[i] * h[i + 1];
      h[i + 1] = -sine[i] * h[i] + cosine[i] * h[i + 1];
      h[i] = upper;
    }
    const double length = std::hypot(h[k], h[k + 1]);
    cosine.push_back(length > 0.0 ? h[k] / length : 1.0);
    sine.push_back(length > 0.0 ? h[k + 1] / length : 0.0);
    h[k] = length;
    rhs.push_back(-sine[k] * rhs[k]);
    rhs[k] *= cosine[k];
    h.resize(k + 1);
    column.push_back(std::move(h));
    return std::fabs(rhs.back());
  }

  std::vector<double> solve() const {
    std::vector<double> y(column.size());
    for (std::size_t k = y.size(); k-- > 0;) {
      double sum = rhs[k];
      for (std::size_t i = k + 1; i < y.size(); ++i) sum -= column[i][k] * y[i];
      y[k] = column[k][k] != 0.0 ? sum / column[k][k] : 0.0;
    }
    return y;
  }
};

}  // namespace

GmresReport gmres(const std::function<std::vector<double>(const std::vector<double>&)>& apply,
                  const std::vector<double>& b, double tolerance, int max_products,
                  std::vector<double>* x) {
  GmresReport report;
  const double scale = std::sqrt(dot(b, b));
  if (!(scale > 0.0)) {
    x->assign(b.size(), 0.0);
    report.converged = true;
    return report;
  }
  while (report.products < max_products) {
    std::vector<double> residual = apply(*x);
    ++report.products;
    for (std::size_t k = 0; k < b.size(); ++k) residual[k] = b[k] - residual[k];
    const double length = std::sqrt(dot(residual, residual));
    report.residual = length / scale;
    report.converged = report.residual <= tolerance;
    if (report.converged || !(length > 0.0)) return report;
    for (double& value : residual) value /= length;
    std::vector<std::vector<double>> basis{std::move(residual)};
    Hessenberg cycle;
    cycle.rhs.push_back(length);
    for (int k = 0; k < kRestart && report.products < max_products; ++k) {
      std::vector<double> next = apply(basis.back());
      ++report.products;
      std::vector<double> h;
      for (const std::vector<double>& direction : basis) {
        h.push_back(dot(direction, next));
        add(-h.back(), direction, &next);
      }
      h.push_back(std::sqrt(dot(next, next)));
      const double norm = h.back();
      const double left = cycle.add_column(std::move(h));
      if (left <= tolerance * scale || !(norm > 0.0)) break;
      for (double& value : next) value /= norm;
      basis.push_back(std::move(next));
    }
    const std::vector<double> y = cycle.solve();
    for (std::size_t k = 0; k < y.size(); ++k) add(y[k], basis[k], x);
  }
  return report;
}

}  // namespace quasi::mosfet
