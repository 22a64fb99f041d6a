#include "tests/thermal/support/eigenvector_choice.hpp"

#include <cmath>
#include <complex>
#include <random>

#include "workers/thermal/solver/harmonic/canonical_vectors.hpp"

namespace quasi::thermal::test {

namespace {

using Complex64 = std::complex<double>;

/// Random orthonormal columns: normal numbers, orthogonalised one after the other.
std::vector<std::vector<Complex64>> random_unitary(std::size_t n, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<std::vector<Complex64>> rows(n, std::vector<Complex64>(n));
  for (std::size_t a = 0; a < n; ++a) {
    for (Complex64& x : rows[a]) x = {normal(random), normal(random)};
    for (int repeat = 0; repeat < 2; ++repeat)
      for (std::size_t b = 0; b < a; ++b) {
        Complex64 part = 0.0;
        for (std::size_t i = 0; i < n; ++i) part += std::conj(rows[b][i]) * rows[a][i];
        for (std::size_t i = 0; i < n; ++i) rows[a][i] -= part * rows[b][i];
      }
    double square = 0.0;
    for (const Complex64& x : rows[a]) square += std::norm(x);
    for (Complex64& x : rows[a]) x /= std::sqrt(square);
  }
  return rows;
}

void copy_conjugates(const QMesh& mesh, std::int64_t q, Modes& modes) {
  const std::int64_t minus = mesh.minus(q);
  if (minus == q) return;
  const auto size = static_cast<std::int64_t>(modes.n_branches) * modes.n_branches;
  for (std::int64_t e = 0; e < size; ++e)
    modes.eigenvector[minus * size + e] = std::conj(modes.eigenvector[q * size + e]);
}

}  // namespace

void rotate_degenerate_sets(const Deck& deck, std::uint64_t seed, Modes& modes) {
  std::mt19937_64 random(seed);
  const auto nb = static_cast<std::size_t>(modes.n_branches);
  for (std::int64_t q = 0; q < modes.n_q; ++q) {
    if (deck.symmetry.mesh.minus(q) < q) continue;
    Complex64* vectors = &modes.eigenvector[static_cast<std::size_t>(q) * nb * nb];
    const std::int32_t* set = &modes.subspace[static_cast<std::size_t>(q) * nb];
    for (std::size_t first = 0, end = 0; first < nb; first = end) {
      for (end = first + 1; end < nb && set[end] == set[first];) ++end;
      const auto unitary = random_unitary(end - first, random);
      const std::vector<Complex64> old(vectors + first * nb, vectors + end * nb);
      for (std::size_t a = 0; a < unitary.size(); ++a)
        for (std::size_t x = 0; x < nb; ++x) {
          Complex64 sum = 0.0;
          for (std::size_t b = 0; b < unitary.size(); ++b) sum += unitary[a][b] * old[b * nb + x];
          vectors[(first + a) * nb + x] = sum;
        }
    }
    copy_conjugates(deck.symmetry.mesh, q, modes);
  }
}

void make_canonical(const Deck& deck, Modes& modes) {
  const QMesh& mesh = deck.symmetry.mesh;
  const DynamicalMatrixBuilder builder(deck.crystal, deck.second_order,
                                       deck.control.harmonic_options());
  const CanonicalVectors canonical(deck.crystal, deck.control.symmetry_tolerance);
  const std::int64_t nb = modes.n_branches;
  for (std::int64_t q = 0; q < modes.n_q; ++q) {
    if (mesh.minus(q) < q) continue;
    int c[3];
    mesh.coordinates(q, c);
    Vec3 fractional{};
    for (int i = 0; i < 3; ++i) fractional[i] = static_cast<double>(c[i]) / mesh.n[i];
    canonical.choose(fractional, builder.at(fractional, true).gradient, &modes.subspace[q * nb],
                     &modes.eigenvector[q * nb * nb]);
    copy_conjugates(mesh, q, modes);
  }
}

}  // namespace quasi::thermal::test
