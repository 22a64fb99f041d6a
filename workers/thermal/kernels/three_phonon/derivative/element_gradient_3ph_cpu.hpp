#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/three_phonon/factorised_elements_3ph_cpu.hpp"

/// Begin here: workers/thermal/kernels/three_phonon/derivative differentiates three-phonon matrix
/// elements by the force constants.
namespace quasi::thermal {

/// Gradients Σ_p g_p ∂|V_p|²/∂Φ over the processes p of modes, on one CPU thread
/// (docs/theory/thermal.md 16). The sums of FactorisedElements3phCpu are transposed: with
///
///   K(p)_βγ = Σ 2 g V* e_λ' e_λ''*  over the processes with q'' = q + p,
///
/// the gradient by A_λ(p) is K(p), and Σ_p e^{ip·ΔR} K(p) is that by the matrix of ΔR. Any number
/// of threads may share an object, each with arrays of its own.
class ElementGradient3phCpu {
 public:
  /// The arrays of one thread, reused from mode to mode.
  struct Arrays {
    FactorisedElements3phCpu::Arrays forward;
    std::vector<Complex64> planes;  ///< [k of a group][N2][N1][nb][nb] K
    std::vector<Complex64> stage2;  ///< gradients by the arrays of `forward` with these names
    std::vector<Complex64> stage1;
    std::vector<Complex64> box;
    std::vector<Complex64> product;  ///< [nb] A·conj(e'') of one process
    std::vector<double> factor;      ///< g of forward.found
  };

  /// @param problem  in FP64; must outlive the object
  explicit ElementGradient3phCpu(const ThreePhononProblem& problem);

  /// Adds the gradient of the processes of a mode.
  /// @param factor_of  called with a Found3; returns g
  /// @param gradient   [n_blocks][27] by the constants as they were read, times the unit of g
  template <typename FactorOf>
  void add(const ProcessFinder3phCpu& finder, std::int64_t mode0, const FactorOf& factor_of,
           Arrays& arrays, std::vector<double>& gradient) const {
    if (!finder.rules().active(mode0)) return;
    begin(mode0, arrays);
    const QMesh& mesh = problem_->mesh;
    const std::int64_t plane = static_cast<std::int64_t>(mesh.n[0]) * mesh.n[1];
    for (int k = 0; k < mesh.n[2]; k += elements_.planes_at_once_) {
      const int group = std::min(elements_.planes_at_once_, mesh.n[2] - k);
      begin_planes(k, group, arrays);
      for (std::int64_t p = k * plane; p < (k + group) * plane; ++p) {
        arrays.forward.found.clear();
        finder.add_at_point(mode0, p, arrays.forward.found);
        arrays.factor.clear();
        for (const Found3& found : arrays.forward.found) arrays.factor.push_back(factor_of(found));
        add_point(p, p - k * plane, arrays);
      }
      end_planes(k, group, arrays);
    }
    end(mode0, arrays, gradient);
  }

 private:
  /// Computes the forward sums of a mode up to the last axis and clears their gradients.
  void begin(std::int64_t mode0, Arrays& arrays) const;
  /// Computes A_λ(p) of `group` planes from plane k on, and clears K.
  void begin_planes(int k, int group, Arrays& arrays) const;
  /// Adds the processes in arrays.forward.found, all at point p, to K.
  /// @param local  the number of the point in the planes of begin_planes
  void add_point(std::int64_t p, std::int64_t local, Arrays& arrays) const;
  /// Adds the Fourier sum of K over the planes to the gradient by stage2.
  void end_planes(int k, int group, Arrays& arrays) const;
  /// Sums over the other axes and adds the gradient by the blocks.
  void end(std::int64_t mode0, Arrays& arrays, std::vector<double>& gradient) const;

  const ThreePhononProblem* problem_;
  int nb_;
  FactorisedElements3phCpu elements_;
  std::vector<double> mass_factor_;  ///< [n_blocks] 1/√(m m' m'')
};

}  // namespace quasi::thermal
