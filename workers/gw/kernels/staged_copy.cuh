#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "workers/gw/kernels/cuda_libraries.cuh"

namespace quasi::gw::cuda {

/// Copies between device memory and pageable host memory through two page-locked buffers: while the
/// device copies one piece, all threads of the host copy the other. A plain copy of pageable memory
/// runs in one thread of the driver.
class StagedCopy {
 public:
  void to_host(const void* from, std::int64_t bytes, void* to, cudaStream_t stream,
               const char* what) {
    run(
        bytes, what,
        [&](int turn, std::int64_t first, std::int64_t count) {
          check(cudaMemcpyAsync(stage_[turn].data(), static_cast<const char*>(from) + first,
                                static_cast<std::size_t>(count), cudaMemcpyDeviceToHost, stream),
                what);
          check(cudaEventRecord(done_[turn].get(), stream), what);
        },
        [&](int turn, std::int64_t first, std::int64_t count) {
          check(cudaEventSynchronize(done_[turn].get()), what);
          copy(static_cast<char*>(to) + first, stage_[turn].data(), count);
        });
  }
  /// Complete on return.
  void to_device(const void* from, std::int64_t bytes, void* to, cudaStream_t stream,
                 const char* what) {
    std::int64_t begun = 0;
    run(
        bytes, what,
        [&](int turn, std::int64_t first, std::int64_t count) {
          if (begun++ >= 2) check(cudaEventSynchronize(done_[turn].get()), what);
          copy(stage_[turn].data(), static_cast<const char*>(from) + first, count);
          check(cudaMemcpyAsync(static_cast<char*>(to) + first, stage_[turn].data(),
                                static_cast<std::size_t>(count), cudaMemcpyHostToDevice, stream),
                what);
          check(cudaEventRecord(done_[turn].get(), stream), what);
        },
        [](int, std::int64_t, std::int64_t) {});
    check(cudaStreamSynchronize(stream), what);
  }

 private:
  static constexpr std::int64_t kPiece_bytes = std::int64_t{32} << 20;

  /// begin(piece 0), begin(1), end(0), begin(2), end(1), …
  template <typename Begin, typename End>
  void run(std::int64_t bytes, const char* what, Begin begin, End end) {
    if (stage_[0].data() == nullptr)
      for (int turn = 0; turn < 2; ++turn) {
        stage_[turn] = PinnedBuffer<char>(kPiece_bytes, what);
        done_[turn] = make_event();
      }
    const std::int64_t pieces = (bytes + kPiece_bytes - 1) / kPiece_bytes;
    const auto size = [&](std::int64_t piece) {
      return std::min(kPiece_bytes, bytes - piece * kPiece_bytes);
    };
    for (std::int64_t piece = 0; piece <= pieces; ++piece) {
      if (piece < pieces) begin(static_cast<int>(piece % 2), piece * kPiece_bytes, size(piece));
      if (piece > 0)
        end(static_cast<int>((piece - 1) % 2), (piece - 1) * kPiece_bytes, size(piece - 1));
    }
  }

  static void copy(char* to, const char* from, std::int64_t bytes) {
    constexpr std::int64_t kShare = std::int64_t{1} << 20;
#pragma omp parallel for schedule(static)
    for (std::int64_t first = 0; first < bytes; first += kShare)
      std::memcpy(to + first, from + first,
                  static_cast<std::size_t>(std::min(kShare, bytes - first)));
  }

  PinnedBuffer<char> stage_[2];
  Event done_[2];
};

}  // namespace quasi::gw::cuda
