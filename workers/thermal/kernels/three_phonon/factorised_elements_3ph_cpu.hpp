#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
#include "workers/thermal/kernels/three_phonon/process_finder_3ph_cpu.hpp"

namespace quasi::thermal {

using Complex64 = std::complex<double>;
using Complex32 = std::complex<float>;

/// Squared matrix elements of three phonons by the factorised algorithm of Fc3Transform, on one CPU
/// thread (docs/theory/thermal.md 11.4). Any number of threads may share an object, each with
/// arrays of its own.
class FactorisedElements3phCpu {
 public:
  /// The arrays of the last Fourier sum and of the products after it, in their precision.
  template <typename Real>
  struct LastAxis {
    std::vector<std::complex<Real>> stage2;    ///< as in Arrays, rounded; unused in FP64
    std::vector<std::complex<Real>> planes;    ///< [k of a group][N2][N1][nb][nb] A_λ(p)
    std::vector<std::complex<Real>> products;  ///< [s''][nb] A·conj(e'') of one point
    std::vector<char> ready;                   ///< [s''] which products are made
  };

  /// The arrays of one thread, reused from mode to mode.
  struct Arrays {
    std::vector<Complex64> box;     ///< [c][b][a][nb][nb]
    std::vector<Complex64> stage1;  ///< [c][b][N1][nb][nb]
    std::vector<Complex64> stage2;  ///< [c][N2][N1][nb][nb]
    LastAxis<double> fp64;
    LastAxis<float> fp32;  ///< with mixed precision
    std::vector<Found3> found;
    std::vector<double> squared;  ///< |V|² of `found`
  };

  FactorisedElements3phCpu() = default;
  /// @param problem  must outlive the object
  explicit FactorisedElements3phCpu(const ThreePhononProblem& problem);

  /// Calls visit(found, |V|²) for every process of a mode, in the order of the finder's find_all.
  /// |V|² is in eV²/(Å⁶ amu³).
  template <typename Visit>
  void for_each_process(const ProcessFinder3phCpu& finder, std::int64_t mode0, Arrays& arrays,
                        const Visit& visit) const {
    if (!finder.rules().active(mode0)) return;
    contract_first_slot(mode0, arrays);
    sum_first_two_axes(arrays);
    const std::int64_t plane = static_cast<std::int64_t>(problem_->mesh.n[0]) * problem_->mesh.n[1];
    for (int k = 0; k < problem_->mesh.n[2]; k += planes_at_once_) {
      const int group = std::min(planes_at_once_, problem_->mesh.n[2] - k);
      sum_last_axis(k, group, arrays);
      for (std::int64_t p = k * plane; p < (k + group) * plane; ++p) {
        arrays.found.clear();
        finder.add_at_point(mode0, p, arrays.found);
        if (arrays.found.empty()) continue;
        square_elements(p, p - k * plane, arrays);
        for (std::size_t i = 0; i < arrays.found.size(); ++i)
          visit(arrays.found[i], arrays.squared[i]);
      }
    }
  }

 private:
  friend class ElementGradient3phCpu;  ///< It transposes these sums.

  /// Views of the factors of the last axis.
  template <typename Real>
  struct LastFactors {
    const std::complex<Real>* e;         ///< [n_modes][nb]
    const std::complex<Real>* reversed;  ///< [n_modes][nb] conj(e(−q))
    const std::complex<Real>* phase;     ///< [N3][extent of ΔR] of the third axis
  };

  /// Returns e^{−iq·R''} of a mode for the distinct R''.
  std::vector<Complex64> third_cell_phases(std::int64_t mode0) const;
  /// Contracts slot 1 with e_λ and the cell of slot 3 with e^{−iq·R''}; sorts the result by ΔR.
  void contract_first_slot(std::int64_t mode0, Arrays& arrays) const;
  /// Fourier sums over the first and the second component of ΔR.
  void sum_first_two_axes(Arrays& arrays) const;
  /// Fourier sum over the third component for `group` planes of the mesh, from plane k on.
  void sum_last_axis(int k, int group, Arrays& arrays) const;
  template <typename Real>
  void sum_last_axis(int k, int group, const std::complex<Real>* stage2,
                     LastAxis<Real>& last) const;
  /// Fills arrays.squared for the processes in arrays.found, all at point p.
  /// @param local  the number of the point in the planes that sum_last_axis made
  void square_elements(std::int64_t p, std::int64_t local, Arrays& arrays) const;
  template <typename Real>
  void square_elements(std::int64_t p, std::int64_t local, LastAxis<Real>& last,
                       Arrays& arrays) const;
  template <typename Real>
  LastFactors<Real> factors() const;

  const ThreePhononProblem* problem_ = nullptr;
  int nb_ = 0;
  int planes_at_once_ = 1;
  Fc3Transform transform_;
  std::vector<Complex64> roots_[3];
  std::vector<Complex64> reversed_;                    ///< [n_modes][nb] conj(e(−q))
  std::vector<Complex32> e32_, reversed32_, phase32_;  ///< with mixed precision
};

}  // namespace quasi::thermal
