#include "workers/thermal/solver/renormalisation/static_bubble.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/control/namelist_section.hpp"
#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
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

constexpr Complex64 kOne = 1.0;
constexpr Complex64 kZero = 0.0;

/// Phonons of all points of a mesh.
struct MeshPhonons {
  std::vector<double> omega_rad_ps;  ///< [n_q][branch]; 0 for the three translations
  std::vector<double> occupation;    ///< [n_q][branch]
  std::vector<Complex64> vectors;    ///< [n_q][branch][3κ+α]
};

MeshPhonons phonons_of(const LatticeModel& model, const QMesh& mesh,
                       const HarmonicOptions& harmonic, double temperature_k) {
  const int nb = model.crystal.n_branches();
  const DynamicalMatrixBuilder builder(model.crystal, model.second_order, harmonic);
  MeshPhonons phonons;
  phonons.omega_rad_ps.resize(static_cast<std::size_t>(mesh.size() * nb));
  phonons.occupation.resize(phonons.omega_rad_ps.size());
  phonons.vectors.resize(phonons.omega_rad_ps.size() * nb);
#pragma omp parallel for schedule(static)
  for (std::int64_t point = 0; point < mesh.size(); ++point) {
    int c[3];
    mesh.coordinates(point, c);
    Vec3 q{};
    for (int d = 0; d < 3; ++d) q[d] = static_cast<double>(c[d]) / mesh.n[d];
    diagonalise_hermitian(nb, builder.at(q, false).d, &phonons.omega_rad_ps[point * nb],
                          &phonons.vectors[point * nb * nb]);
  }
  for (const int s : rigid_shifts(model.crystal, phonons.vectors.data()))
    phonons.omega_rad_ps[s] = 0.0;
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
  return phonons;
}

/// Sums the bubble of one q over all q' of the mesh. An object has work space of its own, so each
/// thread needs its own object.
class BubbleSum {
 public:
  /// @param scale  ħ/4 in units in which U² is (eV/(Å³ amu^{3/2}))²
  BubbleSum(const Fc3Transform& transform, const QMesh& mesh, const MeshPhonons& phonons,
            double scale, double inverse_kt_ps)
      : t_(transform),
        mesh_(mesh),
        phonons_(phonons),
        scale_(scale),
        inverse_kt_ps_(inverse_kt_ps),
        nb_(static_cast<std::size_t>(transform.nb)) {
    for (int d = 0; d < 3; ++d) roots_[d] = unit_roots(mesh.n[d]);
  }

  /// Writes D^B(q), [nb][nb].
  void compute(std::int64_t q, Complex64* matrix) {
    transform_first_cell(q);
    sum_.assign(nb_ * nb_, 0.0);
    const std::size_t cube = nb_ * nb_ * nb_;
    const auto b_extent = static_cast<std::size_t>(t_.extent[1]),
               a_extent = static_cast<std::size_t>(t_.extent[0]);
    plane_.resize(a_extent * b_extent * cube);
    line_.resize(a_extent * cube);
    element_.resize(cube);
    for (int k = 0; k < mesh_.n[2]; ++k) {
      add_up(2, k, box_, plane_);
      for (int j = 0; j < mesh_.n[1]; ++j) {
        add_up(1, j, plane_, line_);
        for (int i = 0; i < mesh_.n[0]; ++i) {
          add_up(0, i, line_, element_);
          add_point(q, mesh_.index(i, j, k));
        }
      }
    }
    // sum_ is [x'][x] of Σ U_x' g U*_x.
    for (std::size_t x = 0; x < nb_; ++x)
      for (std::size_t y = 0; y < nb_; ++y) matrix[x * nb_ + y] = -scale_ * sum_[y * nb_ + x];
  }

 private:
  /// Sums Φ/√(mm'm'') e^{−iq·R''} into the box of ΔR = R' − R'', [c][b][a][3κ'+β][3κ+α][3κ''+γ].
  void transform_first_cell(std::int64_t q) {
    int c[3];
    mesh_.coordinates(q, c);
    box_.assign(static_cast<std::size_t>(t_.box_size()) * nb_ * nb_ * nb_, 0.0);
    for (std::int64_t block = 0; block < t_.n_blocks; ++block) {
      const Index3& cell = t_.third_cells[static_cast<std::size_t>(t_.third_cell[block])];
      Complex64 phase = 1.0;
      for (int d = 0; d < 3; ++d)
        phase *=
            std::conj(roots_[d][QMesh::wrap(c[d] * QMesh::wrap(cell[d], mesh_.n[d]), mesh_.n[d])]);
      const auto target = static_cast<std::size_t>(t_.target[block]);
      const std::size_t third = target % nb_, second = target / nb_ % nb_,
                        place = target / nb_ / nb_;
      const auto first = static_cast<std::size_t>(t_.first_component[block]);
      const double* tensor = &t_.tensor[static_cast<std::size_t>(27 * block)];
      for (std::size_t a = 0; a < 3; ++a)
        for (std::size_t b = 0; b < 3; ++b)
          for (std::size_t g = 0; g < 3; ++g)
            box_[((place * nb_ + second + b) * nb_ + first + a) * nb_ + third + g] +=
                phase * tensor[9 * a + 3 * b + g];
    }
  }

  /// Computes to = Σ_r e^{ip·ΔR} from[r] over the slowest axis of the box that is left.
  void add_up(int axis, int m, const Matrix& from, Matrix& to) const {
    const int extent = t_.extent[axis];
    const Complex64* phase = &t_.phase[axis][static_cast<std::size_t>(m * extent)];
    const int n = static_cast<int>(to.size());
    cblas_zgemv(CblasRowMajor, CblasTrans, extent, n, &kOne, from.data(), n, phase, 1, &kZero,
                to.data(), 1);
  }

