#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "workers/backend/device/event.cuh"
#include "workers/backend/device/pinned_buffer.cuh"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"

namespace quasi::gw::cuda {

/// Copies between complex numbers of the host and their real parts on a device, through two
/// page-locked buffers. While the device copies one piece, all threads of the host convert the
/// other. The device never has the complex numbers, which halves the memory of a dense
/// diagonalisation (docs/theory/gw.md 12).
class RealCopy {
 public:
  /// @param what  names the numbers in the message of a failure
  RealCopy(cudaStream_t stream, const char* what)
      : stream_(stream), what_(what), pieces_{Piece(what), Piece(what)} {}

  /// Copies the real parts of `count` numbers to the device. The copy is complete on return.
  void to_device(const Cplx* from, std::int64_t count, double* to) {
    for (std::int64_t first = 0, number = 0; first < count; first += kNumbers, ++number) {
      Piece& piece = pieces_[number % 2];
      const std::int64_t size = std::min(kNumbers, count - first);
      if (number >= 2) piece.copied.synchronize(what_);
      double* const buffer = piece.memory.data();
#pragma omp parallel for schedule(static)
      for (std::int64_t i = 0; i < size; ++i) buffer[i] = from[first + i].real();
      copy(to + first, buffer, size, cudaMemcpyHostToDevice, piece);
    }
    quasi::cuda::check(cudaStreamSynchronize(stream_), what_);
  }

  /// Fills `count` complex numbers with real ones of the device, after all work of the stream.
  void to_host(const double* from, std::int64_t count, Cplx* to) {
    const auto begin = [&](std::int64_t first, std::int64_t number) {
      Piece& piece = pieces_[number % 2];
      copy(piece.memory.data(), from + first, std::min(kNumbers, count - first),
           cudaMemcpyDeviceToHost, piece);
    };
    if (count > 0) begin(0, 0);
    for (std::int64_t first = 0, number = 0; first < count; first += kNumbers, ++number) {
      if (first + kNumbers < count) begin(first + kNumbers, number + 1);
      const Piece& piece = pieces_[number % 2];
      piece.copied.synchronize(what_);
      const double* const buffer = piece.memory.data();
      const std::int64_t size = std::min(kNumbers, count - first);
#pragma omp parallel for schedule(static)
      for (std::int64_t i = 0; i < size; ++i) to[first + i] = buffer[i];
    }
  }

 private:
  static constexpr std::int64_t kNumbers = std::int64_t{4} << 20;  // of a piece

  /// Page-locked memory of one piece, and the end of the latest copy that used it.
  struct Piece {
    explicit Piece(const char* what) : memory(kNumbers, what) {}
    quasi::cuda::PinnedBuffer<double> memory;
    quasi::cuda::Event copied;
  };

  void copy(double* to, const double* from, std::int64_t count, cudaMemcpyKind kind, Piece& piece) {
    quasi::cuda::check(
        cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(double), kind, stream_),
        what_);
    piece.copied.record(stream_, what_);
  }

  cudaStream_t stream_;
  const char* what_;
  Piece pieces_[2];
};

}  // namespace quasi::gw::cuda
