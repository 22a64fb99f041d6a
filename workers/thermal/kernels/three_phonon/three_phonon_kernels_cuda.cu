#include <numeric>

#include "workers/backend/stopwatch.hpp"
#include "workers/thermal/kernels/three_phonon/collision_operator_3ph_cuda.cuh"
#include "workers/thermal/kernels/three_phonon/factorised_elements_3ph_cuda.cuh"
#include "workers/thermal/kernels/three_phonon/find_processes_3ph_cuda.cuh"
#include "workers/thermal/kernels/three_phonon/row_sums_3ph_cuda.cuh"

namespace quasi::thermal {
namespace {

using cuda::DeviceBuffer;
using namespace cuda3ph;

/// All launches and products are on the default stream.
class CudaThreePhononKernels : public ThreePhononKernels {
 public:
  explicit CudaThreePhononKernels(const Device& device) : device_(device) {
    use_device(device_);  // the handle belongs to the device in use
    cublas_ = cuda::CublasHandle(nullptr);
  }
  void load(const ThreePhononProblem& problem) override;
  std::vector<std::int64_t> count(const std::vector<std::int64_t>& rows) override;
  std::vector<Process3> list(std::int64_t first, std::int64_t last,
                             std::vector<std::int64_t>& offsets) override;
  ThreePhononRates rates(const std::vector<double>& temperatures_k, bool keep_processes,
                         Progress& progress) override;
  std::vector<double> apply_collision(double temperature_k, OccupationForm form,
                                      const std::vector<double>& f) override;
  std::vector<double> row_rates(double temperature_k, OccupationForm form) override;

 private:
  static constexpr std::int64_t kProcessBytes = sizeof(Process3);

  std::int64_t budget_bytes() const;
  /// Weighs and sums all rows at once. @return their list
  DeviceBuffer<Process3> sum_at_once(const RowOutputs3& out, Progress& progress);
  /// Weighs and sums as many points at a time as have lists that fit the budget.
  void sum_in_parts(std::int64_t budget_bytes, const RowOutputs3& out, Progress& progress);
  /// Lists, weighs and sums the processes of some rows.
  /// @param processes  room for their lists
  void sum_part(const RowRange& rows, Process3* processes, const RowOutputs3& out,
                Progress& progress);

  Device device_;
  const ThreePhononProblem* problem_ = nullptr;
  cuda::CublasHandle cublas_;
  DeviceProblem3 device_problem_;
  FactorisedElements3phCuda elements_;
  ProcessOffsets3 offsets_;
  CollisionOperator3phCuda collision_;
};

void CudaThreePhononKernels::load(const ThreePhononProblem& problem) {
  use_device(device_);
  problem_ = &problem;
  device_problem_ = DeviceProblem3(problem);
  elements_ = FactorisedElements3phCuda(problem, cublas_);
  collision_ = {};
  offsets_ = {};
}

std::vector<std::int64_t> CudaThreePhononKernels::count(const std::vector<std::int64_t>& rows) {
  use_device(device_);
  return count_processes(device_problem_.tables(), rows);
}

std::vector<Process3> CudaThreePhononKernels::list(std::int64_t first, std::int64_t last,
                                                   std::vector<std::int64_t>& offsets) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(last - first));
  std::iota(rows.begin(), rows.end(), first);
  const std::vector<std::int64_t> counts = count(rows);
  offsets = process_offsets(counts);
  std::vector<std::int64_t> all(static_cast<std::size_t>(2 * problem_->n_rows()), 0);
  std::copy(counts.begin(), counts.end(), all.begin() + 2 * first);
  offsets_ = ProcessOffsets3(all);
  DeviceBuffer<Process3> processes(static_cast<std::size_t>(offsets.back()), "list of processes");
  if (offsets.back() > 0)
    list_processes(device_problem_.tables(), offsets_.lists(first, processes.data()), last - first);
  return cuda::to_host(processes, "listing processes");
}

std::int64_t CudaThreePhononKernels::budget_bytes() const {
  return problem_->memory_budget_bytes > 0
             ? problem_->memory_budget_bytes
             : free_memory_bytes(device_) / 10 * 8 - 2 * FactorisedElements3phCuda::kWorkBytes;
}

