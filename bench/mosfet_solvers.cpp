// The linear solvers that a chord iteration may use, on the real Newton matrix of the standard
// device (65 × 65, V_GS = 0.6 V): renewal, one solve, and how exact it is. One JSON line a solver;
// one thread.
//
//   mosfet_solvers [REPEATS]

#include <cblas.h>
#include <lapacke.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/mosfet_newton_system.hpp"
#include "workers/backend/stopwatch.hpp"

namespace quasi::mosfet {
namespace {

using Vector = std::vector<double>;

double ms(const std::function<void()>& work, int repeats) {
  std::vector<double> each;
  for (int k = 0; k < repeats; ++k) {
    const Stopwatch clock;
    work();
    each.push_back(1e3 * clock.seconds());
  }
  std::nth_element(each.begin(), each.begin() + repeats / 2, each.end());
  return each[static_cast<std::size_t>(repeats) / 2];
}

/// Dense inverse of a matrix given by its columns.
Vector invert(Vector m, int n) {
  std::vector<lapack_int> pivots(static_cast<std::size_t>(n));
  LAPACKE_dgetrf(LAPACK_ROW_MAJOR, n, n, m.data(), n, pivots.data());
  LAPACKE_dgetri(LAPACK_ROW_MAJOR, n, m.data(), n, pivots.data());
  return m;
}

/// Odd-even reduction of a block-tridiagonal system: at every level the odd columns are eliminated.
class CyclicReduction {
 public:
  explicit CyclicReduction(const ColumnMatrix& m) : nz_(m.nz()) {
    Level level;
    for (int i = 0; i < m.nx(); ++i) {
      const auto from = m.blocks().begin() + static_cast<std::ptrdiff_t>(i) * nz_ * nz_;
      level.diagonal.emplace_back(from, from + static_cast<std::ptrdiff_t>(nz_) * nz_);
      if (i + 1 == m.nx()) break;
      Vector coupling(static_cast<std::size_t>(nz_) * nz_, 0.0);
      for (int j = 0; j < nz_; ++j)
        coupling[static_cast<std::size_t>(j) * nz_ + j] =
            m.couplings()[static_cast<std::size_t>(i) * nz_ + j];
      level.coupling.push_back(coupling);
    }
    while (true) {
      for (std::size_t i = 0; i < level.diagonal.size(); ++i)
        level.inverse.push_back(
            i % 2 == 1 || level.diagonal.size() == 1 ? invert(level.diagonal[i], nz_) : Vector{});
      levels_.push_back(level);
      if (level.diagonal.size() == 1) return;
      level = reduced(levels_.back());
    }
  }
  int levels() const { return static_cast<int>(levels_.size()); }
  void solve(Vector* x) const { solve_level(0, x); }

 private:
  struct Level {
    std::vector<Vector> diagonal, coupling, inverse;  ///< C_i couples i and i+1: row i, column i+1
  };

  /// A matrix or its transpose.
  struct Factor {
    const Vector& matrix;
    bool transposed = false;
    CBLAS_TRANSPOSE op() const { return transposed ? CblasTrans : CblasNoTrans; }
  };

  // C ← keep C + factor A B
  void product(double factor, Factor a, Factor b, double keep, Vector* c) const {
    cblas_dgemm(CblasRowMajor, a.op(), b.op(), nz_, nz_, nz_, factor, a.matrix.data(), nz_,
                b.matrix.data(), nz_, keep, c->data(), nz_);
  }
  Level reduced(const Level& l) const {
    Level next;
    const std::size_t n = l.diagonal.size();
    Vector scratch(static_cast<std::size_t>(nz_) * nz_);
    for (std::size_t i = 0; i < n; i += 2) {
      Vector d = l.diagonal[i];
      if (i > 0) {  // C_{i−1}ᵀ D_{i−1}⁻¹ C_{i−1}
        product(1.0, {l.inverse[i - 1]}, {l.coupling[i - 1]}, 0.0, &scratch);
        product(-1.0, {l.coupling[i - 1], true}, {scratch}, 1.0, &d);
      }
      if (i + 1 < n) {
        product(1.0, {l.coupling[i]}, {l.inverse[i + 1]}, 0.0, &scratch);
        product(-1.0, {scratch}, {l.coupling[i], true}, 1.0, &d);
        if (i + 2 < n) {
          Vector c(scratch.size());
          product(-1.0, {scratch}, {l.coupling[i + 1]}, 0.0, &c);
          next.coupling.push_back(c);
        }
      }
      next.diagonal.push_back(d);
    }
    return next;
  }
  void apply(double factor, const Vector& a, bool transposed, const double* x, double* y) const {
    cblas_dgemv(CblasRowMajor, transposed ? CblasTrans : CblasNoTrans, nz_, nz_, factor, a.data(),
                nz_, x, 1, 1.0, y, 1);
  }
  void solve_level(std::size_t at, Vector* x) const {
    const Level& l = levels_[at];
    const std::size_t n = l.diagonal.size();
    const auto column = [&](Vector& v, std::size_t i) {
      return v.data() + i * static_cast<std::size_t>(nz_);
    };
    Vector solved(x->size(), 0.0);
    for (std::size_t i = 0; i < n; ++i)
      if (!l.inverse[i].empty()) apply(1.0, l.inverse[i], false, column(*x, i), column(solved, i));
    if (n == 1) {
      *x = solved;
      return;
    }
    Vector even;
    for (std::size_t i = 0; i < n; i += 2) {
      Vector r(column(*x, i), column(*x, i) + nz_);
      if (i > 0) apply(-1.0, l.coupling[i - 1], true, column(solved, i - 1), r.data());
      if (i + 1 < n) apply(-1.0, l.coupling[i], false, column(solved, i + 1), r.data());
      even.insert(even.end(), r.begin(), r.end());
    }
    solve_level(at + 1, &even);
    for (std::size_t i = 0; i < n; i += 2) std::copy_n(column(even, i / 2), nz_, column(*x, i));
    for (std::size_t i = 1; i < n; i += 2) {
      Vector r(column(*x, i), column(*x, i) + nz_);
      apply(-1.0, l.coupling[i - 1], true, column(*x, i - 1), r.data());
      if (i + 1 < n) apply(-1.0, l.coupling[i], false, column(*x, i + 1), r.data());
      std::fill_n(column(*x, i), nz_, 0.0);
      apply(1.0, l.inverse[i], false, r.data(), column(*x, i));
    }
  }

