#pragma once

#include <algorithm>
#include <cstdint>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/shared_sums_4ph.hpp"

/// Lists of processes for the rows of λ'' and λ''', and their sums (docs/theory/thermal.md 11.5).
/// Blocks that evaluate processes append them. A second kernel reads the list of one total momentum
/// and adds its terms to a table of all rows in shared memory, which takes far less time than
/// sums in global memory.
namespace quasi::thermal::cuda4ph {

/// One process for the rows of λ'' and λ''', without its weights at the temperatures.
struct SharedProcess {
  static constexpr int kNormal = 1, kRecombines = 2;

  std::int32_t mode2, mode3;
  int flags;       ///< kNormal, kRecombines
  int count;       ///< multiplicity·|star| in the units of SharedSums4ph::kCountUnits
  double squared;  ///< |V|²
  double delta;    ///< Σ m δ·|star| of the visit

  __device__ bool normal() const { return (flags & kNormal) != 0; }
  /// Returns the channel in which the row sees the process. @param third  row of λ'''
  __device__ Channel4ph channel(bool third) const {
    if ((flags & kRecombines) == 0) return Channel4ph::kRedistribution;
    return third ? Channel4ph::kSplitting : Channel4ph::kRecombination;
  }
};

/// Processes of one launch on the device, by total momentum.
struct SharedList {
  std::uint32_t* count = nullptr;  ///< [places] processes, of which `capacity` are in the list
  int4* modes = nullptr;           ///< [places][capacity] the integers of SharedProcess
  double2* element = nullptr;      ///< [places][capacity] |V|² and Σ m δ·|star|
  /// [n_temperatures][places][capacity] Σ m W·|star| for the rows of λ'' and λ'''
  double2* weight = nullptr;
  std::uint32_t capacity = 0;  ///< processes of one total momentum; 0: there is no list
  std::int64_t stride = 0;     ///< places·capacity

  __device__ void store(std::int64_t to, const SharedProcess& p) const {
    modes[to] = {p.mode2, p.mode3, p.flags, p.count};
    element[to] = {p.squared, p.delta};
  }
  __device__ SharedProcess load(std::int64_t from) const {
    const int4 m = modes[from];
    const double2 e = element[from];
    return {m.x, m.y, m.z, m.w, e.x, e.y};
  }
};

/// Arguments of sum_list_kernel: rows [first_row, first_row + n_rows) at one temperature.
struct ListSumArguments {
  Tables4ph tables;
  SharedSums4ph shared;
  SharedList list;
  std::int32_t places;
  int temperature;
  std::int32_t first_row, n_rows;

  /// Returns the number of sums of a row and channel. These are the normal and the Umklapp part of
  /// Σ m W|V|², and Σ m W. The first temperature also has Σ m δ and the count.
  QUASI_HD int n_sums() const { return temperature == 0 ? 5 : 3; }
  /// Returns the words of a sum in global memory.
  __device__ __forceinline__ unsigned long long* words(std::int32_t place, int row_channel,
                                                       int sum) const {
    const SumLayout4ph layout{tables.n_temperatures};
    const int value = sum < 3    ? 3 * temperature + sum
                      : sum == 3 ? layout.phase_space()
                                 : layout.six_count();
    const std::int64_t row = (place * tables.n_rows() + first_row) * kChannels4ph + row_channel;
    return shared.words + 2 * (row * layout.size() + value);
  }
};

/// Table of 64-bit sums in shared memory, as halves that shared memory adds by itself.
struct SharedTable {
  const SharedScale4ph* scale;  ///< [n_rows][3 channels]
  unsigned *low, *high;         ///< [n_sums][n_rows][3 channels]

