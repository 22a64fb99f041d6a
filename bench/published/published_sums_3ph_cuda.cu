#include <numeric>

#include "bench/published/published_sums_3ph.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/thermal/kernels/three_phonon/collision_operator_3ph_cuda.cuh"
#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
#include "workers/thermal/kernels/three_phonon/row_sums_3ph_cuda.cuh"

namespace quasi::thermal {
namespace {

using cuda::DeviceBuffer;
using namespace cuda3ph;

/// Views of the force constants and of the phases of their cells on the device.
struct BlockTables {
  Blocks3View blocks;
  PhaseTable phase;
};

/// Computes |V|² of one process by the block sum.
__device__ inline double squared_element(const Tables3& t, const BlockTables& constants,
                                         std::int64_t mode0, const Process3& process) {
  const std::int64_t mode1 = process.partner();
  const std::int64_t mode2 = process.second;
  Triplet3 triplet{.channel = process.channel(),
                   .e0 = t.e + mode0 * t.nb,
                   .e1 = t.e + mode1 * t.nb,
                   .e2 = t.e + mode2 * t.nb};
  t.mesh.coordinates(mode1 / t.nb, triplet.c1);
  t.mesh.coordinates(mode2 / t.nb, triplet.c2);
  return norm(matrix_element_3ph(constants.blocks, constants.phase, triplet));
}

/// Computes δ(Δω) of one process, and its weight from the block sum.
__device__ inline double weigh_process(const Tables3& t, const BlockTables& constants,
                                       std::int64_t mode0, Process3& process) {
  double mismatch;
  double width;
  t.rules.allowed(process.channel(), mode0, process.partner(), process.second, mismatch, width);
  const double delta = t.rules.delta_ps(mismatch, width);
  const double product = t.rules.omega_rad_ps[mode0] * t.rules.omega_rad_ps[process.partner()] *
                         t.rules.omega_rad_ps[process.second];
  process.weight_per_ps =
      t.rules.prefactor * delta / product * squared_element(t, constants, mode0, process);
  return delta;
}

/// Computes the weights of the processes of row lists.first_row + blockIdx.y.
__global__ void __launch_bounds__(kThreads)
    naive_kernel(Tables3 t, BlockTables constants, RowLists3 lists) {
  const std::int64_t row = lists.first_row + blockIdx.y;
  const std::int64_t mode0 = t.mode_of_row(row);
  const std::int64_t end = lists.end(row);
  for (std::int64_t i =
           lists.begin(row) + blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
       i < end; i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    Process3 process = lists.processes[i];
    weigh_process(t, constants, mode0, process);
    lists.processes[i].weight_per_ps = process.weight_per_ps;
  }
}

/// One block tests every candidate of one row and evaluates those that are processes on the spot.
__global__ void __launch_bounds__(kThreads)
    test_and_sum_kernel(Tables3 t, BlockTables constants, TemperatureRange temperatures,
                        RowOutputs3 out, std::int64_t n_modes) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t mode0 = t.mode_of_row(row);
  const ModeData zero = mode_data(t.rules, mode0);
  ThreadSums3 sums;
  if (t.rules.active(mode0))
    for (std::int64_t p = threadIdx.x; p < t.mesh.size(); p += kThreads)
      for_each_process_at(t, zero, mode0, p, [&](const Process3& found) {
        Process3 process = found;
        const double delta = weigh_process(t, constants, mode0, process);
        sums.add(t, temperatures, n_modes, mode0, process, delta);
      });
  sums.finish(t, temperatures, row, out);
}

class PublishedSums3phCuda : public ThreePhononSums {
 public:
  PublishedSums3phCuda(const Device& device, PublishedStrategy strategy)
      : device_(device), strategy_(strategy) {}

