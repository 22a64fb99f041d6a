#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "workers/backend/device/event.cuh"
#include "workers/backend/device/pinned_buffer.cuh"

namespace quasi::gw::cuda {

using quasi::cuda::check;

/// Copies between device memory and pageable host memory through two page-locked buffers. While the
/// device copies one piece, all threads of the host copy the other. A plain copy of pageable memory
/// runs in one thread of the driver.
class StagedCopy {
 public:
  void to_host(const void* from, std::int64_t bytes, void* to, cudaStream_t stream,
               const char* what) {
    run(
        bytes, what,
        [&](int turn, std::int64_t first, std::int64_t count) {
          check(cudaMemcpyAsync(pieces_[turn].memory.data(), static_cast<const char*>(from) + first,
                                static_cast<std::size_t>(count), cudaMemcpyDeviceToHost, stream),
                what);
          pieces_[turn].copied.record(stream, what);
        },
        [&](int turn, std::int64_t first, std::int64_t count) {
          pieces_[turn].copied.synchronize(what);
          copy(static_cast<char*>(to) + first, pieces_[turn].memory.data(), count);
        });
  }
  /// Copies to the device. The copy is complete on return.
  void to_device(const void* from, std::int64_t bytes, void* to, cudaStream_t stream,
                 const char* what) {
    std::int64_t begun = 0;
    run(
        bytes, what,
        [&](int turn, std::int64_t first, std::int64_t count) {
          if (begun++ >= 2) pieces_[turn].copied.synchronize(what);
          copy(pieces_[turn].memory.data(), static_cast<const char*>(from) + first, count);
          check(cudaMemcpyAsync(static_cast<char*>(to) + first, pieces_[turn].memory.data(),
                                static_cast<std::size_t>(count), cudaMemcpyHostToDevice, stream),
                what);
          pieces_[turn].copied.record(stream, what);
        },
        [](int, std::int64_t, std::int64_t) {});
    check(cudaStreamSynchronize(stream), what);
  }

 private:
  static constexpr std::int64_t kPiece_bytes = std::int64_t{32} << 20;

  /// Page-locked memory of one piece, and the end of the latest copy that used it.
  struct Piece {
    explicit Piece(const char* what) : memory(kPiece_bytes, what) {}
    quasi::cuda::PinnedBuffer<char> memory;
    quasi::cuda::Event copied;
  };

  /// Calls begin(piece 0), begin(1), end(0), begin(2), end(1), …
  template <typename Begin, typename End>
  void run(std::int64_t bytes, const char* what, Begin begin, End end) {
    while (pieces_.size() < 2) pieces_.emplace_back(what);
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

  std::vector<Piece> pieces_;  ///< empty before the first copy, two afterwards
};

}  // namespace quasi::gw::cuda