  int nz_;
  std::vector<Level> levels_;
};

int conjugate_gradients(const ColumnMatrix& m, const ColumnMatrix& laplace, const Vector& b,
                        double tolerance, Vector* x) {
  const auto n = static_cast<int>(b.size());
  Vector r(b), z(b), p;
  x->assign(b.size(), 0.0);
  laplace.solve(z.data());
  p = z;
  double rz = cblas_ddot(n, r.data(), 1, z.data(), 1);
  const double norm = cblas_dnrm2(n, b.data(), 1);
  for (int iteration = 1;; ++iteration) {
    const Vector q = m.multiply(p);
    const double a = rz / cblas_ddot(n, p.data(), 1, q.data(), 1);
    cblas_daxpy(n, a, p.data(), 1, x->data(), 1);
    cblas_daxpy(n, -a, q.data(), 1, r.data(), 1);
    if (cblas_dnrm2(n, r.data(), 1) <= tolerance * norm || iteration >= 500) return iteration;
    z = r;
    laplace.solve(z.data());
    const double next = cblas_ddot(n, r.data(), 1, z.data(), 1);
    for (int k = 0; k < n; ++k) p[k] = z[k] + next / rz * p[k];
    rz = next;
  }
}

void run(int repeats) {
  NewtonSystem system = standard_newton_system();
  ColumnMatrix &matrix = system.matrix, &laplace = system.laplace;
  const Vector& b = system.right_side;
  const int nx = matrix.nx(), nz = matrix.nz(), order = nx * nz;
  Vector x;
  const auto report = [&](const char* name, double renew, double solve, double bytes,
                          const char* chain) {
    std::cout << nlohmann::json{{"solver", name},         {"renew_ms", renew},
                                {"solve_ms", solve},      {"residual", system.residual(x)},
                                {"bytes_a_solve", bytes}, {"chain", chain}}
                     .dump()
              << std::endl;
  };
  const double blocks = 8.0 * nx * nz * nz;
  double renew = ms([&] { matrix.factorise(); }, 3);
  report("block Thomas", renew,
         ms(
             [&] {
               x = b;
               matrix.solve(x.data());
             },
             repeats),
         2.0 * blocks, "129 products of 65 x 65, one after another");
  std::unique_ptr<CyclicReduction> cyclic;
  renew = ms([&] { cyclic = std::make_unique<CyclicReduction>(matrix); }, 3);
  report("block cyclic reduction", renew,
         ms(
             [&] {
               x = b;
               cyclic->solve(&x);
             },
             repeats),
         6.0 * blocks,
         (std::to_string(4 * cyclic->levels() - 3) + " batches of products, one after another")
             .c_str());
  Vector inverse(static_cast<std::size_t>(order) * order);
  renew = ms(
      [&] {
        for (int k = 0; k < order; ++k) {
          double* row = &inverse[static_cast<std::size_t>(k) * order];
          std::fill_n(row, order, 0.0);
          row[k] = 1.0;
          matrix.solve(row);
        }
      },
      1);
  x.resize(b.size());
  report("explicit inverse, FP64", renew,
         ms(
             [&] {
               cblas_dgemv(CblasRowMajor, CblasNoTrans, order, order, 1.0, inverse.data(), order,
                           b.data(), 1, 0.0, x.data(), 1);
             },
             repeats),
         8.0 * order * order, "one product");
  for (const double tolerance : {1e-3, 1e-8}) {
    int iterations = 0;
    const double solve =
        ms([&] { iterations = conjugate_gradients(matrix, laplace, b, tolerance, &x); }, 3);
    report(tolerance > 1e-5 ? "conjugate gradients after Laplace, 1e-3"
                            : "conjugate gradients after Laplace, 1e-8",
           0.0, solve, iterations * 3.0 * blocks,
           (std::to_string(iterations) + " iterations").c_str());
  }
}

}  // namespace
}  // namespace quasi::mosfet

int main(int argc, char** argv) {
  try {
    quasi::mosfet::run(argc > 1 ? std::atoi(argv[1]) : 21);
  } catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 1;
  }
  return 0;
}
