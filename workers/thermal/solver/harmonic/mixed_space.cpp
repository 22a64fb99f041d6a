// Adds the non-analytic term of polar crystals in mixed space [wang2010] (docs/theory/thermal.md
// 3.4).

#include <cmath>
#include <limits>

#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/harmonic/reduced_lattice.hpp"

namespace quasi::thermal {
namespace {

using Complex64 = std::complex<double>;

// Images q + G are equally short when their squared lengths agree within this share.
constexpr double kTieTolerance = 1e-8;

Vec3 apply_transposed(const Mat3& born, const Vec3& k) { return transpose(born) * k; }  // k·Z

}  // namespace

Vec3 DynamicalMatrixBuilder::first_shortest_image(const Vec3& q) const {
  const Mat3 to_cartesian = transpose(crystal_.reciprocal_per_nm());
  Vec3 k = to_cartesian * q;
  double shortest = dot(k, k);
  for (int i = -2; i <= 2; ++i)
    for (int j = -2; j <= 2; ++j)
      for (int l = -2; l <= 2; ++l) {
        const Vec3 image = to_cartesian * Vec3{q[0] + i, q[1] + j, q[2] + l};
        if (dot(image, image) < shortest * (1.0 - 1e-12)) {
          shortest = dot(image, image);
          k = image;
        }
      }
  return k;
}

std::vector<Vec3> DynamicalMatrixBuilder::shortest_images(const Vec3& q) const {
  if (options_.compat) return {first_shortest_image(q)};
  const Mat3 basis = reduced_lattice(crystal_.reciprocal_per_nm());
  const Vec3 start = transpose(crystal_.reciprocal_per_nm()) * q;
  // In a reduced basis the shortest image is at most two steps from the rounded coordinates.
  Vec3 near = start;
  const Mat3 to_coordinates = inverse(transpose(basis));
  const Vec3 coordinates = to_coordinates * start;
  for (int d = 0; d < 3; ++d) near = near - std::round(coordinates[d]) * basis[d];
  std::vector<std::pair<double, Vec3>> images;
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = -2; i <= 2; ++i)
    for (int j = -2; j <= 2; ++j)
      for (int l = -2; l <= 2; ++l) {
        const Vec3 image = near + static_cast<double>(i) * basis[0] +
                           static_cast<double>(j) * basis[1] + static_cast<double>(l) * basis[2];
        images.emplace_back(dot(image, image), image);
        shortest = std::min(shortest, images.back().first);
      }
  std::vector<Vec3> found;
  for (const auto& [square, image] : images)
    if (square <= shortest * (1.0 + kTieTolerance)) found.push_back(image);
  return found;
}

DynamicalMatrixBuilder::StructureFactor DynamicalMatrixBuilder::structure_factor(
    const Vec3& q) const {
  const int n_atoms = crystal_.n_atoms();
  StructureFactor sum;
  sum.value.assign(static_cast<std::size_t>(n_atoms * n_atoms), 0.0);
  for (auto& slope : sum.slope) slope.assign(sum.value.size(), 0.0);
  for (const Shell& shell : shells_) {
    const double turns = q[0] * shell.cell[0] + q[1] * shell.cell[1] + q[2] * shell.cell[2];
    const Complex64 phase =
        std::polar(1.0 / n_cells_, -2.0 * units::kPi * (turns - std::round(turns)));
    for (std::size_t pair = 0; pair < sum.value.size(); ++pair) {
      sum.value[pair] += shell.weight[pair] * phase;
      for (int g = 0; g < 3; ++g)
        sum.slope[g][pair] += shell.weight[pair] * phase * Complex64(0.0, -shell.vector_nm[g]);
    }
  }
  return sum;
}

void DynamicalMatrixBuilder::add_mixed_space(const Vec3& q, bool with_gradient,
                                             DynamicalMatrix& out) const {
  const std::vector<Vec3> images = shortest_images(q);
  if (dot(images.front(), images.front()) < 1e-20) return;  // the direction at Γ is undefined
  const StructureFactor factor = structure_factor(q);
  for (const Vec3& k : images)
    add_mixed_space_image(k, 1.0 / static_cast<double>(images.size()), factor, with_gradient, out);
}

void DynamicalMatrixBuilder::add_mixed_space_image(const Vec3& k, double share,
                                                   const StructureFactor& factor,
                                                   bool with_gradient, DynamicalMatrix& out) const {
  const int n_atoms = crystal_.n_atoms();
  const int nb = crystal_.n_branches();
  const Vec3 ek = crystal_.epsilon * k;
  const double kek = dot(k, ek);
  const double unit = share * options_.constants.born_charge_factor / crystal_.volume_nm3();
  for (int atom = 0; atom < n_atoms; ++atom)
    for (int other = 0; other < n_atoms; ++other) {
      const Vec3 kz = apply_transposed(crystal_.born[atom], k);
      const Vec3 kz_other = apply_transposed(crystal_.born[other], k);
      const double scale =
          unit / std::sqrt(crystal_.mass_amu[atom] * crystal_.mass_amu[other]) / kek;
      const std::size_t pair = static_cast<std::size_t>(atom * n_atoms + other);
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) {
          const double value = scale * kz[a] * kz_other[b];
          const std::size_t at = static_cast<std::size_t>((3 * atom + a) * nb + 3 * other + b);
          out.d[at] += value * factor.value[pair];
          if (!with_gradient) continue;
          for (int g = 0; g < 3; ++g) {
            const double derivative = scale * (kz[a] * crystal_.born[other][g][b] +
                                               kz_other[b] * crystal_.born[atom][g][a] -
                                               2.0 * kz[a] * kz_other[b] * ek[g] / kek);
            out.gradient[g][at] += derivative * factor.value[pair] + value * factor.slope[g][pair];
          }
        }
    }
}

}  // namespace quasi::thermal
