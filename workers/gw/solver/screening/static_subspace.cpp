#include "workers/gw/solver/screening/static_subspace.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/backend/team/blas_threads.hpp"

namespace quasi::gw {

std::vector<Cplx> subspace_of(const DielectricMatrix& m, const std::vector<Cplx>& chi,
                              const SubspaceOptions& options, std::size_t n_heads,
                              GwKernels& kernels) {
  const std::size_t n = m.coulomb.size();
  std::vector<Cplx> symmetric(n * n);
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t h = 0; h < n; ++h)
      symmetric[g * n + h] = std::sqrt(m.coulomb[g] * m.coulomb[h]) * 0.5 *
                             (chi[g * n + h] + std::conj(chi[h * n + g]));
  std::vector<double> values(n);
  std::vector<Cplx> vectors(n * n);
  kernels.dense().eigen_hermitian(view<const Cplx>(symmetric, n, n), view<double>(values, n),
                                  view<Cplx>(vectors, n, n));
  std::size_t kept = 0;  // eigenvalues ascend from the most negative
  while (kept < n &&
         (options.vectors > 0 ? kept < static_cast<std::size_t>(options.vectors)
                              : -values[kept] / (1.0 - values[kept]) > options.tolerance))
    ++kept;
  kept = std::max<std::size_t>(kept, 1);
  std::vector<std::vector<Cplx>> columns;
  for (std::size_t i = 0; i < kept; ++i)
    columns.emplace_back(vectors.begin() + static_cast<std::ptrdiff_t>(i * n),
                         vectors.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
  for (std::size_t i = 0; i < n_heads && m.at_gamma && columns.size() < n; ++i) {
    std::vector<Cplx> head(n);
    head[i] = 1.0;
    for (int pass = 0; pass < 2; ++pass)  // twice: Gram–Schmidt loses digits once
      for (const auto& c : columns) {
        Cplx overlap;
        for (std::size_t g = 0; g < n; ++g) overlap += std::conj(c[g]) * head[g];
        for (std::size_t g = 0; g < n; ++g) head[g] -= overlap * c[g];
      }
    double norm = 0.0;
    for (const Cplx& value : head) norm += std::norm(value);
    if (norm > 1e-16) {
      for (Cplx& value : head) value /= std::sqrt(norm);
      columns.push_back(std::move(head));
    }
  }
  std::vector<Cplx> basis(n * columns.size());
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t b = 0; b < columns.size(); ++b) basis[g * columns.size() + b] = columns[b][g];
  return basis;
}

namespace {

using Matrix = View<const Cplx, 2>;

/// a · op(b), row-major: op is the identity or the adjoint.
std::vector<Cplx> product(const Matrix& a, CBLAS_TRANSPOSE operation, const Matrix& b) {
  const std::int64_t rows = a.extent[0], inner = a.extent[1],
                     columns = b.extent[operation == CblasNoTrans ? 1 : 0];
  std::vector<Cplx> c(static_cast<std::size_t>(rows * columns));
  const Cplx one{1.0, 0.0}, zero{};
  const ThreadedBlas threads(8.0 * static_cast<double>(rows * columns) *
                             static_cast<double>(inner));
  cblas_zgemm(CblasRowMajor, CblasNoTrans, operation, static_cast<int>(rows),
              static_cast<int>(columns), static_cast<int>(inner), &one, a.data,
              static_cast<int>(inner), b.data, static_cast<int>(b.extent[1]), &zero, c.data(),
              static_cast<int>(columns));
  return c;
}

/// C (…) C^H, [n][n], for C [n][n_b].
std::vector<Cplx> expanded(const std::vector<Cplx>& basis, const std::vector<Cplx>& inner,
                           std::size_t n, std::size_t n_b) {
  const Matrix c = view<const Cplx>(basis, n, n_b);
  const std::vector<Cplx> left = product(c, CblasNoTrans, view<const Cplx>(inner, n_b, n_b));
  return product(view<const Cplx>(left, n, n_b), CblasConjTrans, c);
}

/// ε̃⁻¹ − 1 within the subspace, (1 − χ̃_BB)⁻¹ − 1.
std::vector<Cplx> inner_inverse(std::vector<Cplx> chi, std::size_t n_b, GwKernels& kernels) {
  for (std::size_t a = 0; a < n_b; ++a)
    for (std::size_t b = 0; b < n_b; ++b)
      chi[a * n_b + b] = (a == b ? 1.0 : 0.0) - chi[a * n_b + b];
  kernels.dense().invert_general(view<Cplx>(chi, n_b, n_b));
  for (std::size_t b = 0; b < n_b; ++b) chi[b * n_b + b] -= 1.0;
  return chi;
}

}  // namespace

