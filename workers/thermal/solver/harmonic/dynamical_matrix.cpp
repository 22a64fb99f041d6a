#include <algorithm>
#include <cmath>
#include <map>

#include "workers/backend/error.hpp"
#include "workers/thermal/solver/harmonic/dipole_sum.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal {
namespace {

using Complex64 = std::complex<double>;

constexpr double kSameDistance_nm =
    1e-5;  // images this close are equally near (docs/theory/thermal.md 3.1)

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
    if (n_cells == 0.0) return;  // single pairs, without a supercell
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
  /// Adds the change of the constants by thermal motion. It is no part of the Wigner–Seitz
  /// weights.
  void add_correction() {
    for (const SecondOrder::Image& pair : constants_.correction) {
      Shell& shell = shell_at(pair.cell);
      const int nb = 3 * n_atoms_;
      const double factor =
          pair.weight / std::sqrt(crystal_.mass_amu[pair.atom] * crystal_.mass_amu[pair.other]);
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b)
          shell.matrix[(3 * pair.atom + a) * nb + 3 * pair.other + b] +=
              factor * pair.value[a * 3 + b];
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
  /// Returns the shell of a lattice vector, which is made if it is missing.
  Shell& shell_at(const Index3& cell) {
    Shell& shell = shells_[cell];
    const int nb = 3 * n_atoms_;
    if (shell.matrix.empty())
      shell = {cell, crystal_.lattice_vector_nm(cell),
               std::vector<double>(static_cast<std::size_t>(nb * nb), 0.0),
               std::vector<double>(static_cast<std::size_t>(n_atoms_ * n_atoms_), 0.0)};
    return shell;
  }
  void add(const Pair& pair, const Index3& cell, double weight, const double* block) {
    const auto [atom, other] = pair;
    const int nb = 3 * n_atoms_;
    Shell& shell = shell_at(cell);
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
  const bool polar = options.nonanalytic && has_charges(crystal);
  if (polar) check_dielectric(crystal.epsilon, options);
  const bool in_constants = polar && !options.ewald && !options.whole_dipoles;
  const bool gonze_lee = in_constants && options.dipole_method == DipoleMethod::kGonzeLee;
  mixed_space_ = in_constants && !gonze_lee;
  if (polar && !mixed_space_)
    dipoles_ = std::make_shared<const DipoleSum>(crystal, options.constants,
                                                 gonze_lee ? gonze_lee_damping(crystal, options)
                                                 : options.whole_dipoles
                                                     ? whole_damping(crystal)
                                                     : ewald_damping(crystal, options));
  if (gonze_lee)
    take_shells(without_dipoles(crystal, constants, *dipoles_));
  else
    take_shells(constants);
}

void DynamicalMatrixBuilder::take_shells(const SecondOrder& constants) {
  ShellTable table(crystal_, constants);
  if (constants.images.empty())
    table.add_supercell();
  else
    table.add_images();
  table.check_totals();
  table.add_correction();
  shells_ = table.take();
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
  if (dipoles_) dipoles_->add(q, with_gradient, out);
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

}  // namespace quasi::thermal
