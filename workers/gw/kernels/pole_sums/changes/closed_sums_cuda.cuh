#pragma once

#include <vector>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cuda.cuh"

namespace quasi::gw::cuda {

/// Returns F v̄ of an empty band at x, [n_g][n_g]. See docs/theory/gw.md 9.4 for the equations.
quasi::cuda::DeviceBuffer<double2> empty_band_matrix_cuda(const PoleModelOnDevice& model,
                                                          double x_ry, const CudaContext& context);

/// Some rows of a change.
struct RowsOfChange {
  ElementRows rows;
  ChangeOnDevice change = {};  ///< empty: the sums are those of the model itself
};
/// Sums by difference on one device: of a change (LoadedPoleChanges::sums_by_difference), or of the
/// model itself (LoadedPoleModel::sums_by_difference). A thread block sums all elements of one D in
/// fixed order: same bits every time. See docs/theory/gw.md 9.3, 9.4 for the equations.
/// @param of  rows that are summed; those of a folded model stand for their mirror images, too
std::vector<Cplx> sums_by_difference_cuda(const PoleModelOnDevice& model, const RowsOfChange& of,
                                          double x_ry, const DifferenceBox& box,
                                          const CudaContext& context);

}  // namespace quasi::gw::cuda
