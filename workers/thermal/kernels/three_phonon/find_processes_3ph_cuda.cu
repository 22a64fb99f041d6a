#include "workers/thermal/kernels/three_phonon/find_processes_3ph_cuda.cuh"

#include <cub/cub.cuh>

namespace quasi::thermal::cuda3ph {
namespace {

/// One block counts the processes of one row.
/// @param counts  [rows][absorption, emission]
template <bool kTetrahedra>
__global__ void __launch_bounds__(kThreads)
    count_kernel(Tables3 t, const std::int64_t* rows, std::int64_t* counts) {
  const std::int64_t mode0 = t.mode_of_row(rows[blockIdx.x]);
  const ModeData zero = mode_data(t.rules, mode0);
  int mine[2] = {0, 0};
  if (t.rules.active(mode0))
    for (std::int64_t p = threadIdx.x; p < t.mesh.size(); p += kThreads)
      for_each_process_at<kTetrahedra>(
          t, zero, mode0, p, [&](const Process3& process) { ++mine[process.emission() ? 1 : 0]; });
  using Reduce = cub::BlockReduce<int, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  for (int c = 0; c < 2; ++c) {
    const int sum = Reduce(storage).Sum(mine[c]);
    if (threadIdx.x == 0) counts[2 * blockIdx.x + c] = sum;
    __syncthreads();
  }
}

/// One block lists the processes of one row. Each thread counts those of its point, a prefix sum
/// gives their place, and the thread finds them again to write them.
template <bool kTetrahedra>
__global__ void __launch_bounds__(kThreads) fill_kernel(Tables3 t, RowLists3 lists) {
  const std::int64_t row = lists.first_row + blockIdx.x;
  const std::int64_t mode0 = t.mode_of_row(row);
  if (!t.rules.active(mode0)) return;
  const ModeData zero = mode_data(t.rules, mode0);
  using Scan = cub::BlockScan<int, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  std::int64_t at = lists.begin(row);
  for (std::int64_t start = 0; start < t.mesh.size(); start += kThreads) {
    const std::int64_t p = start + threadIdx.x;
    int mine = 0;
    if (p < t.mesh.size())
      for_each_process_at<kTetrahedra>(t, zero, mode0, p, [&](const Process3&) { ++mine; });
    int before;
    int total;
    Scan(storage).ExclusiveSum(mine, before, total);
    __syncthreads();
    if (mine > 0) {
      Process3* out = lists.processes + at + before;
      for_each_process_at<kTetrahedra>(t, zero, mode0, p,
                                       [&](const Process3& process) { *out++ = process; });
    }
    at += total;
  }
}

}  // namespace

std::vector<std::int64_t> count_processes(const Tables3& tables,
                                          const std::vector<std::int64_t>& rows) {
  if (rows.empty()) return {};
  const cuda::DeviceBuffer<std::int64_t> device_rows(rows, "rows to count");
  cuda::DeviceBuffer<std::int64_t> counts(rows.size() * 2, "counts of processes");
  const auto kernel = tables.has_tetrahedra() ? count_kernel<true> : count_kernel<false>;
  kernel<<<static_cast<unsigned>(rows.size()), kThreads>>>(tables, device_rows.data(),
                                                           counts.data());
  cuda::check_launch("counting processes");
  return cuda::to_host(counts, "counting processes");
}

void list_processes(const Tables3& tables, const RowLists3& lists, std::int64_t n_rows) {
  const auto kernel = tables.has_tetrahedra() ? fill_kernel<true> : fill_kernel<false>;
  kernel<<<static_cast<unsigned>(n_rows), kThreads>>>(tables, lists);
  cuda::check_launch("listing processes");
}

}  // namespace quasi::thermal::cuda3ph
