#include "workers/thermal/kernels/three_phonon/row_sums_3ph_cuda.cuh"

namespace quasi::thermal::cuda3ph {
namespace {

/// Returns δ of a listed process of mode0.
template <bool kTetrahedra>
__device__ double delta_ps(const Tables3& t, std::int64_t mode0, const Process3& process) {
  if constexpr (kTetrahedra) {
    return t.tetrahedra.delta_ps(process.channel(), t.rules.omega_rad_ps[mode0], process.partner(),
                                 process.second);
  } else {
    double mismatch;
    double width;
    t.rules.allowed(process.channel(), mode0, process.partner(), process.second, mismatch, width);
    return t.rules.delta_ps(mismatch, width);
  }
}

/// One block sums one row, at some temperatures.
/// @param n_modes  values between two temperatures of Tables3::occupation
template <bool kTetrahedra>
__global__ void __launch_bounds__(kThreads)
    row_sums_kernel(Tables3 t, TemperatureRange temperatures, RowLists3 lists, RowOutputs3 out,
                    std::int64_t n_modes) {
  const std::int64_t row = lists.first_row + blockIdx.x;
  const std::int64_t mode0 = t.mode_of_row(row);
  ThreadSums3 sums;
  const std::int64_t end = lists.end(row);
  for (std::int64_t i = lists.begin(row) + threadIdx.x; i < end; i += kThreads) {
    const Process3 process = lists.processes[i];
    sums.add(t, temperatures, n_modes, mode0, process, delta_ps<kTetrahedra>(t, mode0, process));
  }
  sums.finish(t, temperatures, row, out);
}

}  // namespace

DeviceRates3::DeviceRates3(int n_temperatures, std::int64_t n_rows)
    : n_rows_(n_rows),
      per_array_(n_temperatures * n_rows),
      values_(static_cast<std::size_t>(6 * per_array_ + 2 * n_rows), "rates") {
  values_.zero("rates");
}

RowOutputs3 DeviceRates3::outputs() const {
  double* out = values_.data();
  return {.n_rows = n_rows_,
          .absorption = out,
          .emission = out + per_array_,
          .normal_absorption = out + 2 * per_array_,
          .normal_emission = out + 3 * per_array_,
          .weighted_absorption = out + 4 * per_array_,
          .weighted_emission = out + 5 * per_array_,
          .phase_space_absorption = out + 6 * per_array_,
          .phase_space_emission = out + 6 * per_array_ + n_rows_};
}

void DeviceRates3::copy_to(ThreePhononRates& rates) const {
  const std::vector<double> values = cuda::to_host(values_, "three-phonon rates");
  auto from = values.begin();
  for (auto* array : {&rates.absorption_per_ps, &rates.emission_per_ps,
                      &rates.normal_absorption_per_ps, &rates.normal_emission_per_ps,
                      &rates.weighted_absorption_ps4, &rates.weighted_emission_ps4}) {
    array->assign(from, from + per_array_);
    from += per_array_;
  }
  for (auto* array : {&rates.phase_space_absorption_ps, &rates.phase_space_emission_ps}) {
    array->assign(from, from + n_rows_);
    from += n_rows_;
  }
}

void sum_rows(const DeviceProblem3& problem, const RowLists3& lists, std::int64_t n_rows,
              const RowOutputs3& out) {
  const auto kernel =
      problem.tables().has_tetrahedra() ? row_sums_kernel<true> : row_sums_kernel<false>;
  for_each_temperature_range(problem, [&](const TemperatureRange& range) {
    kernel<<<static_cast<unsigned>(n_rows), kThreads>>>(problem.tables(), range, lists, out,
                                                        problem.n_modes());
    cuda::check_launch("sums of three-phonon rates");
  });
}

}  // namespace quasi::thermal::cuda3ph
