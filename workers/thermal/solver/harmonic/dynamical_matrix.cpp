#include <algorithm>
#include <cmath>
#include <map>

#include "workers/backend/error.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal {
namespace {

using Complex64 = std::complex<double>;

constexpr double kSameDistance_nm =
    1e-5;  // images this close are equally near (docs/theory/thermal.md 3.1)
// Limit of (G+q)ε(G+q)/4α. The limit of FourPhonon, 14, leaves errors of 1e-5 in ω².
constexpr double kEwaldCut = 32.0;
constexpr double kEwaldCutFourPhonon = 14.0;

/// Returns the weight of the pair vector d. It is 0 if a supercell translation brings it nearer,
/// else one over the number of images at equal distance.
double wigner_seitz_weight(const Vec3& d, const std::vector<Vec3>& translations) {
  const double tolerance = kSameDistance_nm * std::max(length(d), kSameDistance_nm);
  int images = 1;
  for (const Vec3& l : translations) {
    const double c = dot(d, l) - 0.5 * dot(l, l);  // (|d|² − |d − L|²)/2
    if (c > tolerance) return 0.0;
    if (std::fabs(c) <= tolerance) ++images;
  }
  return 1.0 / images;
}

Vec3 apply_transposed(const Mat3& born, const Vec3& k) { return transpose(born) * k; }  // k·Z

/// Returns the lattice vectors of the supercell within two translations, without zero.
std::vector<Vec3> near_translations(const Crystal& crystal, const Index3& supercell) {
  std::vector<Vec3> translations;
  for (int i = -2; i <= 2; ++i)
    for (int j = -2; j <= 2; ++j)
      for (int k = -2; k <= 2; ++k)
        if (i != 0 || j != 0 || k != 0)
          translations.push_back(
              crystal.lattice_vector_nm({i * supercell[0], j * supercell[1], k * supercell[2]}));
  return translations;
}

bool has_charges(const Crystal& crystal) {
  for (const Mat3& z : crystal.born)
    for (const Vec3& row : z)
      for (const double value : row)
        if (value != 0.0) return true;
  return false;
}

/// @throws InvalidInput unless ε is symmetric and positive definite.
void check_dielectric(const Mat3& epsilon, const HarmonicOptions& options) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < i; ++j)
      if (std::fabs(epsilon[i][j] - epsilon[j][i]) > 1e-6)
        throw InvalidInput(options.epsilon_location + ": 'epsilon' is not symmetric: elements " +
                           std::to_string(i + 1) + "," + std::to_string(j + 1) + " and " +
                           std::to_string(j + 1) + "," + std::to_string(i + 1) + " are " +
                           std::to_string(epsilon[i][j]) + " and " + std::to_string(epsilon[j][i]) +
                           " and may differ by 1e-6; give a symmetric tensor");
  if (!(epsilon[0][0] > 0.0) || !(determinant(epsilon) > 0.0) ||
      !(epsilon[0][0] * epsilon[1][1] > epsilon[0][1] * epsilon[1][0]))
    throw InvalidInput(options.epsilon_location +
                       ": 'epsilon' is not positive definite; give the dielectric tensor of an "
                       "insulator, or set nonanalytic = .false.");
}

}  // namespace

/// Blocks of force constants gathered by lattice vector.
class DynamicalMatrixBuilder::ShellTable {
 public:
  ShellTable(const Crystal& crystal, const SecondOrder& constants)
      : crystal_(crystal),
        constants_(constants),
        n_atoms_(crystal.n_atoms()),
        total_(static_cast<std::size_t>(n_atoms_ * n_atoms_), 0.0) {}

