#pragma once

#include <cstddef>
#include <cstdint>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/event.cuh"
#include "workers/backend/device/pinned_buffer.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/thermal/kernels/four_phonon/batch_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/pair_table_store_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/partner_point_4ph_cuda.cuh"

namespace quasi::thermal::cuda4ph {

/// Streams and buffers of the sums over one range of total momenta. Two of them overlap: the next
/// range begins while the last blocks of the present one run and the host reads its sums.
struct PendingSums {
  PendingSums() = default;
  ~PendingSums() {  // waits before the buffers are freed
    cudaStreamSynchronize(tables_first.get());
    cudaStreamSynchronize(work.get());
  }

  /// Makes the tables, which are small and which `work` needs.
  cuda::Stream tables_first{cuda::StreamPriority::kUrgent};
  cuda::Stream work{cuda::StreamPriority::kNormal};
  cuda::Event made, used, done;
  PairTableStore tables;
  cuda::DeviceBuffer<double> partial, exchanged, total;
  cuda::DeviceBuffer<std::int32_t> partner;
  cuda::DeviceBuffer<PartnerPoint4ph> partner_point;
  cuda::PinnedBuffer<double> result;
  std::int32_t first = 0, last = 0;  ///< range that is being summed; empty: none
  /// Frees the buffers and forgets the range.
  void release() {
    first = last = 0;
    tables = {};
    for (cuda::DeviceBuffer<double>* buffer : {&partial, &exchanged, &total})
      *buffer = cuda::DeviceBuffer<double>();
  }
  /// Allocates the buffers for a problem that is cut into batches.
  /// @param n_values  sums of the problem, for one total momentum
  void allocate(const Tables4ph& t, const Batch4ph& batch, std::int64_t n_values) {
    const auto totals = static_cast<std::size_t>(batch.totals);
    const auto points = static_cast<std::size_t>(t.n_points);
    tables = PairTableStore(t, batch.stars);
    partial = {static_cast<std::size_t>(n_values) * totals, "sums by total momentum"};
    exchanged = {
        t.exchange
            ? static_cast<std::size_t>(n_values / kChannels4ph * kExchanged * t.n_branches) * totals
            : 0,
        "sums by λ'"};
    partner = {t.exchange ? points * totals : 0, "partners"};
    partner_point = {2 * points * totals, "partner points"};
    total = {static_cast<std::size_t>(n_values), "sums"};
    if (result.size() != static_cast<std::size_t>(n_values))
      result = {static_cast<std::size_t>(n_values), "sums on the host"};
  }
};

}  // namespace quasi::thermal::cuda4ph
