// Tests GMRES: small systems, a product that is rounded, and an iteration that is merely slow.

#include "workers/mosfet/kernels/beam/gmres.hpp"

#include <gtest/gtest.h>

#include <random>

namespace quasi::mosfet::test {
namespace {

using Vector = std::vector<double>;

/// A nonsymmetric matrix [n, n] near the unit matrix, whose products may be rounded.
class Matrix {
 public:
  explicit Matrix(std::size_t n, bool is_rounded)
      : n_(n), is_rounded_(is_rounded), entries_(n * n) {
    std::mt19937 random(11);
    std::uniform_real_distribution<double> part(-0.5, 0.5);
    for (std::size_t i = 0; i < n * n; ++i)
      entries_[i] =
          part(random) / std::sqrt(static_cast<double>(n)) + (i % (n + 1) == 0 ? 1.0 : 0.0);
  }
  Vector operator()(const Vector& x) const {
    Vector out(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) out[i] += entries_[i * n_ + j] * x[j];
      if (is_rounded_) out[i] = static_cast<float>(out[i]);
    }
    return out;
  }

 private:
  std::size_t n_;
  bool is_rounded_;
  Vector entries_;
};

double difference(const Vector& a, const Vector& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

Vector ramp(std::size_t n) {
  Vector x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = 1.0 + static_cast<double>(i);
  return x;
}

// The residual of the report is that of the solution.
TEST(Gmres, SolvesASystemToItsTolerance) {
  const Matrix matrix(60, false);
  const Vector exact = ramp(60), b = matrix(exact);
  Vector x(60);
  const GmresReport report = gmres(HostVectors{}, matrix, b, 1e-12, 400, &x);
  EXPECT_TRUE(report.converged);
  EXPECT_LE(report.residual, 1e-12);
  const double length = difference(b, Vector(60));
  EXPECT_NEAR(report.residual, difference(matrix(x), b) / length, 1e-15);
  EXPECT_LT(difference(x, exact), 1e-10 * difference(exact, Vector(60)));
}

// Products with 24 bits keep b − A x near 3e-8 of b, ten times the tolerance.
TEST(Gmres, AResidualAtRoundingIsConverged) {
  const Matrix matrix(60, true);
  const Vector b = Matrix(60, false)(ramp(60));
  Vector x(60);
  const GmresReport report = gmres(HostVectors{}, matrix, b, 3e-9, 2000, &x);
  EXPECT_TRUE(report.converged);
  EXPECT_GT(report.residual, 3e-9);
  EXPECT_LE(report.residual, 3e-7);
  EXPECT_LT(report.products, 200);
}

// Rounding at more than 100 tolerances is an error of the caller. It ends the iteration, since
// further products would not help.
TEST(Gmres, AToleranceFarBelowRoundingIsNotReached) {
  const Matrix matrix(60, true);
  const Vector b = Matrix(60, false)(ramp(60));
  Vector x(60);
  const GmresReport report = gmres(HostVectors{}, matrix, b, 1e-11, 2000, &x);
  EXPECT_FALSE(report.converged);
  EXPECT_LT(report.residual, 1e-6);
  EXPECT_LT(report.products, 400);
}

// A cyclic shift of 100 entries leaves the residual as it is for all 40 products of a cycle. A
// start whose residual is 50 tolerances must not count as converged.
TEST(Gmres, ASlowIterationIsNotAtRounding) {
  const auto shift = [](const Vector& x) {
    Vector out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) out[(i + 1) % x.size()] = x[i];
    return out;
  };
  const Vector exact = ramp(100), b = shift(exact);
  Vector x = exact;
  x[0] += 50.0 * 1e-8 * difference(b, Vector(100));
  const GmresReport report = gmres(HostVectors{}, shift, b, 1e-8, 400, &x);
  EXPECT_FALSE(report.converged);
  EXPECT_NEAR(report.residual, 50e-8, 1e-12);
}

}  // namespace
}  // namespace quasi::mosfet::test