  /// Adds the explicit images of decks that list them.
  void add_images() {
    for (const SecondOrder::Image& image : constants_.images)
      add({image.atom, image.other}, image.cell, image.weight, image.value.data());
  }
  /// Adds the blocks of a supercell with the weights of its Wigner–Seitz cell.
  void add_supercell() {
    const Index3& n = constants_.supercell;
    const std::vector<Vec3> translations = near_translations(crystal_, n);
    for (int atom = 0; atom < n_atoms_; ++atom)
      for (int other = 0; other < n_atoms_; ++other) {
        const Vec3 base = crystal_.cartesian_nm(crystal_.position[atom] - crystal_.position[other]);
        Index3 cell;
        for (cell[0] = -2 * n[0]; cell[0] <= 2 * n[0]; ++cell[0])
          for (cell[1] = -2 * n[1]; cell[1] <= 2 * n[1]; ++cell[1])
            for (cell[2] = -2 * n[2]; cell[2] <= 2 * n[2]; ++cell[2]) {
              const double weight =
                  wigner_seitz_weight(base + crystal_.lattice_vector_nm(cell), translations);
              if (weight != 0.0)
                add({atom, other}, cell, weight, constants_.block(atom, other, cell));
            }
      }
  }
  /// @throws InvalidInput if the weights of a pair do not add up to the number of cells in the
  /// supercell.
  void check_totals() const {
    const auto n_cells = static_cast<double>(constants_.n_cells());
    for (int atom = 0; atom < n_atoms_; ++atom)
      for (int other = 0; other < n_atoms_; ++other) {
        const double total = total_[atom * n_atoms_ + other];
        if (std::fabs(total - n_cells) > 1e-6 * n_cells)
          throw InvalidInput(
              "the images of atoms " + std::to_string(atom + 1) + " and " +
              std::to_string(other + 1) + " have the total weight " + std::to_string(total) +
              ", which must be the number of cells, " + std::to_string(constants_.n_cells()) +
              "; put 'positions' inside the cell and choose a less skewed 'lattvec'");
      }
  }
  /// Returns the shells, sorted by lattice vector.
  std::vector<Shell> take() {
    std::vector<Shell> shells;
    for (auto& [cell, shell] : shells_) shells.push_back(std::move(shell));
    return shells;
  }

 private:
  struct Pair {
    int atom, other;
  };
  void add(const Pair& pair, const Index3& cell, double weight, const double* block) {
    const auto [atom, other] = pair;
    const int nb = 3 * n_atoms_;
    Shell& shell = shells_[cell];
    if (shell.matrix.empty())
      shell = {cell, crystal_.lattice_vector_nm(cell),
               std::vector<double>(static_cast<std::size_t>(nb * nb), 0.0),
               std::vector<double>(static_cast<std::size_t>(n_atoms_ * n_atoms_), 0.0)};
    shell.weight[atom * n_atoms_ + other] = weight;
    total_[atom * n_atoms_ + other] += weight;
    const double factor = weight / std::sqrt(crystal_.mass_amu[atom] * crystal_.mass_amu[other]);
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b)
        shell.matrix[(3 * atom + a) * nb + 3 * other + b] = factor * block[a * 3 + b];
  }

  const Crystal& crystal_;
  const SecondOrder& constants_;
  int n_atoms_;
  std::map<Index3, Shell> shells_;
  std::vector<double> total_;  ///< [atom][other] sum of weights
};

DynamicalMatrixBuilder::DynamicalMatrixBuilder(const Crystal& crystal, const SecondOrder& constants,
                                               const HarmonicOptions& options)
    : crystal_(crystal), options_(options), n_cells_(static_cast<double>(constants.n_cells())) {
  ShellTable table(crystal, constants);
  if (constants.images.empty())
    table.add_supercell();
  else
    table.add_images();
  table.check_totals();
  shells_ = table.take();
  if (!options.nonanalytic || !has_charges(crystal)) return;
  check_dielectric(crystal.epsilon, options);
  ewald_ = options.ewald;
  mixed_space_ = !options.ewald;
  if (ewald_) prepare_ewald();
}

