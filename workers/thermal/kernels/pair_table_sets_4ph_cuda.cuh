#pragma once

#include <cub/cub.cuh>

#include <cstdint>

#include "workers/backend/device_buffer.cuh"
#include "workers/backend/launch_cuda.cuh"
#include "workers/thermal/kernels/pair_tables_4ph_cuda.cuh"

namespace quasi::thermal::cuda4ph {

/// Waits for the default stream, which waits for it.
struct Stream {
  Stream() { cuda::check(cudaStreamCreate(&stream), "stream"); }
  ~Stream() { cudaStreamDestroy(stream); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t stream = nullptr;
};

/// The sorted last pairs of two batches of total momenta: one is read while the other is made.
///
/// Order between streams is that of the default one: what is issued to it waits for all streams, and they for it.
class PairTableSets {
 public:
  PairTableSets() = default;
  PairTableSets(const Tables4ph& tables, const PairKeys4ph& keys, std::int32_t batch)
      : tables_(tables), keys_(keys), n_pairs_(tables.n_modes() * tables.n_branches), batch_(batch) {
    const auto entries = static_cast<std::size_t>(n_pairs_ * batch);
    const bool symmetric = tables.rules.broadening == Broadening::kSymmetric;
    for (auto& key : key_) key = cuda::DeviceBuffer<std::uint32_t>(entries, "keys of last pairs");
    value_ = cuda::DeviceBuffer<std::int32_t>(entries, "last pairs");
    for (Set& set : set_)
      for (Kind& kind : set.kind) {
        kind.pair = {entries, "last pairs"};
        kind.bin_begin = {static_cast<std::size_t>(batch) * PairKeys4ph::kClasses * (kBins + 1), "index of last pairs"};
        kind.third = {static_cast<std::size_t>(batch * tables.mesh.size()), "points q'''"};
        kind.energy = {entries, "energies of last pairs"};
        kind.square = {entries, "widths of last pairs"};
        kind.sum = {symmetric ? 3 * entries : 0, "widths of last pairs"};
      }
    std::size_t bytes = 0;
    sort(nullptr, bytes, set_[0].kind[0], static_cast<std::int64_t>(entries), nullptr);
    storage_ = cuda::DeviceBuffer<unsigned char>(bytes, "work space of the sort");
  }

  /// Bytes of one total momentum.
  static std::int64_t bytes(const Tables4ph& tables) {
    const std::int64_t pairs = tables.n_modes() * tables.n_branches;
    const bool symmetric = tables.rules.broadening == Broadening::kSymmetric;
    return pairs * (12 + 4 * (symmetric ? 44 : 20)) + 4 * (PairKeys4ph::kClasses * (kBins + 1) * 4 + tables.mesh.size() * 4);
  }

  /// Makes the tables of a batch, unless they are there, on a stream.
  void make(std::int32_t first_total, std::int32_t places, cudaStream_t stream) {
    if (find(first_total, places) != nullptr) return;
    Set& set = set_[next_];
    next_ ^= 1;
    set.first_total = first_total;
    set.places = places;
    for (const auto kind : {PairKind4ph::kDifference, PairKind4ph::kSum}) fill(set, kind, stream);
  }

  /// By PairKind4ph; made before.
  void views(std::int32_t first_total, std::int32_t places, PairTables (&view)[2]) const {
    const Set& set = *find(first_total, places);
    for (int k = 0; k < 2; ++k)
      view[k] = {set.kind[k].pair.data(), set.kind[k].bin_begin.data(), set.kind[k].third.data(), columns(set.kind[k])};
  }

 private:
  struct Kind {
    cuda::DeviceBuffer<std::int32_t> pair, bin_begin, third;
    cuda::DeviceBuffer<double> energy, square, sum;
  };
  struct Set {
    std::int32_t first_total = 0;
    std::int32_t places = 0;
    Kind kind[2];
  };

  const Set* find(std::int32_t first_total, std::int32_t places) const {
    for (const Set& set : set_)
      if (set.first_total == first_total && set.places == places) return &set;
    return nullptr;
  }
  PairColumns columns(const Kind& kind) const {
    return {kind.energy.data(), kind.square.data(), kind.sum.data(), n_pairs_ * batch_};
  }
  /// Keys below the bins of the index do not matter; equal ones stay in the order of the pairs.
  void sort(void* storage, std::size_t& bytes, const Kind& to, std::int64_t entries, cudaStream_t stream) const {
    cuda::check(cub::DeviceRadixSort::SortPairs(storage, bytes, key_[0].data(), key_[1].data(), value_.data(), to.pair.data(),
                                                entries, kBinShift, static_cast<int>(8 * sizeof(std::uint32_t)), stream),
                "sorting last pairs");
  }
  /// Keys are of use only while sorting: all tables share their buffers.
  void fill(Set& set, PairKind4ph which, cudaStream_t stream) {
    Kind& kind = set.kind[static_cast<int>(which)];
    const std::int64_t entries = n_pairs_ * set.places;
    cuda::for_each_index(entries, MakeKeys{tables_, keys_, which, set.first_total, n_pairs_, key_[0].data(), value_.data()},
                         "keys of last pairs", stream);
    std::size_t bytes = storage_.size();
    sort(storage_.data(), bytes, kind, entries, stream);
    cuda::for_each_index(static_cast<std::int64_t>(set.places) * PairKeys4ph::kClasses * (kBins + 1),
                         IndexBins{key_[1].data(), n_pairs_, kind.bin_begin.data()}, "index of last pairs", stream);
    cuda::for_each_index(set.places * tables_.mesh.size(),
                         ThirdPoints{tables_.mesh, set.first_total, which == PairKind4ph::kSum ? -1 : 1, kind.third.data()},
                         "points q'''", stream);
    cuda::for_each_index(entries, FillColumns{tables_, which, kind.pair.data(), kind.third.data(), n_pairs_, columns(kind)},
                         "columns of last pairs", stream);
  }

  Tables4ph tables_;
  PairKeys4ph keys_{};
  std::int64_t n_pairs_ = 0;
  std::int32_t batch_ = 0;
  cuda::DeviceBuffer<std::uint32_t> key_[2];
  cuda::DeviceBuffer<std::int32_t> value_;
  cuda::DeviceBuffer<unsigned char> storage_;
  Set set_[2];
  int next_ = 0;
};

}  // namespace quasi::thermal::cuda4ph
