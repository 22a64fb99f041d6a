#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/complex.hpp"
#include "workers/backend/device/device.hpp"
#include "workers/thermal/model/force_constants.hpp"

namespace quasi::thermal {

/// Arrays of the sums of self-consistent phonons (docs/theory/thermal.md 14). A pair is a block
/// (κ, κ', cell) of the second order that Φ₄ corrects. A correlation is a ⟨u u⟩ that Φ₄
/// multiplies.
struct SelfConsistencyProblem {
  int n_atoms = 0;
  Index3 mesh{1, 1, 1};
  std::vector<Complex<double>> roots[3];  ///< [axis][m] exp(2πi m/N_d)
  std::vector<int> point;                 ///< [n_points][3] integer coordinates; the first is Γ
  std::vector<double> weight;             ///< [n_points] mesh points that a point stands for
  std::vector<Complex<double>> bare;      ///< [n_points][3κ+α][3κ'+β] D(q) of Φ₂, (rad/ps)²

  std::vector<int> first_pair;           ///< [n_atoms² + 1] where the pairs of (κ, κ') begin
  std::vector<int> pair_cell;            ///< [n_pairs][3] of the second atom
  std::vector<double> pair_scale;        ///< [n_atoms²] (rad/ps)² for 1 eV/Å²
  std::vector<int> correlated_atom;      ///< [n_correlations][2]
  std::vector<int> correlated_cell;      ///< [n_correlations][3] of the first atom, the second in 0
  std::vector<double> correlated_scale;  ///< [n_correlations] 1/(√(mm') N) in 1/amu

  std::vector<std::int64_t> first_block;  ///< [n_pairs + 1] where the blocks of a pair begin
  std::vector<std::int64_t> block;        ///< [n_blocks] numbers in `fourth`, grouped by pairs
  std::vector<int> block_correlation;     ///< [n_blocks] in the order of `block`
  const SparseForceConstants* fourth = nullptr;  ///< eV/Å⁴

  std::int64_t n_points() const { return static_cast<std::int64_t>(weight.size()); }
  int n_branches() const { return 3 * n_atoms; }
  std::int64_t n_pairs() const { return static_cast<std::int64_t>(pair_cell.size()) / 3; }
  std::int64_t n_correlations() const { return static_cast<std::int64_t>(correlated_scale.size()); }
};

/// Modes of the points of a mesh.
struct MeshModes {
  std::vector<double> omega2;  ///< [n_points][branch] ω² in (rad/ps)², rising
  std::vector<std::complex<double>> gamma_vectors;  ///< [branch][3κ+α] of the first point, Γ
};

/// The steps of one iteration of self-consistent phonons on one device. `load` copies the problem
/// to the device. The problem must live as long as this object. Only one thread may use an object.
/// See docs/theory/thermal.md 14 for the equations.
class SelfConsistencyKernels {
 public:
  virtual ~SelfConsistencyKernels() = default;

  /// @throws OutOfMemory, naming need and remedy, if the arrays do not fit the device.
  virtual void load(const SelfConsistencyProblem& problem) = 0;
  /// Returns the bytes of the arrays on the device, after load().
  virtual std::int64_t memory_bytes() const = 0;
  /// Diagonalises D(q) of Φ₂ and a correction at all points. The eigenvectors stay on the
  /// device.
  /// @param correction_ev_a2  [n_pairs][3][3]
  /// @throws NotConverged if a matrix cannot be diagonalised.
  virtual MeshModes diagonalise(const std::vector<double>& correction_ev_a2) = 0;
  /// Computes ½ Σ Φ₄ ⟨uu⟩ with the eigenvectors of the last diagonalise().
  /// @param amplitude  [n_points][branch] ħ(2n + 1)/2ω in Å² amu
  /// @return [n_pairs][3][3] in eV/Å²
  virtual std::vector<double> contract(const std::vector<double>& amplitude) = 0;
};

/// @throws BackendAbsent if the back end of the device is not in this build.
std::unique_ptr<SelfConsistencyKernels> make_self_consistency_kernels(const Device& device);
std::unique_ptr<SelfConsistencyKernels> make_self_consistency_kernels_cuda(const Device& device);

}  // namespace quasi::thermal