DynamicalMatrix DynamicalMatrixBuilder::at(const Vec3& q, bool with_gradient) const {
  const auto size = static_cast<std::size_t>(crystal_.n_branches() * crystal_.n_branches());
  DynamicalMatrix out;
  out.d.assign(size, 0.0);
  if (with_gradient)
    for (auto& g : out.gradient) g.assign(size, 0.0);
  for (const Shell& shell : shells_) {
    // Whole turns are removed before the sine, because R is an integer vector and q often a
    // fraction.
    const double turns = q[0] * shell.cell[0] + q[1] * shell.cell[1] + q[2] * shell.cell[2];
    const double angle = -2.0 * units::kPi * (turns - std::round(turns));
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    for (std::size_t e = 0; e < size; ++e)
      out.d[e] += Complex64(c * shell.matrix[e], s * shell.matrix[e]);
    if (!with_gradient) continue;
    for (int g = 0; g < 3; ++g) {  // factor −i R_γ
      const double re = s * shell.vector_nm[g];
      const double im = -c * shell.vector_nm[g];
      for (std::size_t e = 0; e < size; ++e)
        out.gradient[g][e] += Complex64(re * shell.matrix[e], im * shell.matrix[e]);
    }
  }
  if (mixed_space_) add_mixed_space(q, with_gradient, out);
  if (ewald_) add_ewald(q, with_gradient, out);
  // The matrix becomes Hermitian to the last bit, so that both triangles describe one matrix.
  const int nb = crystal_.n_branches();
  const auto symmetrise = [nb](std::vector<Complex64>& m) {
    for (int i = 0; i < nb; ++i)
      for (int j = 0; j <= i; ++j) {
        const Complex64 mean = 0.5 * (m[i * nb + j] + std::conj(m[j * nb + i]));
        m[i * nb + j] = mean;
        m[j * nb + i] = std::conj(mean);
      }
  };
  symmetrise(out.d);
  if (with_gradient)
    for (auto& g : out.gradient) symmetrise(g);
  return out;
}

namespace {

/// The sphere of reciprocal vectors K of the Ewald sum: KεK < 4α·cut.
struct EwaldSphere {
  Mat3 reciprocal_per_bohr;
  Mat3 epsilon;
  double alpha;  ///< 1/bohr²
  double cut;
};

EwaldSphere ewald_sphere(const Crystal& crystal, const HarmonicOptions& options) {
  const double bohr = options.constants.bohr_nm;
  Mat3 reciprocal = crystal.reciprocal_per_nm();
  for (Vec3& row : reciprocal) row = bohr * row;
  const double root_alpha = 2.0 * units::kPi * bohr / length(crystal.lattice_nm[0]);
  return {reciprocal, crystal.epsilon, root_alpha * root_alpha,
          options.compat ? kEwaldCutFourPhonon : kEwaldCut};
}

/// Calls visit(K, KεK, exp(−KεK/4α)/KεK) for every K = q + G in the sphere, in 1/bohr.
template <typename Visit>
void for_each_ewald_vector(const EwaldSphere& sphere, const Vec3& q, bool skip_g_zero,
                           const Visit& visit) {
  const auto& [reciprocal_per_bohr, epsilon, alpha, cut] = sphere;
  // KεK < 4α·cut bounds |K_fractional,i| by the metric's inverse diagonal.
  const Mat3 to_cartesian = transpose(reciprocal_per_bohr);
  const Mat3 metric = transpose(to_cartesian) * epsilon * to_cartesian;
  const Mat3 metric_inverse = inverse(metric);
  int range[3];
  for (int d = 0; d < 3; ++d)
    range[d] =
        static_cast<int>(std::sqrt(4.0 * alpha * cut * metric_inverse[d][d]) + std::fabs(q[d])) + 1;
  for (int i = -range[0]; i <= range[0]; ++i)
    for (int j = -range[1]; j <= range[1]; ++j)
      for (int l = -range[2]; l <= range[2]; ++l) {
        if (skip_g_zero && i == 0 && j == 0 && l == 0) continue;
        const Vec3 k = to_cartesian * Vec3{q[0] + i, q[1] + j, q[2] + l};
        const double kek = dot(k, epsilon * k);
        if (kek < 1e-12 || kek / (4.0 * alpha) >= cut) continue;
        visit(k, kek, std::exp(-kek / (4.0 * alpha)) / kek);
      }
}

}  // namespace

