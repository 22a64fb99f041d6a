#pragma once

#include <cuda_bf16.h>

#include "workers/backend/host_device.hpp"

/// Multiplies one row of a bfloat16 matrix by a vector in single precision, with one warp.
/// See docs/theory/mosfet.md 9.3 for the equations.
namespace quasi::mosfet::cuda {

/// Returns the length of a row, a multiple of eight.
QUASI_HD constexpr int inverse_stride(int nodes) { return (nodes + 7) / 8 * 8; }

/// Returns the index at which element k of the vector is stored. The vector is stored as eight
/// interleaved parts. Neighbouring lanes multiply eight neighbours each and thus read neighbouring
/// words.
QUASI_HD constexpr int interleaved_index(int k, int stride) {
  return (k & 7) * (stride / 8) + (k >> 3);
}

/// @param row    [stride] of the matrix, zero past its end @param parts  the vector, [stride] in
/// the order of interleaved_index @return Σ row·vector, equal on all lanes
__device__ inline double narrow_row_product(const __nv_bfloat16* row, const float* parts,
                                            int stride, int lane) {
  const int eighth = stride / 8;
  const auto* line = reinterpret_cast<const uint4*>(row);
  float even = 0.0f, odd = 0.0f;
  for (int c = lane; c < eighth; c += 32) {
    const uint4 m = __ldcs(line + c);
    const unsigned pairs[4] = {m.x, m.y, m.z, m.w};
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      even = fmaf(__uint_as_float(pairs[pair] << 16), parts[2 * pair * eighth + c], even);
      odd =
          fmaf(__uint_as_float(pairs[pair] & 0xffff0000u), parts[(2 * pair + 1) * eighth + c], odd);
    }
  }
  double sum = static_cast<double>(even) + static_cast<double>(odd);
  for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return sum;
}

}  // namespace quasi::mosfet::cuda
