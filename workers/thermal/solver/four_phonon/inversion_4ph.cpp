#include "workers/thermal/solver/four_phonon/inversion_4ph.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <map>
#include <vector>

#include "workers/units/constants.hpp"

namespace quasi::thermal {

namespace {

using Complex = std::complex<double>;

/// Squared length below which a candidate e ± Θe is not used; at least one of the two has 2.
constexpr double kShortCandidate = 0.1;

/// Turns the degenerate sets of one point after another. It keeps its arrays from set to set,
/// because a mesh has tens of thousands of sets.
class SetTurner {
 public:
  SetTurner(const QMesh& mesh, const Inversion& inversion)
      : mesh_(mesh),
        inversion_(inversion),
        n_atoms_(inversion.partner.size()),
        nb_(3 * n_atoms_),
        phase_(n_atoms_),
        other_(nb_),
        left_(nb_),
        candidate_(2 * nb_ * nb_),
        taken_(nb_ * nb_) {}

  /// Goes to a point of the mesh.
  void go_to(std::int64_t q) {
    int c[3];
    mesh_.coordinates(q, c);
    for (std::size_t atom = 0; atom < n_atoms_; ++atom) {
      double turns = 0.0;
      for (int i = 0; i < 3; ++i)
        turns += static_cast<double>(c[i] * inversion_.shift[atom][i] % mesh_.n[i]) / mesh_.n[i];
      phase_[atom] = std::polar(1.0, -2.0 * units::kPi * turns);
    }
  }

  /// Turns a set of `size` vectors, [size][nb].
  /// @return |Θe − its part within the set|, the largest of all e
  double turn(Complex* set, std::size_t size) {
    const double worst = find_candidates(set, size);
    for (std::size_t k = 0; k < size; ++k) take(k, size);
    std::copy(taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(size * nb_), set);
    return worst;
  }

 private:
  Complex inner(const Complex* a, const Complex* b) const {
    Complex sum = 0.0;
    for (std::size_t x = 0; x < nb_; ++x) sum += std::conj(a[x]) * b[x];
    return sum;
  }
  double length(std::size_t candidate) const {
    const Complex* v = &candidate_[candidate * nb_];
    return inner(v, v).real();
  }

  /// Writes Θe to other_.
  void reverse(const Complex* e) {
    for (std::size_t atom = 0; atom < n_atoms_; ++atom)
      for (std::size_t x = 0; x < 3; ++x)
        other_[3 * static_cast<std::size_t>(inversion_.partner[atom]) + x] =
            std::conj(e[3 * atom + x]) * phase_[atom];
  }

  /// Writes e + Θe and i(e − Θe) of each vector to candidate_. Both are invariant under Θ.
  double find_candidates(const Complex* set, std::size_t size) {
    double worst = 0.0;
    for (std::size_t s = 0; s < size; ++s) {
      const Complex* e = set + s * nb_;
      reverse(e);
      left_ = other_;
      for (std::size_t k = 0; k < size; ++k) {
        const Complex* basis = set + k * nb_;
        const Complex part = inner(basis, other_.data());
        for (std::size_t x = 0; x < nb_; ++x) left_[x] -= part * basis[x];
      }
      worst = std::max(worst, std::sqrt(std::abs(inner(left_.data(), left_.data()))));
      Complex* even = &candidate_[2 * s * nb_];
      Complex* odd = even + nb_;
      for (std::size_t x = 0; x < nb_; ++x) {
        even[x] = e[x] + other_[x];
        odd[x] = Complex(0.0, 1.0) * (e[x] - other_[x]);
      }
    }
    return worst;
  }

  /// Takes the longer candidate of vector k, normalised, and makes the others orthogonal to it
  /// (with real products). If the vector has no candidate left, the longest of all is taken.
  /// Canonical eigenvectors (solver/harmonic/canonical_vectors.hpp) thus keep their order for any
  /// phases.
  void take(std::size_t k, std::size_t size) {
    std::size_t longest = length(2 * k) < length(2 * k + 1) ? 2 * k + 1 : 2 * k;
    if (length(longest) < kShortCandidate) {
      longest = 0;
      for (std::size_t c = 1; c < 2 * size; ++c)
        if (length(longest) < length(c)) longest = c;
    }
    Complex* next = &taken_[k * nb_];
    std::copy_n(&candidate_[longest * nb_], nb_, next);
    const double norm = std::sqrt(length(longest));
    for (std::size_t x = 0; x < nb_; ++x) next[x] /= norm;
    for (std::size_t c = 0; c < 2 * size; ++c) {
      Complex* v = &candidate_[c * nb_];
      const double part = inner(next, v).real();
      for (std::size_t x = 0; x < nb_; ++x) v[x] -= part * next[x];
    }
  }

  const QMesh& mesh_;
  const Inversion& inversion_;
  std::size_t n_atoms_, nb_;
  std::vector<Complex> phase_;  ///< [n_atoms] of Θ at the point
  std::vector<Complex> other_, left_;
  std::vector<Complex> candidate_;  ///< [2·size][nb]
  std::vector<Complex> taken_;      ///< [size][nb]
};

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
#pragma omp parallel reduction(max : worst)
  {
    SetTurner turner(mesh, inversion);
#pragma omp for schedule(static)
    for (std::int64_t q = 0; q < mesh.size(); ++q) {
      turner.go_to(q);
      Complex* here = &eigenvector[static_cast<std::size_t>(q) * nb * nb];
      const std::int32_t* set = &subspace[static_cast<std::size_t>(q) * nb];
      for (std::size_t first = 0, end = 0; first < nb; first = end) {
        end = first + 1;
        while (end < nb && set[end] == set[first]) ++end;
        worst = std::max(worst, turner.turn(here + first * nb, end - first));
      }
    }
  }
  return worst;
}

}  // namespace quasi::thermal
