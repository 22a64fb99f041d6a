#pragma once

#include <vector>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cuda.cuh"

namespace quasi::gw::cuda {

/// Returns F v̄ of an empty band at x = E − E_n on one device, Bohr³ Ry, [n_g][n_g]
/// (docs/theory/gw.md 9.4).
quasi::cuda::DeviceBuffer<double2> empty_band_matrix_cuda(const PoleModelOnDevice& model,
                                                          double x_ry, const CudaContext& context);

/// Holds a range of rows of a change.
struct RowsOfChange {
  ElementRows rows;
  ChangeOnDevice change = {};  ///< empty for the sums of the model itself
};
/// Returns w(D) of all D of the box, computed on one device (docs/theory/gw.md 9.3, 9.4). It
/// belongs to a change (LoadedPoleChanges::sums_by_difference) or to the model itself
/// (LoadedPoleModel::sums_by_difference). A thread block sums all elements of one D in fixed order,
/// so that repeated calls have equal bits.
/// @param of  rows that are summed; rows of a folded model stand for their mirror images, too
std::vector<Cplx> sums_by_difference_cuda(const PoleModelOnDevice& model, const RowsOfChange& of,
                                          double x_ry, const DifferenceBox& box,
                                          const CudaContext& context);

}  // namespace quasi::gw::cuda