void add_subspace_frequencies(DielectricMatrix& m, const std::vector<Cplx>& chi_static,
                              const std::vector<Cplx>& basis, const std::vector<Cplx>& projected,
                              const EpsilonOptions& options, GwKernels& kernels) {
  const auto& v = m.coulomb;
  const std::size_t n = v.size(), n_b = basis.size() / n;
  // C^H χ̃(0) C
  std::vector<Cplx> adjoint(n_b * n), symmetric(n * n);
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t h = 0; h < n; ++h)
      symmetric[g * n + h] = std::sqrt(v[g] * v[h]) * chi_static[g * n + h];
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t b = 0; b < n_b; ++b) adjoint[b * n + g] = std::conj(basis[g * n_b + b]);
  const Matrix rows = view<const Cplx>(adjoint, n_b, n);
  const std::vector<Cplx> right = product(rows, CblasNoTrans, view<const Cplx>(symmetric, n, n));
  const std::vector<Cplx> static_inner =
      product(view<const Cplx>(right, n_b, n), CblasConjTrans, rows);
  ReducedFrequencies& reduced = m.reduced;
  reduced.n = static_cast<std::int64_t>(n);
  reduced.n_b = static_cast<std::int64_t>(n_b);
  reduced.basis = basis;
  reduced.inner.push_back(inner_inverse(static_inner, n_b, kernels));
  reduced.share.emplace_back(1.0);
  const std::vector<Cplx> static_part = expanded(basis, reduced.inner[0], n, n_b);
  std::vector<Cplx> rest(n * n);  // ε̃⁻¹(0) − 1 − its subspace part
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t h = 0; h < n; ++h)
      rest[g * n + h] = m.inverse[0][g * n + h] * std::sqrt(v[h] / v[g]) - (g == h ? 1.0 : 0.0) -
                        static_part[g * n + h];
  std::vector<double> values(n);
  std::vector<Cplx> vectors(n * n);
  kernels.dense().eigen_hermitian(view<const Cplx>(rest, n, n), view<double>(values, n),
                                  view<Cplx>(vectors, n, n));
  reduced.rest.assign(rest.begin(), rest.end());
  m.subspace_vectors = static_cast<int>(n_b);
  m.subspace_error = std::max(std::abs(values.front()), std::abs(values.back()));
  const double w2 = options.subspace.complement_ry * options.subspace.complement_ry;
  for (std::size_t f = 1; f < options.frequencies_ry.size(); ++f) {
    const auto from = projected.begin() + static_cast<std::ptrdiff_t>((f - 1) * n_b * n_b);
    reduced.inner.push_back(
        inner_inverse({from, from + static_cast<std::ptrdiff_t>(n_b * n_b)}, n_b, kernels));
    reduced.share.push_back(options.subspace.complement
                                ? w2 / (w2 - options.frequencies_ry[f] * options.frequencies_ry[f])
                                : 0.0);
  }
}

UnsetVector<Cplx> expanded_inverse(const ReducedFrequencies& reduced, std::size_t frequency,
                                   const std::vector<double>& v) {
  const auto n = static_cast<std::size_t>(reduced.n);
  const std::vector<Cplx> full =
      expanded(reduced.basis, reduced.inner[frequency], n, static_cast<std::size_t>(reduced.n_b));
  const Cplx share = reduced.share[frequency];
  UnsetVector<Cplx> inverse(n * n);
#pragma omp parallel for schedule(static)
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t h = 0; h < n; ++h)
      inverse[g * n + h] =
          ((g == h ? 1.0 : 0.0) + full[g * n + h] + share * reduced.rest[g * n + h]) *
          std::sqrt(v[g] / v[h]);
  return inverse;
}

std::vector<double> widened_coulomb(std::vector<double> coulomb, std::int64_t n_heads) {
  coulomb.insert(coulomb.begin(), static_cast<std::size_t>(n_heads - 1), coulomb[0]);
  return coulomb;
}

const UnsetVector<Cplx>& inverse_of(const DielectricMatrix& m, std::size_t frequency,
                                    UnsetVector<Cplx>& room) {
  if (frequency == 0 || !m.reduced.used()) return m.inverse.at(frequency);
  if (m.reduced.n == m.size()) {
    room = expanded_inverse(m.reduced, frequency, m.coulomb);
  } else {
    const UnsetVector<Cplx> wide = expanded_inverse(
        m.reduced, frequency, widened_coulomb(m.coulomb, m.reduced.n - m.size() + 1));
    fold_directions(wide, m.coulomb, m.reduced.direction, room, nullptr);
  }
  return room;
}

namespace {

/// ε̃⁻¹_gh of the subspace.
Cplx element(const ReducedFrequencies& r, std::size_t frequency, std::size_t g, std::size_t h) {
  const auto n = static_cast<std::size_t>(r.n), n_b = static_cast<std::size_t>(r.n_b);
  Cplx sum = (g == h ? 1.0 : 0.0) + r.share[frequency] * r.rest[g * n + h];
  for (std::size_t a = 0; a < n_b; ++a)
    for (std::size_t b = 0; b < n_b; ++b)
      sum +=
          r.basis[g * n_b + a] * r.inner[frequency][a * n_b + b] * std::conj(r.basis[h * n_b + b]);
  return sum;
}

}  // namespace

CMat3 corner_of(const ReducedFrequencies& reduced, std::size_t frequency) {
  CMat3 corner{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) corner[i][j] = element(reduced, frequency, i, j);
  return corner;
}

Cplx head_of(const DielectricMatrix& m, std::size_t frequency) {
  if (frequency == 0 || !m.reduced.used()) return m.inverse.at(frequency)[0];
  if (m.reduced.n == m.size()) return element(m.reduced, frequency, 0, 0);
  const CMat3 directions = along(inverse(corner_of(m.reduced, frequency)), m.reduced.direction);
  return directions[0][0] + directions[1][1] + directions[2][2];  // q̂ is a unit vector
}

}  // namespace quasi::gw
