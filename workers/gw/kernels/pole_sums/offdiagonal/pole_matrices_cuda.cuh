#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/separable_pole.hpp"

namespace quasi::gw::cuda {

/// Energies of one buffer of P. At N_G = 11,075 three energies make 260 columns of 128 × 128 blocks
/// of cuBLAS, two rounds of an H200's 132 multiprocessors.
inline constexpr int kMaxEnergiesPerBuffer = 3;

/// Energies of one band in one buffer.
struct BufferEnergies {
  double x_ry[kMaxEnergiesPerBuffer];  ///< E − E_n
  int count;
  double occupation;  ///< f_n
};

/// Launch shape of a kernel that makes P or Q beside products of so many rows.
///
/// Both the makers and the products want the whole device and take turns if they may. Up to 256
/// rows the maker is a few blocks, each filling the shared memory of its multiprocessor and so
/// keeping products off it: with 128 rows 15 such blocks gave 38.4 TFLOP/s where taking turns
/// gave 34.8. With more rows taking turns is as fast.
struct MakerShape {
  unsigned blocks, threads;
  int shared_bytes;
};
MakerShape maker_shape(std::int64_t rows);
/// Lets the makers use the shared memory of a MakerShape on the current device.
void prepare_makers();

/// Computes P[G][e][G'] = A_GG' F(x_e, ω̃_GG') (docs/theory/gw.md 7). A and ω̃ are read once for
/// all energies.
/// @param p  [n_g][energies.count][n_g]
void make_pole_matrices(const PoleModelOnDevice& model, const PoleRules& rules,
                        const BufferEnergies& energies, double2* p, const MakerShape& shape,
                        cudaStream_t stream);

/// One term of a separable sum (separable_pole.hpp).
struct SeparableTerm {
  SeparableFamily family;
  double node, constant;
};
/// Q[G][G'] = A_GG' b_k(ω̃_GG')/ω̃_GG'. Of a folded model Q contains folded_weight(), and only the
/// elements that products of blocks of `width` columns read are made.
/// @param q  [n_g][n_g]
void make_separable_matrix(const PoleModelOnDevice& model, const SeparableTerm& term,
                           std::int64_t width, double2* q, const MakerShape& shape,
                           cudaStream_t stream);

/// Σ ← S + S† of every energy. [n_energies][n][n]
void add_adjoints(double2* sigma, std::int64_t n_energies, std::int64_t n, cudaStream_t stream);

/// Columns of one block of T = M Q with Q folded. Block i takes the depth up to its own end, so
/// that narrow blocks save flops and wide ones fill the device. Costs are counted in tiles of 128 ×
/// 128, the tiles of the library's kernels.
std::int64_t folded_columns(std::int64_t rows, std::int64_t n_g);

}  // namespace quasi::gw::cuda
