#pragma once

#include <cub/cub.cuh>

#include <cstdint>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/pair_tables_4ph_cuda.cuh"

namespace quasi::thermal::cuda4ph {

/// Sorted last pairs of both kinds, for a run of stars of total momenta.
/// See docs/theory/thermal.md 11.3 for the equations.
class PairTableStore {
 public:
  PairTableStore() = default;
  /// Allocates the tables of `batch` stars.
  /// @param outline  tables whose mesh, branches and rules size the arrays
  PairTableStore(const Tables4ph& outline, std::int32_t batch)
      : n_pairs_(outline.n_modes() * outline.n_branches), batch_(batch) {
    const auto entries = static_cast<std::size_t>(n_pairs_ * batch);
    const bool symmetric = outline.rules.broadening == Broadening::kSymmetric;
    for (auto& key : key_) key = cuda::DeviceBuffer<std::uint32_t>(entries, "keys of last pairs");
    for (auto& value : value_) value = cuda::DeviceBuffer<std::int32_t>(entries, "last pairs");
    for (Kind& kind : kind_) {
      kind.bin_begin = {static_cast<std::size_t>(batch) * PairKeys4ph::kClasses * (kBins + 1),
                        "index of last pairs"};
      kind.energy = {entries, "energies of last pairs"};
      kind.spread = {symmetric ? entries : 0, "widths of last pairs"};
      kind.modes = {entries, "last pairs"};
      kind.precedence = {outline.exchange ? entries : 0, "precedence of last pairs"};
    }
    std::size_t bytes = 0;
    sort(nullptr, bytes, static_cast<std::int64_t>(entries), nullptr);
    storage_ = cuda::DeviceBuffer<unsigned char>(bytes, "work space of the sort");
  }

  /// Sets the problem of the calls of make() that follow.
  void use(const Tables4ph& tables, const PairKeys4ph& keys) {
    tables_ = tables;
    keys_ = keys;
    made_first_ = -1;
    made_ = 0;
  }

  /// Returns the bytes of one star.
  static std::int64_t bytes(const Tables4ph& tables) {
    const std::int64_t pairs = tables.n_modes() * tables.n_branches;
    const bool symmetric = tables.rules.broadening == Broadening::kSymmetric;
    return pairs * (16 + 2 * ((symmetric ? 48 : 32) + (tables.exchange ? 8 : 0))) +
           2 * PairKeys4ph::kClasses * (kBins + 1) * 4;
  }

  /// Makes the tables of a run of stars, by PairKind4ph, unless the last call made them.
  void make(std::int32_t first_star, std::int32_t stars, PairTables (&view)[2],
            cudaStream_t stream) {
    for (const auto which : {PairKind4ph::kDifference, PairKind4ph::kSum}) {
      Kind& kind = kind_[static_cast<int>(which)];
      if (first_star != made_first_ || stars != made_) fill(kind, which, first_star, stars, stream);
      view[static_cast<int>(which)] = {kind.bin_begin.data(), columns(kind)};
    }
    made_first_ = first_star;
    made_ = stars;
  }

 private:
  struct Kind {
    cuda::DeviceBuffer<std::int32_t> bin_begin;
    cuda::DeviceBuffer<PairEnergy> energy;
    cuda::DeviceBuffer<PairSpread> spread;
    cuda::DeviceBuffer<PairModes> modes;
    cuda::DeviceBuffer<PairPrecedence> precedence;
  };
  static PairColumns columns(const Kind& kind) {
    return {kind.energy.data(), kind.spread.data(), kind.modes.data(), kind.precedence.data()};
  }
  /// Sorts the keys. Bits of keys below the bins of the index do not matter; equal keys keep the
  /// order of the pairs.
  void sort(void* storage, std::size_t& bytes, std::int64_t entries, cudaStream_t stream) const {
    cuda::check(cub::DeviceRadixSort::SortPairs(storage, bytes, key_[0].data(), key_[1].data(),
                                                value_[0].data(), value_[1].data(), entries,
                                                kBinShift, 32, stream),
                "sorting last pairs");
  }
  /// Keys and numbers of pairs are needed only during sorting, so both kinds share their buffers.
  void fill(Kind& kind, PairKind4ph which, std::int32_t first_star, std::int32_t stars,
            cudaStream_t stream) {
    const std::int64_t entries = n_pairs_ * stars;
    cuda::for_each_index(
        entries,
        MakeKeys{tables_, keys_, which, first_star, n_pairs_, key_[0].data(), value_[0].data()},
        "keys of last pairs", stream);
    std::size_t bytes = storage_.size();
    sort(storage_.data(), bytes, entries, stream);
    cuda::for_each_index(static_cast<std::int64_t>(stars) * PairKeys4ph::kClasses * (kBins + 1),
                         IndexBins{key_[1].data(), n_pairs_, kind.bin_begin.data()},
                         "index of last pairs", stream);
    cuda::for_each_index(
        entries, FillColumns{tables_, which, first_star, value_[1].data(), n_pairs_, columns(kind)},
        "columns of last pairs", stream);
  }

  Tables4ph tables_{};
  PairKeys4ph keys_{};
  std::int64_t n_pairs_ = 0;
  std::int32_t batch_ = 0;
  std::int32_t made_first_ = -1, made_ = 0;
  cuda::DeviceBuffer<std::uint32_t> key_[2];
  cuda::DeviceBuffer<std::int32_t> value_[2];
  cuda::DeviceBuffer<unsigned char> storage_;
  Kind kind_[2];
};

}  // namespace quasi::thermal::cuda4ph