  /// Adds the pairs of phonons at p and q + p, of which element_ is Σ_ΔR.
  void add_point(std::int64_t q, std::int64_t p) {
    const auto at1 = static_cast<std::size_t>(p) * nb_,
               at2 = static_cast<std::size_t>(mesh_.add(q, p, 1)) * nb_;
    const Complex64* e1 = &phonons_.vectors[at1 * nb_];
    const Complex64* e2 = &phonons_.vectors[at2 * nb_];
    const int nb = static_cast<int>(nb_), square = nb * nb;
    half_.resize(element_.size());
    whole_.resize(element_.size());
    weighted_.resize(nb_ * nb_);
    // half[s][x][γ] = Σ_β e1_sβ A[β][x][γ]; whole[s][x][s'] = Σ_γ half[s][x][γ] e2*_s'γ =
    // U_{x,s,s'}.
    cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, nb, square, nb, &kOne, e1, nb,
                element_.data(), square, &kZero, half_.data(), square);
    cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasConjTrans, square, nb, nb, &kOne, half_.data(),
                nb, e2, nb, &kZero, whole_.data(), nb);
    for (std::size_t s = 0; s < nb_; ++s) {
      if (phonons_.omega_rad_ps[at1 + s] == 0.0) continue;
      const Complex64* u = &whole_[s * nb_ * nb_];
      for (std::size_t s2 = 0; s2 < nb_; ++s2) {
        const double weight = pair_weight(at1 + s, at2 + s2);
        for (std::size_t x = 0; x < nb_; ++x) weighted_[x * nb_ + s2] = weight * u[x * nb_ + s2];
      }
      cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasConjTrans, nb, nb, nb, &kOne, weighted_.data(),
                  nb, u, nb, &kOne, sum_.data(), nb);
    }
  }

  /// Returns [(1 + n + n')/(ω + ω') + (n − n')/(ω' − ω)]/(ωω') in ps³; 0 for a translation.
  double pair_weight(std::size_t mode1, std::size_t mode2) const {
    double low = phonons_.omega_rad_ps[mode1], high = phonons_.omega_rad_ps[mode2];
    if (low == 0.0 || high == 0.0) return 0.0;
    double n_low = phonons_.occupation[mode1], n_high = phonons_.occupation[mode2];
    if (low > high) {
      std::swap(low, high);
      std::swap(n_low, n_high);
    }
    // n − n' = n(n' + 1)(1 − e^{−ħ(ω'−ω)/k_BT}), which loses no digits where ω = ω'.
    const double gap = high - low;
    const double slope = gap > 0.0 ? -std::expm1(-inverse_kt_ps_ * gap) / gap : inverse_kt_ps_;
    return ((1.0 + n_low + n_high) / (low + high) + n_low * (n_high + 1.0) * slope) / (low * high);
  }

  const Fc3Transform& t_;
  const QMesh& mesh_;
  const MeshPhonons& phonons_;
  double scale_;
  double inverse_kt_ps_;  ///< ħ/k_BT; 0 at T = 0, where no mode is occupied
  std::size_t nb_;
  std::vector<Complex64> roots_[3];
  Matrix box_, plane_, line_, element_;  ///< sums over no, one, two and three axes of the box
  Matrix half_, whole_, weighted_, sum_;
};

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

StaticBubble static_bubble(const LatticeModel& model, const Symmetry& symmetry,
                           const HarmonicOptions& harmonic, double temperature_k) {
  if (model.third_order.n_blocks() == 0)
    throw InvalidInput("'renormalise_bubble' needs constants of third order, and there are none");
  const QMesh& mesh = symmetry.mesh;
  const auto nb = static_cast<std::size_t>(model.crystal.n_branches());
  const MeshPhonons phonons = phonons_of(model, mesh, harmonic, temperature_k);
  const Fc3Transform transform =
      make_fc3_transform(model.third_order, model.crystal.mass_amu, mesh);
  const PhysicalConstants& constants = harmonic.constants;
  const double hbar_a2_amu_per_ps = constants.hbar_1e34_j_s / (units::kAtomicMass_kg * 1e27) * 10.0;
  const double scale = 0.25 * hbar_a2_amu_per_ps * std::pow(constants.ev_per_a2_amu_to_omega2, 2) /
                       static_cast<double>(mesh.size());
  const double inverse_kt_ps =
      temperature_k > 0.0 ? constants.hbar_over_kb_k_ps() / temperature_k : 0.0;
  std::vector<Matrix> irreducible(symmetry.irreducible.size(), Matrix(nb * nb));
  openblas_set_num_threads(1);  // points are the parallel work
#pragma omp parallel
  {
    BubbleSum sum(transform, mesh, phonons, scale, inverse_kt_ps);
#pragma omp for schedule(dynamic)
    for (std::int64_t i = 0; i < symmetry.n_irreducible(); ++i)
      sum.compute(symmetry.irreducible[static_cast<std::size_t>(i)],
                  irreducible[static_cast<std::size_t>(i)].data());
  }
  const WaveMatrixImages images(model.crystal, symmetry, 3.0 * harmonic.symmetry_tolerance_nm);
  StaticBubble bubble;
  bubble.matrix.reserve(static_cast<std::size_t>(mesh.size()) * nb * nb);
  for (std::int64_t point = 0; point < mesh.size(); ++point) {
    const Matrix one =
        images.at(point, irreducible[static_cast<std::size_t>(symmetry.star_of[point])].data());
    bubble.matrix.insert(bubble.matrix.end(), one.begin(), one.end());
  }
  bubble.correction =
      pairs_of(model.crystal, mesh, bubble.matrix, constants.ev_per_a2_amu_to_omega2);
  return bubble;
}

}  // namespace quasi::thermal
