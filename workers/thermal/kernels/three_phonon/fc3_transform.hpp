#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/physics/q_mesh.hpp"

namespace quasi::thermal {

/// Third-order force constants arranged for the factorised algorithm (docs/theory/thermal.md 11.4).
///
/// For a mode λ = (q, s), contracting slot 1 with e_λ and the cell of slot 3 with e^{−iq·R''}
/// leaves one matrix for each difference ΔR = R' − R''. The Fourier sum over ΔR is
///
///   A_λ(p)_{βγ} = Σ_ΔR e^{ip·ΔR} Σ Φ_{αβγ}/√(mm'm'') e_λ(κα) e^{−iq·R''}.
///
/// The amplitudes of both channels follow by two small products, with q'' = q + p:
///   V+ (q' = p)  = Σ e_λ'(p)_β  A(p)_{βγ} e_λ''(q+p)_γ*,
///   V− (q' = −p) = Σ e_λ'(−p)_β* A(p)_{βγ} e_λ''(q+p)_γ*.
///
/// The ΔR fill a box of lattice coordinates. The sum is done axis by axis as three dense products
/// with phase matrices e^{2πi m ΔR_d/N_d}, which cost less than FFTs because the box is narrow.
struct Fc3Transform {
  int nb = 0;
  std::int64_t n_blocks = 0;
  Index3 low{0, 0, 0};               ///< smallest ΔR along each axis
  Index3 extent{1, 1, 1};            ///< box of ΔR, [c][b][a] with a (axis 1) fastest
  std::vector<int> first_component;  ///< [n_blocks] 3κ
  std::vector<int> target;           ///< [n_blocks] (box index · nb + 3κ') · nb + 3κ''
  std::vector<int> third_cell;       ///< [n_blocks] index into third_cells of R''
  std::vector<Index3> third_cells;   ///< distinct R''
  std::vector<double> tensor;        ///< [n_blocks][27], eV/(Å³ amu^{3/2})
  std::vector<std::complex<double>> phase[3];  ///< [N_d][extent_d] e^{2πi m ΔR_d/N_d}

  std::int64_t box_size() const {
    return static_cast<std::int64_t>(extent[0]) * extent[1] * extent[2];
  }
};

/// Arranges the force constants for a mesh.
/// @param mass_amu  [atom]
Fc3Transform make_fc3_transform(const SparseForceConstants& fc3,
                                const std::vector<double>& mass_amu, const QMesh& mesh);

/// Blocks of force constants sorted by their target.
struct BlockGroups {
  std::vector<int> block;   ///< [n_blocks] in rising order of target
  std::vector<int> first;   ///< [n_groups + 1] where each group begins in `block`
  std::vector<int> target;  ///< [n_groups]
};

/// Groups the blocks that add to one target, each group in the order of the blocks.
BlockGroups group_by_target(const Fc3Transform& transform);

/// Returns exp(2πi m/n) for m = 0 … n − 1, exact at multiples of a quarter of the circle.
std::vector<std::complex<double>> unit_roots(int n);

/// Returns the tensors divided by √(m m' m'') of their atoms, in eV/(Å³ amu^{3/2}).
std::vector<double> mass_scaled_tensors(const SparseForceConstants& constants,
                                        const std::vector<double>& mass_amu);

}  // namespace quasi::thermal