  void load(const ThreePhononProblem& problem) override;
  ThreePhononRates rates(const std::vector<double>& temperatures_k, bool keep_processes,
                         Progress& progress) override;
  std::vector<double> apply_collision(double temperature_k, OccupationForm form,
                                      const std::vector<double>& f) override {
    use_device(device_);
    return collision_.apply(temperature_k, form, f);
  }
  std::vector<double> row_rates(double temperature_k, OccupationForm form) override {
    use_device(device_);
    return collision_.row_rates(temperature_k, form);
  }

 private:
  BlockTables constants() const {
    return {{problem_->fc3.n_blocks(), atom_.data(), cell_.data(), tensor_.data()},
            device_problem_.phase_table()};
  }
  /// Counts the processes of all rows, and lists them if the strategy does so on the host.
  /// @return [n_rows][2]
  std::vector<std::int64_t> count(std::vector<Process3>& host_list) const;
  void require_list_fits_device() const;
  /// Fills the lists of all rows without weights.
  void list_all(const std::vector<Process3>& host_list, DeviceBuffer<Process3>& processes) const;
  void weigh(const RowLists3& lists, std::int64_t n_rows) const;
  void test_and_sum(const RowOutputs3& out) const;
  /// Lists, weighs and sums one row after the other.
  /// @param kept  the list of all rows, or null
  void sum_mode_by_mode(Process3* kept, const RowOutputs3& out) const;

  Device device_;
  PublishedStrategy strategy_;
  const ThreePhononProblem* problem_ = nullptr;
  DeviceProblem3 device_problem_;
  DeviceBuffer<int> atom_, cell_;
  DeviceBuffer<double> tensor_;
  ProcessOffsets3 offsets_;
  CollisionOperator3phCuda collision_;
};

void PublishedSums3phCuda::load(const ThreePhononProblem& problem) {
  use_device(device_);
  problem_ = &problem;
  device_problem_ = DeviceProblem3(problem);
  atom_ = DeviceBuffer<int>(problem.fc3.atom, "third-order atoms");
  cell_ = DeviceBuffer<int>(problem.fc3.cell, "third-order cells");
  tensor_ = DeviceBuffer<double>(mass_scaled_tensors(problem.fc3, problem.mass_amu),
                                 "third-order constants");
  collision_ = {};
  offsets_ = {};
}

std::vector<std::int64_t> PublishedSums3phCuda::count(std::vector<Process3>& host_list) const {
  const std::int64_t n_rows = problem_->n_rows();
  if (strategy_ != PublishedStrategy::kListHost) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(n_rows));
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    return count_processes(device_problem_.tables(), rows);
  }
  const auto host = make_three_phonon_kernels(Device{});
  host->load(*problem_);
  std::vector<std::int64_t> offsets;
  host_list = host->list(0, n_rows, offsets);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(2 * n_rows), 0);
  for (std::int64_t row = 0; row < n_rows; ++row)
    for (std::int64_t i = offsets[row]; i < offsets[row + 1]; ++i)
      ++counts[2 * row + (host_list[i].emission() ? 1 : 0)];
  return counts;
}

void PublishedSums3phCuda::require_list_fits_device() const {
  const std::int64_t n_processes = offsets_.host.back();
  require_list_fits(n_processes, n_processes * static_cast<std::int64_t>(sizeof(Process3)),
                    problem_->memory_budget_bytes > 0 ? problem_->memory_budget_bytes
                                                      : free_memory_bytes(device_) / 10 * 8);
}

void PublishedSums3phCuda::list_all(const std::vector<Process3>& host_list,
                                    DeviceBuffer<Process3>& processes) const {
  if (processes.size() == 0) return;
  if (strategy_ == PublishedStrategy::kListHost)
    processes.copy_from(host_list.data(), host_list.size(), "list of three-phonon processes");
  else
    list_processes(device_problem_.tables(), offsets_.lists(0, processes.data()),
                   problem_->n_rows());
}

void PublishedSums3phCuda::weigh(const RowLists3& lists, std::int64_t n_rows) const {
  constexpr std::int64_t kRows = 32768;  // of one launch: rows are the y direction of the grid
  for (std::int64_t at = 0; at < n_rows; at += kRows) {
    RowLists3 part = lists;
    part.first_row += at;
    const dim3 grid(16, static_cast<unsigned>(std::min(kRows, n_rows - at)));
    naive_kernel<<<grid, kThreads>>>(device_problem_.tables(), constants(), part);
    cuda::check_launch("three-phonon matrix elements");
  }
}

