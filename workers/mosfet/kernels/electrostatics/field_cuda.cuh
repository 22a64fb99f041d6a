#pragma once

#include <cooperative_groups.h>

#include "workers/mosfet/kernels/electrostatics/field_column.cuh"

namespace quasi::mosfet::cuda {

/// Sets V to the given value at the nodes that have one.
__global__ void fix_potential_kernel(DeviceProblem p, const double* fixed_v, double* potential) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < p.nx * p.nz && p.fixed[at]) potential[at] = fixed_v[at];
}

/// Solves Schrödinger and Poisson with the ϱ of the last stage (docs/theory/mosfet.md 9.3), as one
/// cooperative kernel of blocks (column, family).
///
/// The prologue forms ϱ and the predicted V. Each chord step has two grid barriers. First come
/// levels (warm twisted Rayleigh quotients [dhillon2006]) and density of each column. Then every
/// block forms the whole residual and its own rows of M⁻¹P. The inverse is bfloat16 and its product
/// single precision. It only steers an iteration whose residual is in double precision, and a
/// frozen matrix has an error of 0.4 % anyway.
__global__ void __launch_bounds__(kFieldThreads, 1)
    field_kernel(const __grid_constant__ DeviceProblem p, const __grid_constant__ DevicePoint q,
                 int stage) {
  PointClock* clock = q.clock;
  if (!clock->active) return;
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  extern __shared__ double shared[];
  __shared__ int lost;
  const FieldColumn column(p, q, shared, &lost);
  column.sum_sheet_density();
  if (p.frozen) return;
  column.predict(stage);
  grid.sync();

  int iteration = 0;
  bool converged = false;
  double worst = 0.0;
  while (iteration < kMaxChordSteps) {
    ++iteration;
    column.solve_levels();
    column.form_density();
    grid.sync();
    worst = column.form_residual();
    // The two slots alternate, because a fast block may enter the next step before a slow one has
    // read the slot.
    double* slot = q.block_max + (iteration & 1) * gridDim.x;
    column.form_step(slot);
    grid.sync();
    const double all = column.largest_step(slot);
    if (!(all < kHopelessChordStep_v)) break;
    column.take_step(all > kLargestChordStep_v ? kLargestChordStep_v / all : 1.0);
    converged = all <= p.tol_v && worst <= kChordResidual;
    if (converged) {
      column.follow_last_step();
      break;
    }
    grid.sync();
  }
  __syncthreads();
  column.store(stage);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    clock->chord_iterations += iteration;
    clock->residual = worst;
    if (!converged) clock->failed = 1;
  }
}

}  // namespace quasi::mosfet::cuda
