
#include "bench/published/published_sums_3ph.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/thermal/kernels/three_phonon/collision_operator_3ph_cpu.hpp"
#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
#include "workers/thermal/kernels/three_phonon/process_finder_3ph_cpu.hpp"
#include "workers/thermal/kernels/three_phonon/row_rates_3ph_cpu.hpp"

namespace quasi::thermal {
namespace {

const Complex<double>* plain(const std::vector<std::complex<double>>& values) {
  return reinterpret_cast<const Complex<double>*>(values.data());
}

class PublishedSums3phCpu : public ThreePhononSums {
 public:
  explicit PublishedSums3phCpu(PublishedStrategy strategy) : strategy_(strategy) {}

  void load(const ThreePhononProblem& problem) override;
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
  using List = std::vector<Found3>;

  bool lists_all_modes() const {
    return strategy_ == PublishedStrategy::kListHost || strategy_ == PublishedStrategy::kListDevice;
  }
  double squared_element(std::int64_t mode0, const Process3& process) const;
  /// Counts the processes of all rows. @return [n_rows][2]
  std::vector<std::int64_t> count() const;
  /// @throws OutOfMemory if the lists do not fit.
  void require_lists_fit(std::int64_t n_processes, bool keep_processes) const;
  std::vector<List> list_all_modes() const;
  /// Calls visit(found) for the processes of a row, in the way of the strategy.
  /// @param lists  of all rows, or empty
  template <typename Visit>
  void for_each_process(std::int64_t row, const std::vector<List>& lists, List& scratch,
                        const Visit& visit) const;