void PublishedSums3phCuda::test_and_sum(const RowOutputs3& out) const {
  for_each_temperature_range(device_problem_, [&](const TemperatureRange& range) {
    test_and_sum_kernel<<<static_cast<unsigned>(problem_->n_rows()), kThreads>>>(
        device_problem_.tables(), constants(), range, out, device_problem_.n_modes());
    cuda::check_launch("test and sum");
  });
}

void PublishedSums3phCuda::sum_mode_by_mode(Process3* kept, const RowOutputs3& out) const {
  DeviceBuffer<Process3> list;
  for (std::int64_t row = 0; row < problem_->n_rows(); ++row) {
    const auto size = static_cast<std::size_t>(offsets_.size(row, row + 1));
    if (size == 0) continue;
    if (kept == nullptr && list.size() < size)
      list = DeviceBuffer<Process3>(size, "list of the processes of one mode");
    const RowLists3 lists =
        offsets_.lists(row, kept == nullptr ? list.data() : kept + offsets_.host[row]);
    list_processes(device_problem_.tables(), lists, 1);
    weigh(lists, 1);
    sum_rows(device_problem_, lists, 1, out);
  }
}

ThreePhononRates PublishedSums3phCuda::rates(const std::vector<double>& temperatures_k,
                                             bool keep_processes, Progress& progress) {
  use_device(device_);
  const Stopwatch enumeration;
  const std::int64_t n_rows = problem_->n_rows();
  progress.report("enumerate 3ph", 0, n_rows);
  device_problem_.set_temperatures(temperatures_k);
  const DeviceRates3 device_rates(device_problem_.n_temperatures(), n_rows);
  ThreePhononRates result;
  result.n_temperatures = device_problem_.n_temperatures();
  std::vector<Process3> host_list;
  const std::vector<std::int64_t> counts = count(host_list);
  result.set_counts(counts);
  offsets_ = ProcessOffsets3(counts);
  collision_ = {};
  const bool lists_all_modes =
      strategy_ == PublishedStrategy::kListHost || strategy_ == PublishedStrategy::kListDevice;
  const bool needs_whole_list = keep_processes || lists_all_modes;
  if (needs_whole_list) require_list_fits_device();
  cuda::check(cudaDeviceSynchronize(), "enumerating processes");
  result.seconds_enumerate = enumeration.seconds();

  const Stopwatch evaluation;
  progress.report("scattering 3ph", 0, n_rows);
  const RowOutputs3 out = device_rates.outputs();
  DeviceBuffer<Process3> processes(
      needs_whole_list ? static_cast<std::size_t>(offsets_.host.back()) : 0,
      "list of three-phonon processes");
  const RowLists3 lists = offsets_.lists(0, processes.data());
  if (strategy_ == PublishedStrategy::kTestAndSum) test_and_sum(out);
  if (strategy_ == PublishedStrategy::kModeByMode) {
    sum_mode_by_mode(needs_whole_list ? processes.data() : nullptr, out);
  } else if (processes.size() > 0) {
    list_all(host_list, processes);
    weigh(lists, n_rows);
  }
  if (lists_all_modes && processes.size() > 0) sum_rows(device_problem_, lists, n_rows, out);
  device_rates.copy_to(result);
  result.seconds_evaluate = evaluation.seconds();
  if (keep_processes)
    collision_ =
        CollisionOperator3phCuda(*problem_, device_problem_, offsets_, std::move(processes));
  return result;
}

}  // namespace

std::unique_ptr<ThreePhononSums> make_published_sums_3ph_cuda(const Device& device,
                                                              PublishedStrategy strategy) {
  return std::make_unique<PublishedSums3phCuda>(device, strategy);
}

}  // namespace quasi::thermal
