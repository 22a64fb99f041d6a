#include "workers/thermal/solver/renormalisation/static_bubble.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/control/namelist_section.hpp"
#include "workers/thermal/kernels/renormalisation/static_bubble_kernels.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/harmonic/canonical_vectors.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/renormalisation/rigid_shifts.hpp"
#include "workers/thermal/solver/renormalisation/site_map.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

using Complex64 = std::complex<double>;
using Matrix = std::vector<Complex64>;

/// Computes the phonons of all points of the mesh. @throws InvalidInput for ω² ≤ 0
void add_phonons(const LatticeModel& model, const HarmonicOptions& harmonic, double temperature_k,
                 StaticBubbleProblem& phonons) {
  const QMesh& mesh = phonons.mesh;
  const int nb = model.crystal.n_branches();
  const DynamicalMatrixBuilder builder(model.crystal, model.second_order, harmonic);
  phonons.omega_rad_ps.resize(static_cast<std::size_t>(mesh.size() * nb));
  phonons.occupation.resize(phonons.omega_rad_ps.size());
  phonons.vectors.resize(phonons.omega_rad_ps.size() * static_cast<std::size_t>(nb));
  auto* const vectors = reinterpret_cast<Complex64*>(phonons.vectors.data());
#pragma omp parallel for schedule(static)
  for (std::int64_t point = 0; point < mesh.size(); ++point) {
    int c[3];
    mesh.coordinates(point, c);
    Vec3 q{};
    for (int d = 0; d < 3; ++d) q[d] = static_cast<double>(c[d]) / mesh.n[d];
    diagonalise_hermitian(nb, builder.at(q, false).d, &phonons.omega_rad_ps[point * nb],
                          vectors + point * nb * nb);
  }
  for (const int s : rigid_shifts(model.crystal, vectors)) phonons.omega_rad_ps[s] = 0.0;
  const double hbar_over_kb = harmonic.constants.hbar_over_kb_k_ps();
  for (std::size_t mode = 0; mode < phonons.omega_rad_ps.size(); ++mode) {
    double& omega = phonons.omega_rad_ps[mode];
    if (omega == 0.0) continue;
    if (!(omega > 0.0))
      throw InvalidInput("'renormalise_bubble': a phonon at T = " + number_text(temperature_k) +
                         " K has ω² = " + number_text(omega) +
                         " (rad/ps)², and it must be positive; raise the temperature or take a "
                         "finer 'renormalise_mesh'");
    omega = std::sqrt(omega);
    if (temperature_k > 0.0)
      phonons.occupation[mode] = bose_einstein(omega, temperature_k, hbar_over_kb);
  }
}

/// Transforms matrices of a mesh to lattice vectors 0 ≤ R_d < N_d: (1/N) Σ_q D(q) e^{−iq·R}.
Matrix to_lattice(const QMesh& mesh, std::size_t elements, Matrix values) {
  std::size_t stride = elements;
  for (int d = 0; d < 3; ++d) {
    const std::vector<Complex64> roots = unit_roots(mesh.n[d]);
    const auto n = static_cast<std::size_t>(mesh.n[d]);
    Matrix next(values.size());
    for (std::size_t outer = 0; outer < values.size(); outer += n * stride)
      for (std::size_t r = 0; r < n; ++r)
        for (std::size_t m = 0; m < n; ++m) {
          const Complex64 phase = std::conj(roots[m * r % n]) / static_cast<double>(n);
          const Complex64* from = &values[outer + m * stride];
          Complex64* to = &next[outer + r * stride];
          for (std::size_t i = 0; i < stride; ++i) to[i] += phase * from[i];
        }
    values = std::move(next);
    stride *= n;
  }
  return values;
}

/// Returns the images of a cell under the periods of the mesh that bring atom `other` nearest to
/// atom `atom` of the origin cell.
std::vector<Index3> nearest_images(const Crystal& crystal, const QMesh& mesh, int atom, int other,
                                   const Index3& cell) {
  constexpr double kSame = 1e-6;  // of a length
  const Vec3 between =
      crystal.cartesian_nm(crystal.position[other]) - crystal.cartesian_nm(crystal.position[atom]);
  std::vector<Index3> nearest;
  double shortest = std::numeric_limits<double>::infinity();
  for (int k = -2; k <= 2; ++k)
    for (int j = -2; j <= 2; ++j)
      for (int i = -2; i <= 2; ++i) {
        const Index3 image{cell[0] + i * mesh.n[0], cell[1] + j * mesh.n[1],
                           cell[2] + k * mesh.n[2]};
        const double distance = length(between + crystal.lattice_vector_nm(image));
        if (distance < shortest - kSame * (1.0 + shortest)) nearest.clear();
        if (nearest.empty()) shortest = distance;
        if (distance <= shortest + kSame * (1.0 + shortest)) nearest.push_back(image);
      }
  return nearest;
}

