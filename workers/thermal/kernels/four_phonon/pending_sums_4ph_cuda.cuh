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
#include "workers/thermal/kernels/four_phonon/shared_list_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/sum_buffers_4ph_cuda.cuh"

namespace quasi::thermal::cuda4ph {

/// Streams and buffers of the sums over one range of total momenta. Two of them overlap: the next
/// range begins while the last blocks of the present one run and the host reads its sums.
struct PendingSums {
  PendingSums() = default;
  ~PendingSums() {  // waits before the buffers are freed
    cudaStreamSynchronize(tables_first.get());
    cudaStreamSynchronize(work.get());
    cudaStreamSynchronize(finish.get());
  }

  /// Makes the tables, which are small and which `work` needs.
  cuda::Stream tables_first{cuda::StreamPriority::kUrgent};
  cuda::Stream work{cuda::StreamPriority::kNormal};
  /// Adds up the sums of each batch. It is urgent, so that the buffers of the batch are free soon.
  cuda::Stream finish{cuda::StreamPriority::kUrgent};
  cuda::Event made, used, scattered, folded, done;
  PairTableStore tables;
  cuda::DeviceBuffer<double> partial, exchanged, total;
  cuda::DeviceBuffer<unsigned long long> shared;  ///< SharedSums4ph::words, clear between batches
  SharedListBuffers list;
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
    shared = {};
    list = {};
  }
  /// Allocates the buffers for a problem that is cut into batches.
  /// @param n_values  sums of the problem, for one total momentum
  /// @param listed    processes of the lists of a launch
  void allocate(const Tables4ph& t, const Batch4ph& batch, std::int64_t n_values,
                std::int64_t listed) {
    const auto totals = static_cast<std::size_t>(batch.totals);
    const auto points = static_cast<std::size_t>(t.n_points);
    tables = PairTableStore(t, batch.stars);
    partial = {static_cast<std::size_t>(n_values) * totals, "sums by total momentum"};
    exchanged = {
        t.exchange
            ? static_cast<std::size_t>(n_values / kChannels4ph * kExchanged * t.n_branches) * totals
            : 0,
        "sums by λ'"};
    shared = {t.exchange ? 2 * static_cast<std::size_t>(n_values) * totals : 0,
              "sums by λ'' and λ'''"};
    shared.zero("sums by λ'' and λ'''", work.get());
    list = {listed, batch.totals, t.n_temperatures};
    partner = {t.exchange ? points * totals : 0, "partners"};
    partner_point = {2 * points * totals, "partner points"};
    total = {static_cast<std::size_t>(n_values), "sums"};
    if (result.size() != static_cast<std::size_t>(n_values))
      result = {static_cast<std::size_t>(n_values), "sums on the host"};
  }

  /// Adds the partial sums of a batch to the total.
  /// @param totals  total momenta of the batch
  void add_totals(std::int32_t totals, cudaStream_t stream) {
    const auto n_values = static_cast<std::int64_t>(total.size());
    cuda::for_each_index(n_values, AddTotals{partial.data(), n_values, totals, total.data()},
                         "sums by total momentum", stream);
  }
  /// Adds the sums for λ', λ'' and λ''' of a batch to the partial sums, and these to the total.
  /// @param lists        as the launch of the batch had them
  /// @param first_total  place of the first total momentum in the order
  void finish_batch(const Tables4ph& t, const SharedSums4ph& sums, const SharedList& lists,
                    std::int32_t first_total, std::int32_t totals) {
    cudaStream_t stream = finish.get();
    scattered.record(work.get(), "four-phonon scattering");
    scattered.hold(stream, "four-phonon scattering");
    list.sum(t, sums, lists, totals, stream);
    const int size = SumLayout4ph{t.n_temperatures}.size();
    cuda::for_each_index(totals * static_cast<std::int64_t>(total.size()),
                         AddShared4ph{t, sums, partial.data()}, "sums by λ'' and λ'''", stream);
    cuda::for_each_index(static_cast<std::int64_t>(totals) * t.n_points,
                         ExchangePartners4ph{t, first_total, partner.data()}, "partners", stream);
    cuda::for_each_index(
        totals * t.n_rows() * kExchanged * size,
        AddExchanged4ph{t, first_total, size, partner.data(), exchanged.data(), partial.data()},
        "sums by λ'", stream);
    add_totals(totals, stream);
    folded.record(stream, "four-phonon scattering");
    folded.hold(work.get(), "four-phonon scattering");
  }
};

}  // namespace quasi::thermal::cuda4ph
