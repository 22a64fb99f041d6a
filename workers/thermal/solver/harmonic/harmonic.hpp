#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/model/harmonic_options.hpp"
#include "workers/thermal/model/modes.hpp"
#include "workers/thermal/model/symmetry.hpp"

namespace quasi::thermal {

/// Begin here: diagonalises the dynamical matrices of the mesh. Velocities follow from the
/// Hellmann–Feynman theorem and are projected on the symmetry of their point
/// (docs/theory/thermal.md 3). @throws InvalidInput for imaginary modes (unless
/// options.allow_imaginary) and for frequencies that break the crystal's symmetry (unless
/// options.allow_inconsistent_position).
Modes solve_harmonic(const Crystal& crystal, const SecondOrder& constants, const Symmetry& symmetry,
                     const HarmonicOptions& options, Progress& progress);

/// The dynamical matrix and its three q-derivatives at any fractional q; Hermitian, row-major
/// [nb][nb] each. Units (rad/ps)² and (rad/ps)² nm.
struct DynamicalMatrix {
  std::vector<std::complex<double>> d;
  std::vector<std::complex<double>> gradient[3];
};

class DipoleSum;

/// Prepares the weights of docs/theory/thermal.md 3.1 once and evaluates D(q) anywhere. It keeps a
/// reference to the crystal.
class DynamicalMatrixBuilder {
 public:
  DynamicalMatrixBuilder(const Crystal& crystal, const SecondOrder& constants,
                         const HarmonicOptions& options);
  DynamicalMatrix at(const Vec3& q_fractional, bool with_gradient) const;

 private:
  /// Contributions of all pairs of atoms at one lattice vector R.
  struct Shell {
    Index3 cell;
    Vec3 vector_nm;
    std::vector<double> matrix;  ///< [nb][nb] w C / √(m m'), (rad/ps)²
    std::vector<double> weight;  ///< [atom][other] w_κκ'(R)
  };
  class ShellTable;
  /// Σ_R w_κκ'(R) e^{−iq·R} over the number of cells, and its gradient in nm, [atom][other].
  struct StructureFactor {
    std::vector<std::complex<double>> value;
    std::vector<std::complex<double>> slope[3];
  };
  StructureFactor structure_factor(const Vec3& q) const;
  /// Returns the vectors q + G of least length, in 1/nm. There are several on the faces of the
  /// Brillouin zone.
  std::vector<Vec3> shortest_images(const Vec3& q) const;
  /// Returns the image that FourPhonon and ShengBTE use if several are equally short.
  Vec3 first_shortest_image(const Vec3& q) const;
  /// Adds the non-analytic term of mixed space [wang2010], the mean over `shortest_images`. A
  /// single image would break the crystal's symmetry if several are equally short
  /// (docs/theory/thermal.md 3.4).
  void add_mixed_space(const Vec3& q, bool with_gradient, DynamicalMatrix& out) const;
  /// Adds `share` of the term of one image `k`, in 1/nm.
  void add_mixed_space_image(const Vec3& k, double share, const StructureFactor& factor,
                             bool with_gradient, DynamicalMatrix& out) const;
  void take_shells(const SecondOrder& constants);

  const Crystal& crystal_;
  HarmonicOptions options_;
  double n_cells_;
  std::vector<Shell> shells_;
  bool mixed_space_ = false;                  ///< adds the non-analytic term of mixed space
  std::shared_ptr<const DipoleSum> dipoles_;  ///< of Ewald sums and of Gonze–Lee
};

/// Returns the steps b_i/N_i of a mesh, as rows in 1/nm.
Mat3 mesh_steps_per_nm(const Crystal& crystal, const QMesh& mesh);

/// Computes spread_rad_ps from the velocities: p of physics/broadening.hpp for each kind of width.
/// The function is public so that tests can set velocities.
void set_spreads(const Crystal& crystal, const Symmetry& symmetry, Broadening broadening,
                 Modes& modes);

/// Returns ⟨|p|²⟩ of the modes that take part in scattering, (rad/ps)²; 0 if none does.
double mean_square_spread(const Modes& modes, double omega_max_rad_ps);
/// Returns the width sb √(⟨|p|²⟩/3), the mean width of pairs of modes with independent p.
double typical_sigma_rad_ps(const Modes& modes, double scale_broad, double omega_max_rad_ps);

}  // namespace quasi::thermal
