#pragma once

namespace quasi::thermal::cuda4ph {

/// Sum over the warp, in every lane.
__device__ inline double warp_sum(double value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// Several sums for little more than the price of one: each exchange halves what a lane still
// carries.

/// Four sums over groups of 2·kStep lanes: each of a group's quarters gets the sum of its own v[i].
template <int kStep>
__device__ inline double group_sums_of_four(int lane, const double (&v)[4]) {
  const bool upper = (lane & kStep) != 0;
  double keep = upper ? v[2] : v[0];
  double other = upper ? v[3] : v[1];
  keep += __shfl_xor_sync(0xffffffffu, upper ? v[0] : v[2], kStep);
  other += __shfl_xor_sync(0xffffffffu, upper ? v[1] : v[3], kStep);
  const bool odd = (lane & (kStep / 2)) != 0;
  double value = odd ? other : keep;
  value += __shfl_xor_sync(0xffffffffu, odd ? keep : other, kStep / 2);
  for (int offset = kStep / 4; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

/// Lanes 0, 8, 16 and 24 get the sums of v[0] … v[3].
__device__ inline double warp_sums_of_four(int lane, const double (&v)[4]) {
  return group_sums_of_four<16>(lane, v);
}

/// Lanes 0, 4, 8 and 12 get the sums of v[0] … v[3], lanes 16 to 28 those of w[0] … w[3].
__device__ inline double warp_sums_of_eight(int lane, const double (&v)[4], const double (&w)[4]) {
  const bool upper = (lane & 16) != 0;
  double four[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    four[i] = upper ? w[i] : v[i];
    four[i] += __shfl_xor_sync(0xffffffffu, upper ? v[i] : w[i], 16);
  }
  return group_sums_of_four<8>(lane, four);
}

}  // namespace quasi::thermal::cuda4ph
