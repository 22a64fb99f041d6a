#include <omp.h>

#include <algorithm>
#include <numeric>

#include "workers/backend/stopwatch.hpp"
#include "workers/thermal/kernels/three_phonon/collision_operator_3ph_cpu.hpp"
#include "workers/thermal/kernels/three_phonon/factorised_elements_3ph_cpu.hpp"
#include "workers/thermal/kernels/three_phonon/process_finder_3ph_cpu.hpp"
#include "workers/thermal/kernels/three_phonon/row_rates_3ph_cpu.hpp"

namespace quasi::thermal {
namespace {

class CpuThreePhononKernels : public ThreePhononKernels {
 public:
  void load(const ThreePhononProblem& problem) override;
  std::vector<std::int64_t> count(const std::vector<std::int64_t>& rows) override;
  std::vector<Process3> list(std::int64_t first, std::int64_t last,
                             std::vector<std::int64_t>& offsets) override;
  ThreePhononRates rates(const std::vector<double>& temperatures_k, bool keep_processes,
                         Progress& progress) override;
  std::vector<double> apply_collision(double temperature_k, OccupationForm form,
                                      const std::vector<double>& f) override {
    return collision_.apply(temperature_k, form, f);
  }
  std::vector<double> row_rates(double temperature_k, OccupationForm form) override {
    return collision_.row_rates(temperature_k, form);
  }

 private:
  static constexpr std::int64_t kRowsAtOnce = 64;  ///< between two reports of progress

  std::vector<std::int64_t> count_all(Progress& progress);
  /// Allocates the list of all processes. @throws OutOfMemory if it does not fit.
  void begin_list(const std::vector<std::int64_t>& counts);
  /// Sums the rows and, if wanted, writes their processes to the list.
  /// @return [n_rows][2] processes
  std::vector<std::int64_t> sum_rows(const RowRates3phCpu& row_rates, bool keep_processes,
                                     ThreePhononRates& rates, Progress& progress);

  const ThreePhononProblem* problem_ = nullptr;
  ProcessFinder3phCpu finder_;
  FactorisedElements3phCpu elements_;
  CollisionOperator3phCpu collision_;
};

void CpuThreePhononKernels::load(const ThreePhononProblem& problem) {
  problem_ = &problem;
  finder_ = ProcessFinder3phCpu(problem);
  elements_ = FactorisedElements3phCpu(problem);
  collision_ = {};
}

std::vector<std::int64_t> CpuThreePhononKernels::count(const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> counts(rows.size() * 2, 0);
#pragma omp parallel
  {
    std::vector<Found3> found;
#pragma omp for schedule(dynamic, 4)
    for (std::size_t i = 0; i < rows.size(); ++i) {
      finder_.find_all(problem_->mode_of_row(rows[i]), found);
      for (const Found3& each : found) ++counts[2 * i + (each.process.emission() ? 1 : 0)];
    }
  }
  return counts;
}

std::vector<Process3> CpuThreePhononKernels::list(std::int64_t first, std::int64_t last,
                                                  std::vector<std::int64_t>& offsets) {
  std::vector<std::vector<Process3>> rows(static_cast<std::size_t>(last - first));
#pragma omp parallel
  {
    std::vector<Found3> found;
#pragma omp for schedule(dynamic, 4)
    for (std::int64_t row = first; row < last; ++row) {
      finder_.find_all(problem_->mode_of_row(row), found);
      for (const Found3& each : found) rows[row - first].push_back(each.process);
    }
  }
  offsets.assign(1, 0);
  std::vector<Process3> all;
  for (const auto& row : rows) {
    all.insert(all.end(), row.begin(), row.end());
    offsets.push_back(static_cast<std::int64_t>(all.size()));
  }
  return all;
}

std::vector<std::int64_t> CpuThreePhononKernels::count_all(Progress& progress) {
  const std::int64_t n_rows = problem_->n_rows();
  std::vector<std::int64_t> all(static_cast<std::size_t>(n_rows));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  std::vector<std::int64_t> counts;
  constexpr std::int64_t kRows = 4 * kRowsAtOnce;
  for (std::int64_t first = 0; first < n_rows; first += kRows) {
    progress.report("enumerate 3ph", first, n_rows);
    const auto part = count({all.begin() + first, all.begin() + std::min(n_rows, first + kRows)});
    counts.insert(counts.end(), part.begin(), part.end());
  }
  return counts;
}

void CpuThreePhononKernels::begin_list(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> first_process = process_offsets(counts);
  const std::int64_t n_processes = first_process.back();
  require_list_fits(n_processes, n_processes * static_cast<std::int64_t>(sizeof(Process3)),
                    problem_->memory_budget_bytes > 0
                        ? problem_->memory_budget_bytes
                        : free_memory_bytes({.backend = Backend::kCpu}) / 10 * 8);
  collision_ = {};  // frees the old list first
  collision_ = CollisionOperator3phCpu(*problem_, finder_, std::move(first_process));
}

std::vector<std::int64_t> CpuThreePhononKernels::sum_rows(const RowRates3phCpu& row_rates,
                                                          bool keep_processes,
                                                          ThreePhononRates& rates,
                                                          Progress& progress) {
  struct Thread {
    FactorisedElements3phCpu::Arrays arrays;
    RowRates3phCpu::Sums sums;
  };
  const std::int64_t n_rows = problem_->n_rows();
  std::vector<Thread> threads(static_cast<std::size_t>(omp_get_max_threads()));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(2 * n_rows));
  for (std::int64_t first = 0; first < n_rows; first += kRowsAtOnce) {
    progress.report("scattering 3ph", first, n_rows);
    const std::int64_t last = std::min(n_rows, first + kRowsAtOnce);
#pragma omp parallel for schedule(dynamic, 1)
    for (std::int64_t row = first; row < last; ++row) {
      Thread& mine = threads[static_cast<std::size_t>(omp_get_thread_num())];
      Process3* kept = keep_processes ? collision_.processes_of(row) : nullptr;
      row_rates.begin(row, mine.sums);
      elements_.for_each_process(
          finder_, mine.sums.mode0, mine.arrays, [&](const Found3& found, double squared) {
            const Process3 process = row_rates.add(found, squared, mine.sums);
            if (kept != nullptr) *kept++ = process;
          });
      row_rates.store(mine.sums, rates);
      std::copy(mine.sums.count, mine.sums.count + 2, &counts[static_cast<std::size_t>(2 * row)]);
    }
  }
  return counts;
}

ThreePhononRates CpuThreePhononKernels::rates(const std::vector<double>& temperatures_k,
                                              bool keep_processes, Progress& progress) {
  const Stopwatch enumeration;
  const std::int64_t n_rows = problem_->n_rows();
  const RowRates3phCpu row_rates(*problem_, finder_, temperatures_k);
  ThreePhononRates result =
      ThreePhononRates::zeros(static_cast<std::int64_t>(temperatures_k.size()), n_rows);
  // A kept list is counted first, so that one that cannot fit is refused before the sums.
  begin_list(keep_processes ? count_all(progress)
                            : std::vector<std::int64_t>(static_cast<std::size_t>(2 * n_rows), 0));
  result.seconds_enumerate = enumeration.seconds();
  const Stopwatch evaluation;
  result.set_counts(sum_rows(row_rates, keep_processes, result, progress));
  progress.report("scattering 3ph", n_rows, n_rows);
  result.seconds_evaluate = evaluation.seconds();
  return result;
}

}  // namespace

std::unique_ptr<ThreePhononKernels> make_three_phonon_kernels_cpu() {
  return std::make_unique<CpuThreePhononKernels>();
}

}  // namespace quasi::thermal