/// Returns the constants of all pairs. Their sums over the second atom are zero, because the
/// diagonal block takes the rest.
std::vector<PairCorrection> pairs_of(const Crystal& crystal, const QMesh& mesh,
                                     const Matrix& matrix, double ev_per_a2_amu_to_omega2) {
  const auto nb = static_cast<std::size_t>(crystal.n_branches());
  const Matrix values = to_lattice(mesh, nb * nb, matrix);
  std::vector<PairCorrection> pairs;
  for (int atom = 0; atom < crystal.n_atoms(); ++atom) {
    std::array<double, 9> sum{};
    std::size_t diagonal = 0;
    for (int other = 0; other < crystal.n_atoms(); ++other)
      for (std::int64_t r = 0; r < mesh.size(); ++r) {
        int c[3];
        mesh.coordinates(r, c);
        const std::vector<Index3> images =
            nearest_images(crystal, mesh, atom, other, {c[0], c[1], c[2]});
        const double factor = std::sqrt(crystal.mass_amu[atom] * crystal.mass_amu[other]) /
                              (ev_per_a2_amu_to_omega2 * static_cast<double>(images.size()));
        for (const Index3& image : images) {
          PairCorrection pair{.atom = atom, .other = other, .cell = image, .value_ev_a2 = {}};
          for (std::size_t e = 0; e < 9; ++e) {
            const std::size_t row = 3 * static_cast<std::size_t>(atom) + e / 3,
                              column = 3 * static_cast<std::size_t>(other) + e % 3;
            pair.value_ev_a2[e] =
                factor * values[(static_cast<std::size_t>(r) * nb + row) * nb + column].real();
            sum[e] += pair.value_ev_a2[e];
          }
          if (other == atom && image == Index3{0, 0, 0}) diagonal = pairs.size();
          pairs.push_back(pair);
        }
      }
    for (std::size_t e = 0; e < 9; ++e) pairs[diagonal].value_ev_a2[e] -= sum[e];
  }
  return pairs;
}

}  // namespace

StaticBubbleProblem make_static_bubble_problem(const LatticeModel& model, const QMesh& mesh,
                                               const HarmonicOptions& harmonic,
                                               double temperature_k) {
  if (model.third_order.n_blocks() == 0)
    throw InvalidInput("'renormalise_bubble' needs constants of third order, and there are none");
  const PhysicalConstants& constants = harmonic.constants;
  const double hbar_a2_amu_per_ps = constants.hbar_1e34_j_s / (units::kAtomicMass_kg * 1e27) * 10.0;
  StaticBubbleProblem problem;
  problem.mesh = mesh;
  problem.transform = make_fc3_transform(model.third_order, model.crystal.mass_amu, mesh);
  problem.scale = 0.25 * hbar_a2_amu_per_ps * std::pow(constants.ev_per_a2_amu_to_omega2, 2) /
                  static_cast<double>(mesh.size());
  problem.inverse_kt_ps = temperature_k > 0.0 ? constants.hbar_over_kb_k_ps() / temperature_k : 0.0;
  add_phonons(model, harmonic, temperature_k, problem);
  return problem;
}

StaticBubble static_bubble(const LatticeModel& model, const Symmetry& symmetry,
                           const HarmonicOptions& harmonic, double temperature_k,
                           const Device& device) {
  const QMesh& mesh = symmetry.mesh;
  const auto nb = static_cast<std::size_t>(model.crystal.n_branches());
  const StaticBubbleProblem problem =
      make_static_bubble_problem(model, mesh, harmonic, temperature_k);
  const auto kernels = make_static_bubble_kernels(device);
  kernels->load(problem);
  const Matrix irreducible =
      kernels->matrices({symmetry.irreducible.begin(), symmetry.irreducible.end()});
  const WaveMatrixImages images(model.crystal, symmetry, 3.0 * harmonic.symmetry_tolerance_nm);
  StaticBubble bubble;
  bubble.matrix.reserve(static_cast<std::size_t>(mesh.size()) * nb * nb);
  for (std::int64_t point = 0; point < mesh.size(); ++point) {
    const auto star = static_cast<std::size_t>(symmetry.star_of[point]);
    const Matrix one = images.at(point, &irreducible[star * nb * nb]);
    bubble.matrix.insert(bubble.matrix.end(), one.begin(), one.end());
  }
  bubble.correction =
      pairs_of(model.crystal, mesh, bubble.matrix, harmonic.constants.ev_per_a2_amu_to_omega2);
  return bubble;
}

}  // namespace quasi::thermal