  __device__ __forceinline__ void add(int index, std::int64_t value) const {
    const auto part = static_cast<unsigned>(value);
    const unsigned before = atomicAdd(low + index, part);
    const unsigned carry = before + part < part ? 1u : 0u;
    const unsigned upper = static_cast<unsigned>(value >> 32) + carry;
    if (upper != 0u) atomicAdd(high + index, upper);
  }
};

/// Adds one process to one row of the table. Terms beyond `low` go to global memory.
__device__ __forceinline__ void add_to_table(const ListSumArguments& a, const SharedTable& table,
                                             std::int32_t place, const SharedProcess& p, bool third,
                                             double weight) {
  const Tables4ph& t = a.tables;
  const std::int32_t mode = third ? p.mode3 : p.mode2;
  const std::int32_t row =
      t.exchange->star[mode / t.n_branches] * t.n_branches + mode % t.n_branches - a.first_row;
  if (static_cast<std::uint32_t>(row) >= static_cast<std::uint32_t>(a.n_rows)) return;
  const int row_channel = row * kChannels4ph + static_cast<int>(p.channel(third));
  const int stride = a.n_rows * kChannels4ph;
  const SharedScale4ph scale = table.scale[row_channel];
  const auto add = [&](int sum, double units) {
    const SharedTerm4ph term = SharedTerm4ph::of(units, a.shared.units.low_bits);
    table.add(sum * stride + row_channel, term.low);
    if (term.high != 0)
      atomicAdd(a.words(place, row_channel, sum) + 1, static_cast<unsigned long long>(term.high));
  };
  add(p.normal() ? 0 : 1, weight * p.squared * power_of_two(scale.rate));
  add(2, weight * power_of_two(scale.weighted_phase_space));
  if (a.temperature > 0) return;
  add(3, p.delta * power_of_two(scale.phase_space));
  table.add(4 * stride + row_channel, p.count);
}

constexpr int kListThreads = 1024;

/// Adds the table of a total momentum to the integer sums and clears it.
__device__ __forceinline__ void flush_table(const ListSumArguments& a, const SharedTable& table,
                                            std::int32_t place) {
  const int n = a.n_rows * kChannels4ph, n_sums = a.n_sums();
  for (int i = threadIdx.x; i < n * n_sums; i += kListThreads) {
    const int row_channel = i / n_sums, sum = i % n_sums, at = sum * n + row_channel;
    const unsigned long long value =
        static_cast<unsigned long long>(table.high[at]) << 32 | table.low[at];
    table.low[at] = table.high[at] = 0;
    if (value != 0) atomicAdd(a.words(place, row_channel, sum), value);
  }
}

/// Sums the processes of all total momenta into the integer sums. Each block takes an equal share
/// of the processes, total momentum by total momentum.
static __global__ void __launch_bounds__(kListThreads, 1)
    sum_list_kernel(const ListSumArguments a) {
  extern __shared__ __align__(16) unsigned char list_table[];
  const int n = a.n_rows * kChannels4ph, n_table = n * a.n_sums();
  auto* scales = reinterpret_cast<SharedScale4ph*>(list_table);
  const SharedTable table{scales, reinterpret_cast<unsigned*>(scales + n),
                          reinterpret_cast<unsigned*>(scales + n) + n_table};
  for (int i = threadIdx.x; i < 2 * n_table; i += kListThreads) table.low[i] = 0;
  for (int i = threadIdx.x; i < n; i += kListThreads)
    scales[i] = a.shared.scale[(static_cast<std::int64_t>(a.first_row) * kChannels4ph + i) *
                                   a.tables.n_temperatures +
                               a.temperature];
  unsigned* counts = table.high + n_table;  // [places]
  for (int i = threadIdx.x; i < a.places; i += kListThreads)
    counts[i] = min(a.list.count[i], a.list.capacity);
  __syncthreads();
  std::int64_t all = 0;
  for (std::int32_t place = 0; place < a.places; ++place) all += counts[place];
  std::int64_t left = all * (blockIdx.x + 1) / gridDim.x - all * blockIdx.x / gridDim.x;
  std::int64_t skipped = all * blockIdx.x / gridDim.x;  // processes of the blocks before
  for (std::int32_t place = 0; place < a.places && left > 0; ++place) {
    const std::int64_t here = counts[place], own = min(here - skipped, left);
    if (own <= 0) {  // equal for all threads
      skipped -= here;
      continue;
    }
    __syncthreads();
    const std::int64_t first = static_cast<std::int64_t>(place) * a.list.capacity + skipped;
    for (std::int64_t i = threadIdx.x; i < own; i += kListThreads) {
      const SharedProcess process = a.list.load(first + i);
      const double2 weight = a.list.weight[a.temperature * a.list.stride + first + i];
      add_to_table(a, table, place, process, false, weight.x);
      add_to_table(a, table, place, process, true, weight.y);
    }
    __syncthreads();
    flush_table(a, table, place);
    left -= own;
    skipped = 0;
  }
}

/// Buffers of the lists of one launch.
class SharedListBuffers {
 public:
  SharedListBuffers() = default;
  /// @param processes  that all lists of a launch hold together
  SharedListBuffers(std::int64_t processes, std::int32_t places, int n_temperatures)
      : processes_(processes),
        count_(static_cast<std::size_t>(processes > 0 ? places : 0), "lists of processes"),
        modes_(static_cast<std::size_t>(processes), "lists of processes"),
        element_(static_cast<std::size_t>(processes), "lists of processes"),
        weight_(static_cast<std::size_t>(processes * n_temperatures), "lists of processes") {
    count_.zero("lists of processes");
  }