void DynamicalMatrixBuilder::prepare_ewald() {
  const double bohr = options_.constants.bohr_nm;
  const int n_atoms = crystal_.n_atoms();
  ewald_diagonal_.assign(static_cast<std::size_t>(n_atoms * 9), 0.0);
  for_each_ewald_vector(
      ewald_sphere(crystal_, options_), {0, 0, 0}, true, [&](const Vec3& k, double, double weight) {
        for (int atom = 0; atom < n_atoms; ++atom) {
          Vec3 field{};
          for (int other = 0; other < n_atoms; ++other) {
            const Vec3 r = (1.0 / bohr) * crystal_.cartesian_nm(crystal_.position[atom] -
                                                                crystal_.position[other]);
            field = field + std::cos(dot(k, r)) * apply_transposed(crystal_.born[other], k);
          }
          const Vec3 kz = apply_transposed(crystal_.born[atom], k);
          for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 3; ++b)
              ewald_diagonal_[atom * 9 + a * 3 + b] += weight * kz[a] * field[b];
        }
      });
}

void DynamicalMatrixBuilder::add_ewald(const Vec3& q, bool with_gradient,
                                       DynamicalMatrix& out) const {
  const PhysicalConstants& constants = options_.constants;
  const double bohr = constants.bohr_nm;
  const int n_atoms = crystal_.n_atoms();
  const int nb = crystal_.n_branches();
  const EwaldSphere sphere = ewald_sphere(crystal_, options_);
  const double alpha = sphere.alpha;
  const double volume = crystal_.volume_nm3() / (bohr * bohr * bohr);
  const double unit = 8.0 * units::kPi / volume * constants.rydberg_rad_ps *
                      constants.rydberg_rad_ps / constants.amu_rydberg_mass;
  const auto scale = [&](int atom, int other) {
    return unit / std::sqrt(crystal_.mass_amu[atom] * crystal_.mass_amu[other]);
  };
  for_each_ewald_vector(sphere, q, false, [&](const Vec3& k, double kek, double weight) {
    const Vec3 ek = crystal_.epsilon * k;
    for (int atom = 0; atom < n_atoms; ++atom) {
      const Vec3 kz = apply_transposed(crystal_.born[atom], k);
      for (int other = 0; other < n_atoms; ++other) {
        const Vec3 kz_other = apply_transposed(crystal_.born[other], k);
        const Vec3 r = (1.0 / bohr) *
                       crystal_.cartesian_nm(crystal_.position[atom] - crystal_.position[other]);
        const Complex64 phase = std::polar(scale(atom, other) * weight, dot(k, r));
        for (int a = 0; a < 3; ++a)
          for (int b = 0; b < 3; ++b) {
            const std::size_t at = static_cast<std::size_t>((3 * atom + a) * nb + 3 * other + b);
            const double value = kz[a] * kz_other[b];
            out.d[at] += value * phase;
            if (!with_gradient) continue;
            for (int g = 0; g < 3; ++g) {
              const Complex64 derivative(crystal_.born[atom][g][a] * kz_other[b] +
                                             kz[a] * crystal_.born[other][g][b] -
                                             value * 2.0 * ek[g] * (0.25 / alpha + 1.0 / kek),
                                         value * r[g]);
              out.gradient[g][at] += bohr * derivative * phase;
            }
          }
      }
    }
  });
  for (int atom = 0; atom < n_atoms; ++atom)
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b)
        out.d[(3 * atom + a) * nb + 3 * atom + b] -=
            scale(atom, atom) * ewald_diagonal_[atom * 9 + a * 3 + b];
}

}  // namespace quasi::thermal