  PublishedStrategy strategy_;
  const ThreePhononProblem* problem_ = nullptr;
  std::vector<double> tensor_;  ///< mass scaled
  std::vector<std::complex<double>> roots_[3];
  ProcessFinder3phCpu finder_;
  CollisionOperator3phCpu collision_;
};

void PublishedSums3phCpu::load(const ThreePhononProblem& problem) {
  problem_ = &problem;
  tensor_ = mass_scaled_tensors(problem.fc3, problem.mass_amu);
  for (int d = 0; d < 3; ++d) roots_[d] = unit_roots(problem.mesh.n[d]);
  finder_ = ProcessFinder3phCpu(problem);
  collision_ = {};
}

double PublishedSums3phCpu::squared_element(std::int64_t mode0, const Process3& process) const {
  const QMesh& mesh = problem_->mesh;
  const int nb = problem_->n_branches();
  const SparseForceConstants& fc3 = problem_->fc3;
  const Blocks3View blocks{fc3.n_blocks(), fc3.atom.data(), fc3.cell.data(), tensor_.data()};
  const PhaseTable phase{{plain(roots_[0]), plain(roots_[1]), plain(roots_[2])},
                         {mesh.n[0], mesh.n[1], mesh.n[2]}};
  const Complex<double>* e = plain(problem_->modes->eigenvector);
  const std::int64_t mode1 = process.partner();
  const std::int64_t mode2 = process.second;
  Triplet3 triplet{.channel = process.channel(),
                   .e0 = e + mode0 * nb,
                   .e1 = e + mode1 * nb,
                   .e2 = e + mode2 * nb};
  mesh.coordinates(mode1 / nb, triplet.c1);
  mesh.coordinates(mode2 / nb, triplet.c2);
  return norm(matrix_element_3ph(blocks, phase, triplet));
}

std::vector<std::int64_t> PublishedSums3phCpu::count() const {
  const std::int64_t n_rows = problem_->n_rows();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(2 * n_rows), 0);
#pragma omp parallel for schedule(dynamic, 4)
  for (std::int64_t row = 0; row < n_rows; ++row) {
    List found;
    finder_.find_all(problem_->mode_of_row(row), found);
    for (const Found3& each : found) ++counts[2 * row + (each.process.emission() ? 1 : 0)];
  }
  return counts;
}

void PublishedSums3phCpu::require_lists_fit(std::int64_t n_processes, bool keep_processes) const {
  const std::size_t process_bytes =
      (lists_all_modes() ? sizeof(Found3) : 0) + (keep_processes ? sizeof(Process3) : 0);
  require_list_fits(n_processes, n_processes * static_cast<std::int64_t>(process_bytes),
                    problem_->memory_budget_bytes > 0
                        ? problem_->memory_budget_bytes
                        : free_memory_bytes({.backend = Backend::kCpu}) / 10 * 8);
}

std::vector<PublishedSums3phCpu::List> PublishedSums3phCpu::list_all_modes() const {
  std::vector<List> lists(static_cast<std::size_t>(problem_->n_rows()));
#pragma omp parallel for schedule(dynamic, 4)
  for (std::size_t row = 0; row < lists.size(); ++row)
    finder_.find_all(problem_->mode_of_row(static_cast<std::int64_t>(row)), lists[row]);
  return lists;
}

template <typename Visit>
void PublishedSums3phCpu::for_each_process(std::int64_t row, const std::vector<List>& lists,
                                           List& scratch, const Visit& visit) const {
  const std::int64_t mode0 = problem_->mode_of_row(row);
  if (!finder_.rules().active(mode0)) return;
  if (lists_all_modes()) {
    for (const Found3& found : lists[static_cast<std::size_t>(row)]) visit(found);
  } else if (strategy_ == PublishedStrategy::kModeByMode) {
    finder_.find_all(mode0, scratch);
    for (const Found3& found : scratch) visit(found);
  } else {
    for (std::int64_t p = 0; p < problem_->mesh.size(); ++p) {
      scratch.clear();
      finder_.add_at_point(mode0, p, scratch);
      for (const Found3& found : scratch) visit(found);
    }
  }
}

ThreePhononRates PublishedSums3phCpu::rates(const std::vector<double>& temperatures_k,
                                            bool keep_processes, Progress& progress) {
  const Stopwatch enumeration;
  const std::int64_t n_rows = problem_->n_rows();
  const RowRates3phCpu row_rates(*problem_, finder_, temperatures_k);
  ThreePhononRates result =
      ThreePhononRates::zeros(static_cast<std::int64_t>(temperatures_k.size()), n_rows);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(2 * n_rows), 0);
  std::vector<List> lists;
  if (keep_processes || lists_all_modes()) counts = count();
  std::vector<std::int64_t> first_process = process_offsets(counts);
  require_lists_fit(first_process.back(), keep_processes);
  if (lists_all_modes()) lists = list_all_modes();
  collision_ = CollisionOperator3phCpu(*problem_, finder_, std::move(first_process));
  result.seconds_enumerate = enumeration.seconds();

  const Stopwatch evaluation;
  progress.report("scattering 3ph", 0, n_rows);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t row = 0; row < n_rows; ++row) {
    RowRates3phCpu::Sums sums;
    List scratch;
    Process3* kept = keep_processes ? collision_.processes_of(row) : nullptr;
    row_rates.begin(row, sums);
    for_each_process(row, lists, scratch, [&](const Found3& found) {
      const double squared = squared_element(sums.mode0, found.process);
      const Process3 process = row_rates.add(found, squared, sums);
      if (kept != nullptr) *kept++ = process;
    });
    row_rates.store(sums, result);
    std::copy(sums.count, sums.count + 2, &counts[static_cast<std::size_t>(2 * row)]);
  }
  result.set_counts(counts);
  result.seconds_evaluate = evaluation.seconds();
  return result;
}

}  // namespace

std::unique_ptr<ThreePhononSums> make_published_sums_3ph(const Device& device,
                                                         PublishedStrategy strategy) {
  if (device.backend == Backend::kCuda) return make_published_sums_3ph_cuda(device, strategy);
  return std::make_unique<PublishedSums3phCpu>(strategy);
}

}  // namespace quasi::thermal
