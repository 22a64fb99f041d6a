#include "workers/thermal/solver/harmonic/reduced_lattice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace quasi::thermal {
namespace {

/// Lengths and volumes that agree within this share count as equal.
constexpr double kEqual = 1e-8;

/// Reduces the basis of a plane by the steps of Gauss; a is not longer than b in the end.
void reduce_pair(Vec3& a, Vec3& b) {
  if (dot(b, b) < dot(a, a)) std::swap(a, b);
  for (;;) {
    const Vec3 shorter = b - std::round(dot(a, b) / dot(a, a)) * a;
    if (!(dot(shorter, shorter) < dot(b, b) * (1.0 - 1e-12))) return;
    b = shorter;
    if (dot(b, b) < dot(a, a)) std::swap(a, b);
  }
}

/// Returns the shortest of c − m a − n b, for the integers m and n around the projection of c on
/// the plane of a and b.
Vec3 shortest_translate(const Vec3& c, const Vec3& a, const Vec3& b) {
  const double aa = dot(a, a), ab = dot(a, b), bb = dot(b, b);
  const double per_area_squared = 1.0 / (aa * bb - ab * ab);
  const double m = std::floor((dot(c, a) * bb - dot(c, b) * ab) * per_area_squared);
  const double n = std::floor((dot(c, b) * aa - dot(c, a) * ab) * per_area_squared);
  Vec3 shortest = c;
  for (int i = -1; i <= 2; ++i)
    for (int j = -1; j <= 2; ++j) {
      const Vec3 candidate = c - (m + i) * a - (n + j) * b;
      if (dot(candidate, candidate) < dot(shortest, shortest)) shortest = candidate;
    }
  return shortest;
}

/// Returns one vector of each pair ±c of lattice vectors that are not longer than `limit`. In a
/// reduced basis the coordinates of such vectors are at most two.
std::vector<Vec3> short_vectors(const Mat3& basis, double limit) {
  std::vector<Vec3> found;
  for (int i = -2; i <= 2; ++i)
    for (int j = -2; j <= 2; ++j)
      for (int k = -2; k <= 2; ++k) {
        const bool first_of_pair = i > 0 || (i == 0 && (j > 0 || (j == 0 && k > 0)));
        if (!first_of_pair) continue;
        const Vec3 c = static_cast<double>(i) * basis[0] + static_cast<double>(j) * basis[1] +
                       static_cast<double>(k) * basis[2];
        if (length(c) <= limit) found.push_back(c);
      }
  return found;
}

/// Returns the coordinates of the 26 vectors around the origin of a basis. In a reduced basis they
/// contain the vectors of every obtuse superbase.
std::vector<Index3> neighbour_coordinates() {
  std::vector<Index3> found;
  for (int i = -1; i <= 1; ++i)
    for (int j = -1; j <= 1; ++j)
      for (int k = -1; k <= 1; ++k)
        if (i != 0 || j != 0 || k != 0) found.push_back({i, j, k});
  return found;
}

/// Returns three vectors and the negative of their sum, in rising order.
Superbase completed(const Index3& a, const Index3& b, const Index3& c) {
  Superbase set{a, b, c, Index3{}};
  for (int d = 0; d < 3; ++d) set[3][d] = -(a[d] + b[d] + c[d]);
  std::sort(set.begin(), set.end());
  return set;
}

/// Returns the superbase or its negative, whichever is first in the order of coordinates.
Superbase one_of_pair(const Superbase& set) {
  Superbase negative = set;
  for (Index3& v : negative)
    for (int& x : v) x = -x;
  std::sort(negative.begin(), negative.end());
  return std::min(set, negative);
}

bool spans_lattice(const Superbase& set) {
  Mat3 rows{};
  for (int i = 0; i < 3; ++i)
    for (int d = 0; d < 3; ++d) rows[i][d] = set[static_cast<std::size_t>(i)][d];
  return std::lround(std::fabs(determinant(rows))) == 1;
}

/// Returns the vector with integer coordinates in a basis.
Vec3 cartesian(const Index3& coordinates, const Mat3& basis) {
  return transpose(basis) * Vec3{static_cast<double>(coordinates[0]),
                                 static_cast<double>(coordinates[1]),
                                 static_cast<double>(coordinates[2])};
}

bool is_obtuse(const Superbase& set, const Mat3& basis) {
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = i + 1; j < 4; ++j) {
      const Vec3 a = cartesian(set[i], basis), b = cartesian(set[j], basis);
      if (dot(a, b) > kEqual * length(a) * length(b)) return false;
    }
  return true;
}