void CudaThreePhononKernels::sum_part(const RowRange& rows, Process3* processes,
                                      const RowOutputs3& out, Progress& progress) {
  if (offsets_.size(rows.first, rows.last) == 0) return;
  const RowLists3 lists = offsets_.lists(rows.first, processes);
  list_processes(device_problem_.tables(), lists, rows.last - rows.first);
  elements_.weigh_processes(device_problem_, offsets_, rows, processes, progress);
  sum_rows(device_problem_, lists, rows.last - rows.first, out);
}

DeviceBuffer<Process3> CudaThreePhononKernels::sum_at_once(const RowOutputs3& out,
                                                           Progress& progress) {
  const std::int64_t n_rows = problem_->n_rows();
  progress.report("scattering 3ph", 0, n_rows);
  DeviceBuffer<Process3> processes(static_cast<std::size_t>(offsets_.host.back()),
                                   "list of three-phonon processes");
  sum_part({0, n_rows}, processes.data(), out, progress);
  return processes;
}

void CudaThreePhononKernels::sum_in_parts(std::int64_t budget_bytes, const RowOutputs3& out,
                                          Progress& progress) {
  const std::int64_t n_rows = problem_->n_rows();
  const int nb = problem_->n_branches();
  DeviceBuffer<Process3> processes;
  for (std::int64_t first = 0; first < n_rows;) {
    progress.report("scattering 3ph", first, n_rows);
    std::int64_t last = first + nb;
    while (last < n_rows && offsets_.size(first, last + nb) * kProcessBytes <= budget_bytes)
      last += nb;
    const auto size = static_cast<std::size_t>(offsets_.size(first, last));
    if (processes.size() < size)
      processes = DeviceBuffer<Process3>(size, "part of the list of three-phonon processes");
    sum_part({first, last}, processes.data(), out, progress);
    first = last;
  }
}

ThreePhononRates CudaThreePhononKernels::rates(const std::vector<double>& temperatures_k,
                                               bool keep_processes, Progress& progress) {
  use_device(device_);
  const Stopwatch enumeration;
  const std::int64_t n_rows = problem_->n_rows();
  device_problem_.set_temperatures(temperatures_k);
  const DeviceRates3 device_rates(device_problem_.n_temperatures(), n_rows);
  ThreePhononRates result;
  result.n_temperatures = device_problem_.n_temperatures();
  progress.report("enumerate 3ph", 0, n_rows);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(n_rows));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  const std::vector<std::int64_t> counts = count_processes(device_problem_.tables(), rows);
  result.set_counts(counts);
  offsets_ = ProcessOffsets3(counts);
  const std::int64_t budget = budget_bytes();
  if (keep_processes)
    require_list_fits(offsets_.host.back(), offsets_.host.back() * kProcessBytes, budget);
  cuda::check(cudaDeviceSynchronize(), "enumerating processes");
  result.seconds_enumerate = enumeration.seconds();
  const Stopwatch evaluation;

  collision_ = {};  // frees the old list first
  if (keep_processes)
    collision_ = CollisionOperator3phCuda(*problem_, device_problem_, offsets_,
                                          sum_at_once(device_rates.outputs(), progress));
  else
    sum_in_parts(budget, device_rates.outputs(), progress);
  device_rates.copy_to(result);
  result.seconds_evaluate = evaluation.seconds();
  progress.report("scattering 3ph", n_rows, n_rows);
  return result;
}

std::vector<double> CudaThreePhononKernels::apply_collision(double temperature_k,
                                                            OccupationForm form,
                                                            const std::vector<double>& f) {
  use_device(device_);
  return collision_.apply(temperature_k, form, f);
}

std::vector<double> CudaThreePhononKernels::row_rates(double temperature_k, OccupationForm form) {
  use_device(device_);
  return collision_.row_rates(temperature_k, form);
}

}  // namespace

std::unique_ptr<ThreePhononKernels> make_three_phonon_kernels_cuda(const Device& device) {
  return std::make_unique<CudaThreePhononKernels>(device);
}

}  // namespace quasi::thermal
