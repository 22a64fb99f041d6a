#include "workers/thermal/solver/four_phonon/inversion_4ph.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "workers/units/constants.hpp"

namespace quasi::thermal {

namespace {

using Vector = std::vector<std::complex<double>>;

/// Squared length below which a candidate e ± Θe is not used; at least one of the two has 2.
constexpr double kShortCandidate = 0.1;

std::complex<double> inner(const Vector& a, const Vector& b) {
  std::complex<double> sum = 0.0;
  for (std::size_t x = 0; x < a.size(); ++x) sum += std::conj(a[x]) * b[x];
  return sum;
}

/// Returns Θe at a point of the mesh.
Vector reversed(const QMesh& mesh, const Inversion& inversion, std::int64_t q, const Vector& e) {
  int c[3];
  mesh.coordinates(q, c);
  Vector result(e.size());
  for (std::size_t atom = 0; atom < inversion.partner.size(); ++atom) {
    double turns = 0.0;
    for (int i = 0; i < 3; ++i)
      turns += static_cast<double>(c[i] * inversion.shift[atom][i] % mesh.n[i]) / mesh.n[i];
    const std::complex<double> phase = std::polar(1.0, -2.0 * units::kPi * turns);
    for (std::size_t x = 0; x < 3; ++x)
      result[3 * static_cast<std::size_t>(inversion.partner[atom]) + x] =
          std::conj(e[3 * atom + x]) * phase;
  }
  return result;
}

}  // namespace

double inversion_residual(const Inversion& inversion, const SparseForceConstants& fourth_order) {
  using Site = std::array<int, 13>;  // four atoms, cells of the last three from that of the first
  const auto site_of = [&](std::int64_t block, bool inverted) {
    Site site{};
    const int* atom = &fourth_order.atom[static_cast<std::size_t>(4 * block)];
    const int* cell = &fourth_order.cell[static_cast<std::size_t>(9 * block)];
    for (int leg = 0; leg < 4; ++leg) {
      site[static_cast<std::size_t>(leg)] = inverted ? inversion.partner[atom[leg]] : atom[leg];
      for (int i = 0; i < 3 && leg > 0; ++i) {
        const int x = cell[3 * (leg - 1) + i];
        site[static_cast<std::size_t>(4 + 3 * (leg - 1) + i)] =
            inverted ? inversion.shift[atom[leg]][i] - inversion.shift[atom[0]][i] - x : x;
      }
    }
    return site;
  };
  std::map<Site, std::array<double, 81>> sum;
  double largest = 0.0;
  for (std::int64_t block = 0; block < fourth_order.n_blocks(); ++block)
    for (const bool inverted : {false, true}) {
      auto& difference = sum.try_emplace(site_of(block, inverted)).first->second;
      for (std::size_t e = 0; e < 81; ++e) {
        const double value = fourth_order.tensor[static_cast<std::size_t>(81 * block) + e];
        difference[e] += inverted ? -value : value;
        largest = std::max(largest, std::fabs(value));
      }
    }
  double worst = 0.0;
  for (const auto& [site, difference] : sum)
    for (const double d : difference) worst = std::max(worst, std::fabs(d));
  return largest > 0.0 ? worst / largest : 0.0;
}

double turn_to_inversion(const QMesh& mesh, const Inversion& inversion,
                         const std::vector<std::int32_t>& subspace,
                         std::vector<std::complex<double>>& eigenvector) {
  const auto nb = 3 * inversion.partner.size();
  double worst = 0.0;
#pragma omp parallel for schedule(static) reduction(max : worst)
  for (std::int64_t q = 0; q < mesh.size(); ++q) {
    std::complex<double>* here = &eigenvector[static_cast<std::size_t>(q) * nb * nb];
    const std::int32_t* set = &subspace[static_cast<std::size_t>(q) * nb];
    for (std::size_t first = 0, end = 0; first < nb; first = end) {
      end = first + 1;
      while (end < nb && set[end] == set[first]) ++end;
      // e + Θe and i(e − Θe) are invariant under Θ. For each mode, one after another, the longer of
      // the two is taken and the others are made orthogonal to it (with real products). If a mode
      // has no vector left, the longest of all candidates is taken. Canonical eigenvectors
      // (solver/harmonic/canonical_vectors.hpp) thus keep their order for any phases.
      std::vector<Vector> candidate, taken;
      for (std::size_t s = first; s < end; ++s) {
        const Vector e(here + s * nb, here + (s + 1) * nb);
        const Vector other = reversed(mesh, inversion, q, e);
        Vector left = other;
        for (std::size_t k = first; k < end; ++k) {
          const Vector basis(here + k * nb, here + (k + 1) * nb);
          const std::complex<double> part = inner(basis, other);
          for (std::size_t x = 0; x < nb; ++x) left[x] -= part * basis[x];
        }
        worst = std::max(worst, std::sqrt(std::abs(inner(left, left))));
        Vector even(nb), odd(nb);
        for (std::size_t x = 0; x < nb; ++x) {
          even[x] = e[x] + other[x];
          odd[x] = std::complex<double>(0.0, 1.0) * (e[x] - other[x]);
        }
        candidate.push_back(std::move(even));
        candidate.push_back(std::move(odd));
      }
      while (taken.size() < end - first) {
        const auto length = [](const Vector& v) { return inner(v, v).real(); };
        const auto shorter = [&](const Vector& a, const Vector& b) {
          return length(a) < length(b);
        };
        const auto own = candidate.begin() + static_cast<std::ptrdiff_t>(2 * taken.size());
        auto longest = std::max_element(own, own + 2, shorter);
        if (length(*longest) < kShortCandidate)
          longest = std::max_element(candidate.begin(), candidate.end(), shorter);
        Vector next = *longest;
        const double norm = std::sqrt(length(next));
        for (auto& x : next) x /= norm;
        for (Vector& v : candidate) {
          const double part = inner(next, v).real();
          for (std::size_t x = 0; x < nb; ++x) v[x] -= part * next[x];
        }
        taken.push_back(std::move(next));
      }
      for (std::size_t k = 0; k < taken.size(); ++k)
        std::copy(taken[k].begin(), taken[k].end(), here + (first + k) * nb);
    }
  }
  return worst;
}

}  // namespace quasi::thermal