  static std::int64_t bytes_per_process(int n_temperatures) { return 32 + 16 * n_temperatures; }

  /// Returns the number of processes that the lists of a launch should hold.
  /// @param spare_bytes  memory that is left, of which half may be used
  static std::int64_t most_processes(const Problem4ph& p, std::int32_t totals,
                                     std::int64_t spare_bytes) {
    if (p.star.empty()) return 0;
    const std::int64_t bytes = std::clamp<std::int64_t>(spare_bytes / 2, 0, kMostList_bytes);
    const std::int64_t modes = p.mesh.size() * p.n_branches;
    const std::int64_t candidates = static_cast<std::int64_t>(p.point.size()) * p.n_branches *
                                    p.n_branches * modes * p.n_branches;
    return std::min(bytes / bytes_per_process(static_cast<int>(p.temperatures_k.size())),
                    candidates * totals);
  }

  /// Returns the number of total momenta of a launch whose processes fit in the lists, but enough
  /// to fill the device.
  /// @param processes  SharedScales4ph::processes
  std::int32_t totals_that_fit(double processes, std::int64_t n_rows, std::int32_t most) const {
    if (processes_ == 0) return most;
    const double fit = static_cast<double>(processes_) / std::max(kVisitedShare * processes, 1.0);
    const auto least = static_cast<double>((kLeastBlocks + n_rows - 1) / n_rows);
    return static_cast<std::int32_t>(std::min(std::max(fit, least), static_cast<double>(most)));
  }

  /// Returns the lists of a launch of some total momenta.
  SharedList view(std::int32_t places) const {
    if (processes_ == 0) return {};
    return {count_.data(),
            modes_.data(),
            element_.data(),
            weight_.data(),
            static_cast<std::uint32_t>(processes_ / places),
            processes_ / places * places};
  }

  /// Adds the lists of a launch to the integer sums and clears them.
  /// @param list  as the launch had it
  void sum(const Tables4ph& tables, const SharedSums4ph& shared, const SharedList& list,
           std::int32_t places, cudaStream_t stream) const {
    if (list.capacity == 0) return;
    int device = 0, multiprocessors = 1;
    cuda::check(cudaGetDevice(&device), "lists of processes");
    cuda::check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
                "lists of processes");
    const int counts_bytes = places * static_cast<int>(sizeof(unsigned));
    cuda::check(cudaFuncSetAttribute(sum_list_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     kMostBytes + counts_bytes),
                "lists of processes");
    for (int t = 0; t < tables.n_temperatures; ++t) {
      ListSumArguments a{tables, shared, list, places, t, 0, 0};
      const int bytes_of_row =
          kChannels4ph * (8 * a.n_sums() + static_cast<int>(sizeof(SharedScale4ph)));
      const auto n_rows = static_cast<std::int32_t>(tables.n_rows());
      const std::int32_t rows_of_pass = kMostBytes / bytes_of_row;
      const std::int32_t passes = (n_rows + rows_of_pass - 1) / rows_of_pass;
      for (std::int32_t p = 0; p < passes; ++p) {
        a.first_row = static_cast<std::int32_t>(static_cast<std::int64_t>(n_rows) * p / passes);
        a.n_rows = static_cast<std::int32_t>(static_cast<std::int64_t>(n_rows) * (p + 1) / passes) -
                   a.first_row;
        sum_list_kernel<<<static_cast<unsigned>(multiprocessors), kListThreads,
                          a.n_rows * bytes_of_row + counts_bytes, stream>>>(a);
        cuda::check_launch("lists of processes");
      }
    }
    cuda::check(cudaMemsetAsync(count_.data(), 0, count_.size() * sizeof(std::uint32_t), stream),
                "lists of processes");
  }

 private:
  static constexpr std::int64_t kMostList_bytes = std::int64_t{1} << 30;
  /// Bound on the share of the processes of all rows that one total momentum visits. Those that do
  /// not fit in the list are summed one at a time.
  static constexpr double kVisitedShare = 0.35;
  static constexpr std::int64_t kLeastBlocks = 4096;  ///< of a launch
  static constexpr int kMostBytes = 200 << 10;        ///< of the table in shared memory

  std::int64_t processes_ = 0;
  cuda::DeviceBuffer<std::uint32_t> count_;
  cuda::DeviceBuffer<int4> modes_;
  cuda::DeviceBuffer<double2> element_, weight_;
};

}  // namespace quasi::thermal::cuda4ph
