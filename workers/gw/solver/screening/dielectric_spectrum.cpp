#include "workers/gw/solver/screening/dielectric_spectrum.hpp"

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

/// Rows and columns visited at a time, so that both triangles stay in cache.
constexpr std::size_t kTile = 64;

/// A vector of complex numbers in planes.
struct Planes {
  std::vector<double> re, im;
  explicit Planes(std::size_t n) : re(n), im(n) {}
};

/// The lower triangle of a Hermitian matrix, row by row; T is double or Cplx.
template <typename T>
class Triangle {
 public:
  explicit Triangle(std::size_t n) : n_(n), values_(n * (n + 1) / 2) {}
  T* row(std::size_t g) { return values_.data() + g * (g + 1) / 2; }

  /// Returns the product with a vector. Sums of a fixed number of parts are added in order, so that
  /// bits do not depend on the number of threads.
  std::vector<Cplx> times(const std::vector<Cplx>& v) const {
    constexpr std::size_t kParts = 64;
    Planes from(n_);
    for (std::size_t g = 0; g < n_; ++g) {
      from.re[g] = v[g].real();
      from.im[g] = v[g].imag();
    }
    std::vector<Planes> parts(kParts, Planes(0));
#pragma omp parallel for schedule(dynamic)
    for (std::size_t part = 0; part < kParts; ++part) {
      Planes sum(n_);
      for (std::size_t g = part; g < n_; g += kParts) add_row(g, from, sum);
      parts[part] = std::move(sum);
    }
    std::vector<Cplx> to(n_);
#pragma omp parallel for schedule(static)
    for (std::size_t g = 0; g < n_; ++g)
      for (const Planes& part : parts) to[g] += Cplx{part.re[g], part.im[g]};
    return to;
  }

 private:
  static double re(double value) { return value; }
  static double re(const Cplx& value) { return value.real(); }
  static double im(double) { return 0.0; }
  static double im(const Cplx& value) { return value.imag(); }

  /// Adds row g and, for the other triangle, its adjoint column.
  void add_row(std::size_t g, const Planes& from, Planes& to) const {
    const T* const row = values_.data() + g * (g + 1) / 2;
    const double *const v_re = from.re.data(), *const v_im = from.im.data();
    double *const to_re = to.re.data(), *const to_im = to.im.data();
    const double own_re = v_re[g], own_im = v_im[g];
    double sum_re = 0.0, sum_im = 0.0;
#pragma omp simd reduction(+ : sum_re, sum_im)
    for (std::size_t h = 0; h < g; ++h) {
      const double a = re(row[h]), b = im(row[h]);
      sum_re += a * v_re[h] - b * v_im[h];
      sum_im += a * v_im[h] + b * v_re[h];
      to_re[h] += a * own_re + b * own_im;
      to_im[h] += a * own_im - b * own_re;
    }
    to.re[g] += sum_re + re(row[g]) * own_re;
    to.im[g] += sum_im + re(row[g]) * own_im;
  }

  std::size_t n_;
  UnsetVector<T> values_;
};

/// Calls visit(g, h) for the lower triangle, tile by tile. Threads share the rows of tiles.
template <typename Visit>
void for_each_below(std::size_t n, const Visit& visit) {
  const std::size_t tiles = (n + kTile - 1) / kTile;
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < tiles; ++i) {
    const std::size_t tile = (tiles - 1 - i) * kTile;  // the longest go first
    for (std::size_t first = 0; first <= tile; first += kTile)
      for (std::size_t g = tile; g < std::min(n, tile + kTile); ++g)
        for (std::size_t h = first; h < std::min(g + 1, first + kTile); ++h) visit(g, h);
  }
}

/// Calculates the smallest and largest eigenvalue (DielectricSpectrum).
template <typename T>
std::pair<double, double> extreme_eigenvalues(const Triangle<T>& matrix, std::size_t n) {
  constexpr std::size_t kSteps = 48;
  std::vector<std::vector<Cplx>> basis;
  std::vector<double> alpha, beta;
  std::vector<Cplx> next(n);
  for (std::size_t i = 0; i < n; ++i)
    next[i] = std::polar(1.0, 0.7 * static_cast<double>(i * i % 1009));
  double norm = std::sqrt(static_cast<double>(n));
  while (basis.size() < std::min(kSteps, n) && norm > 1e-10) {
    if (!basis.empty()) beta.push_back(norm);
    for (Cplx& x : next) x /= norm;
    basis.push_back(next);
    const std::vector<Cplx>& v = basis.back();
    next = matrix.times(v);
    Cplx diagonal;
    for (std::size_t g = 0; g < n; ++g) diagonal += std::conj(v[g]) * next[g];
    alpha.push_back(diagonal.real());
    for (int turn = 0; turn < 2; ++turn)
      for (const auto& b : basis) {
        Cplx overlap;
        for (std::size_t g = 0; g < n; ++g) overlap += std::conj(b[g]) * next[g];
        for (std::size_t g = 0; g < n; ++g) next[g] -= overlap * b[g];
      }
    norm = 0.0;
    for (const Cplx& x : next) norm += std::norm(x);
    norm = std::sqrt(norm);
  }
  beta.resize(alpha.size());
  if (LAPACKE_dstev(LAPACK_COL_MAJOR, 'N', static_cast<lapack_int>(alpha.size()), alpha.data(),
                    beta.data(), nullptr, 1) != 0)
    throw NotConverged("the eigenvalues of ε⁻¹ for the self-test were not found");
  return {alpha.front(), alpha.back()};
}

/// Makes the triangle and finds the spectrum, in numbers of one kind.
template <typename T>
DielectricSpectrum spectrum_of(const DielectricMatrix& m) {
  const auto n = static_cast<std::size_t>(m.size());
  const Cplx* const inverse = m.inverse[0].data();
  std::vector<double> root(n), departure(n);
  for (std::size_t g = 0; g < n; ++g) root[g] = std::sqrt(m.coulomb[g]);
  Triangle<T> triangle(n);
  for_each_below(n, [&](std::size_t g, std::size_t h) {
    const Cplx below = inverse[g * n + h] * (root[h] / root[g]),
               above = inverse[h * n + g] * (root[g] / root[h]);
    departure[g] = std::max(departure[g], std::norm(below - std::conj(above)));
    const Cplx mean = 0.5 * (below + std::conj(above));
    if constexpr (std::is_same_v<T, double>)
      triangle.row(g)[h] = mean.real();
    else
      triangle.row(g)[h] = mean;
  });
  DielectricSpectrum found;
  found.asymmetry = std::sqrt(*std::max_element(departure.begin(), departure.end()));
  std::tie(found.lowest, found.highest) = extreme_eigenvalues(triangle, n);
  return found;
}

}  // namespace

DielectricSpectrum dielectric_spectrum(const DielectricMatrix& m) {
  bool real = true;
  const UnsetVector<Cplx>& inverse = m.inverse[0];
#pragma omp parallel for schedule(static) reduction(&& : real)
  for (std::size_t i = 0; i < inverse.size(); ++i) real = real && inverse[i].imag() == 0.0;
  return real ? spectrum_of<double>(m) : spectrum_of<Cplx>(m);
}

}  // namespace quasi::gw
