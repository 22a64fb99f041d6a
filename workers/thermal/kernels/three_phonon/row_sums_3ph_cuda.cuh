#pragma once

#include <cub/cub.cuh>

#include <cstdint>

#include "workers/thermal/kernels/three_phonon/find_processes_3ph_cuda.cuh"

namespace quasi::thermal::cuda3ph {

constexpr int kTemperaturesAtOnce = 4;  ///< the sums of so many temperatures stay in registers

/// The temperatures that one launch sums.
struct TemperatureRange {
  int first;
  int count;  ///< at most kTemperaturesAtOnce
};

/// Views of the sums of all rows.
struct RowOutputs3 {
  std::int64_t n_rows;
  double* absorption;  ///< [nT][n_rows]
  double* emission;
  double* normal_absorption;
  double* normal_emission;
  double* weighted_absorption;
  double* weighted_emission;
  double* phase_space_absorption;  ///< [n_rows]
  double* phase_space_emission;
};

/// The rates of all rows on the device in use, zero at first.
class DeviceRates3 {
 public:
  DeviceRates3(int n_temperatures, std::int64_t n_rows);
  RowOutputs3 outputs() const;
  /// Copies the rates to the arrays of `rates`.
  void copy_to(ThreePhononRates& rates) const;

 private:
  std::int64_t n_rows_;
  std::int64_t per_array_;  ///< values of an array [nT][n_rows]
  cuda::DeviceBuffer<double> values_;
};

/// The sums of one thread over some processes of a row, at some temperatures.
/// See docs/theory/thermal.md 6 for the equations.
struct ThreadSums3 {
  RowSums3 at[kTemperaturesAtOnce];
  double phase_space[2] = {0.0, 0.0};

  /// Adds a process that has its weight. @param delta  its δ(Δω)
  __device__ void add(const Tables3& t, const TemperatureRange& temperatures, std::int64_t n_modes,
                      std::int64_t mode0, const Process3& process, double delta) {
    const bool emission = process.emission();
    const std::int64_t m1 = process.partner();
    const std::int64_t m2 = process.second;
    const double phase_space_ps4 =
        delta / (t.rules.omega_rad_ps[mode0] * t.rules.omega_rad_ps[m1] * t.rules.omega_rad_ps[m2]);
    const bool normal =
        is_normal_3ph(process.channel(), t.first_zone + 3 * (mode0 / t.nb),
                      t.first_zone + 3 * (m1 / t.nb), t.first_zone + 3 * (m2 / t.nb));
    phase_space[emission ? 1 : 0] += delta;
#pragma unroll
    for (int k = 0; k < kTemperaturesAtOnce; ++k)
      if (k < temperatures.count) {
        const double* n = t.occupation + (temperatures.first + k) * n_modes;
        add_process(at[k], emission, normal, occupation_factor_3ph(emission, n[m1], n[m2]),
                    process.weight_per_ps, phase_space_ps4);
      }
  }

  /// Adds the sums of the threads of a block in a fixed tree and writes those of the row.
  __device__ void finish(const Tables3& t, const TemperatureRange& temperatures, std::int64_t row,
                         const RowOutputs3& out) {
    using Reduce = cub::BlockReduce<double, kThreads>;
    __shared__ typename Reduce::TempStorage storage;
    const auto block_sum = [&](double x) {
      const double sum = Reduce(storage).Sum(x);
      __syncthreads();
      return sum;
    };
    const double per_point = 1.0 / static_cast<double>(t.mesh.size());
#pragma unroll
    for (int k = 0; k < kTemperaturesAtOnce; ++k) {
      if (k >= temperatures.count) break;
      const double absorption = block_sum(at[k].absorption);
      const double emission = block_sum(at[k].emission);
      const double normal_absorption = block_sum(at[k].normal_absorption);
      const double normal_emission = block_sum(at[k].normal_emission);
      const double weighted_absorption = block_sum(at[k].weighted_absorption);
      const double weighted_emission = block_sum(at[k].weighted_emission);
      if (threadIdx.x == 0) {
        const std::int64_t to = (temperatures.first + k) * out.n_rows + row;
        out.absorption[to] = absorption;
        out.emission[to] = 0.5 * emission;
        out.normal_absorption[to] = normal_absorption;
        out.normal_emission[to] = 0.5 * normal_emission;
        out.weighted_absorption[to] = per_point * weighted_absorption;
        out.weighted_emission[to] = 0.5 * per_point * weighted_emission;
      }
    }
    const double absorption = block_sum(phase_space[0]);
    const double emission = block_sum(phase_space[1]);
    if (threadIdx.x == 0) {
      out.phase_space_absorption[row] = absorption;
      out.phase_space_emission[row] = emission;
    }
  }
};

/// Calls launch(range) for all temperatures of a problem, a few at a time.
template <typename Launch>
void for_each_temperature_range(const DeviceProblem3& problem, const Launch& launch) {
  for (int t = 0; t < problem.n_temperatures(); t += kTemperaturesAtOnce)
    launch(TemperatureRange{t, std::min(kTemperaturesAtOnce, problem.n_temperatures() - t)});
}

/// Sums the rates of n_rows rows from their lists, at all temperatures of the problem.
void sum_rows(const DeviceProblem3& problem, const RowLists3& lists, std::int64_t n_rows,
              const RowOutputs3& out);

}  // namespace quasi::thermal::cuda3ph