double shortest_three_squared(const Superbase& set, const Mat3& basis) {
  double sum = 0.0, longest = 0.0;
  for (const Index3& v : set) {
    const Vec3 x = cartesian(v, basis);
    sum += dot(x, x);
    longest = std::max(longest, dot(x, x));
  }
  return sum - longest;
}

}  // namespace

Mat3 reduced_lattice(const Mat3& lattice) {
  Mat3 basis = lattice;
  const auto sort_by_length = [&basis] {
    std::sort(basis.begin(), basis.end(),
              [](const Vec3& a, const Vec3& b) { return dot(a, a) < dot(b, b); });
  };
  constexpr double kShorter = 1.0 - 1e-12;
  sort_by_length();
  for (bool shortened = true; shortened;) {
    reduce_pair(basis[0], basis[1]);
    const Vec3 third = shortest_translate(basis[2], basis[0], basis[1]);
    shortened = dot(third, third) < kShorter * dot(basis[2], basis[2]);
    if (shortened) basis[2] = third;
    sort_by_length();
  }
  return basis;
}

Mat3 mesh_metric(const Mat3& steps) {
  const Mat3 basis = reduced_lattice(steps);
  Vec3 minima{length(basis[0]), length(basis[1]), length(basis[2])};
  std::sort(minima.begin(), minima.end());
  const double volume = std::fabs(determinant(basis));
  const std::vector<Vec3> vectors = short_vectors(basis, minima[2] * (1.0 + kEqual));
  Mat3 sum{};
  int n_bases = 0;
  for (std::size_t a = 0; a < vectors.size(); ++a)
    for (std::size_t b = a + 1; b < vectors.size(); ++b)
      for (std::size_t c = b + 1; c < vectors.size(); ++c) {
        const Mat3 rows{vectors[a], vectors[b], vectors[c]};
        Vec3 lengths{length(rows[0]), length(rows[1]), length(rows[2])};
        std::sort(lengths.begin(), lengths.end());
        bool shortest = std::fabs(std::fabs(determinant(rows)) - volume) <= kEqual * volume;
        for (int i = 0; i < 3; ++i) shortest &= lengths[i] <= minima[i] * (1.0 + kEqual);
        if (!shortest) continue;
        ++n_bases;
        const Mat3 term = transpose(rows) * rows;
        for (int i = 0; i < 3; ++i) sum[i] = sum[i] + term[i];
      }
  for (Vec3& row : sum) row = (1.0 / n_bases) * row;
  return sum;
}

std::vector<Superbase> obtuse_superbases(const Mat3& steps) {
  const Mat3 basis = reduced_lattice(steps);
  std::map<Superbase, double> found;  // with the squared lengths of the three shortest vectors
  const std::vector<Index3> candidates = neighbour_coordinates();
  for (std::size_t a = 0; a < candidates.size(); ++a)
    for (std::size_t b = a + 1; b < candidates.size(); ++b)
      for (std::size_t c = b + 1; c < candidates.size(); ++c) {
        const Superbase set = completed(candidates[a], candidates[b], candidates[c]);
        if (spans_lattice(set) && is_obtuse(set, basis))
          found.emplace(one_of_pair(set), shortest_three_squared(set, basis));
      }
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [set, squared] : found) least = std::min(least, squared);
  const Mat3 to_steps = basis * inverse(steps);
  std::vector<Superbase> result;
  for (const auto& [set, squared] : found) {
    if (squared > least * (1.0 + kEqual)) continue;
    Superbase in_steps{};
    for (std::size_t i = 0; i < 4; ++i)
      for (int d = 0; d < 3; ++d)
        in_steps[i][d] = static_cast<int>(std::lround(
            set[i][0] * to_steps[0][d] + set[i][1] * to_steps[1][d] + set[i][2] * to_steps[2][d]));
    result.push_back(in_steps);
  }
  return result;
}

}  // namespace quasi::thermal
