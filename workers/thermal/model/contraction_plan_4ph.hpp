#pragma once

#include <cstdint>
#include <vector>

namespace quasi::thermal {

/// Fourth-order constants Ψ, rearranged for contraction slot by slot
/// (docs/theory/thermal.md 11.4).
///
///   V = Σ_blocks Ψ_αβγδ/√(m m' m'' m''') e(κα) E'(κ'β,R') E''(κ''γ,R'') E'''(κ'''δ,R''')
///
/// with E = e e^{iq·R}, conjugated for created phonons. Momentum conservation turns the four phases
/// into three: q''' = q ± q' ± q'' gives e^{−iq·R'''} · e^{±iq'·(R'−R''')} · e^{±iq''·(R''−R''')}.
/// Cells are therefore counted from the fourth atom, and V is computed in three steps:
///   1. per λ         C[t] = Σ_blocks of t  e^{−iq·R'''} Σ_α e_α Ψ_α···
///   2. per (λ, λ')   A[p] = Σ_t of p  Σ_β E'_β(κ', ΔR') C[t]_β··
///   3. per process   V = Σ_p E''(κ'', ΔR'')ᵀ A[p] e'''(κ''')*
/// with t = (κ' ΔR', κ'' ΔR'', κ''') and p = (κ'' ΔR'', κ''').
/// Only step 3 is needed for each process. Its cost grows with the number of pairs p, not with that
/// of the blocks. With a centre of inversion and eigenvectors that it maps onto themselves
/// (Inversion), V is real, and half of the pairs, counted twice, are sufficient.
struct ContractionPlan4ph {
  int n_atoms = 0;
  int n_blocks = 0;
  int n_triples = 0;  ///< number of triples t
  int n_pairs = 0;    ///< number of pairs p
  /// True if only half of the pairs are stored, and V is the real part of their sum.
  bool real_elements = false;
  bool swapped = false;  ///< inversion also exchanges the cell's two atoms, within the cell
  int n_cells = 0;       ///< distinct lattice vectors ΔR, and −R''' of step 1

  // Step 1, blocks sorted by triple.
  std::vector<double> tensor;  ///< [n_blocks][81]: Ψ/√(m m' m'' m'''), eV/(Å⁴ amu²)
  std::vector<std::int32_t> block_atom;    ///< [n_blocks] κ
  std::vector<std::int32_t> block_cell;    ///< [n_blocks] number of the cell −R'''
  std::vector<std::int32_t> triple_begin;  ///< [n_triples + 1] first block of each triple
  // Step 2, triples sorted by pair.
  std::vector<std::int32_t> triple_atom;  ///< [n_triples] κ'
  std::vector<std::int32_t> triple_cell;  ///< [n_triples] number of ΔR'
  std::vector<std::int32_t> pair_begin;   ///< [n_pairs + 1] first triple of each pair
  // Step 3, pairs sorted by κ''', then κ'', then ΔR''.
  std::vector<std::int32_t> pair_third;   ///< [n_pairs] κ''
  std::vector<std::int32_t> pair_fourth;  ///< [n_pairs] κ'''
  std::vector<std::int32_t> pair_cell;    ///< [n_pairs] number of ΔR''
  std::vector<std::int32_t> cell;         ///< [n_cells][3], lattice coordinates
};

}  // namespace quasi::thermal
