#include "workers/thermal/kernels/three_phonon/collision_operator_3ph_cpu.hpp"

#include <algorithm>
#include <cmath>

#include "workers/thermal/physics/occupation.hpp"

namespace quasi::thermal {

CollisionOccupations3 CollisionOperator3phCpu::occupations(double temperature_k,
                                                           OccupationForm form) {
  if (tabulated_k_ != temperature_k) {
    const std::vector<double>& omega = finder_->omega_rad_ps();
    n_.assign(omega.size(), 0.0);
    s_.assign(omega.size(), 0.0);
    for (std::size_t mode = 0; mode < omega.size(); ++mode) {
      if (omega[mode] >= ProcessRules3::kInactive) continue;
      n_[mode] = bose_einstein(omega[mode], temperature_k, problem_->hbar_over_kb_k_ps);
      s_[mode] = std::sqrt(n_[mode] * (n_[mode] + 1.0));
    }
    tabulated_k_ = temperature_k;
  }
  return {form == OccupationForm::kSymmetric, n_.data(), s_.data()};
}

std::vector<double> CollisionOperator3phCpu::apply(double temperature_k, OccupationForm form,
                                                   const std::vector<double>& f) {
  const std::int64_t n_rows = problem_->n_rows();
  const CollisionOccupations3 at = occupations(temperature_k, form);
  std::vector<double> out(static_cast<std::size_t>(n_rows * 3), 0.0);
#pragma omp parallel for schedule(dynamic, 8)
  for (std::int64_t row = 0; row < n_rows; ++row) {
    const std::int64_t mode0 = problem_->mode_of_row(row);
    double sum[3] = {0.0, 0.0, 0.0};
    for (std::int64_t i = first_process_[row]; i < first_process_[row + 1]; ++i) {
      const Process3& process = processes_[static_cast<std::size_t>(i)];
      const std::int64_t m1 = process.partner();
      const std::int64_t m2 = process.second;
      const CollisionTerm3 term = collision_term_3ph(at, mode0, process);
      for (int d = 0; d < 3; ++d)
        sum[d] += term.gamma_per_ps * (f[m2 * 3 + d] + term.sign * f[m1 * 3 + d]);
    }
    std::copy(sum, sum + 3, &out[static_cast<std::size_t>(row * 3)]);
  }
  return out;
}

std::vector<double> CollisionOperator3phCpu::row_rates(double temperature_k, OccupationForm form) {
  const std::int64_t n_rows = problem_->n_rows();
  const CollisionOccupations3 at = occupations(temperature_k, form);
  std::vector<double> out(static_cast<std::size_t>(n_rows), 0.0);
#pragma omp parallel for schedule(dynamic, 8)
  for (std::int64_t row = 0; row < n_rows; ++row) {
    const std::int64_t mode0 = problem_->mode_of_row(row);
    double sum = 0.0;
    for (std::int64_t i = first_process_[row]; i < first_process_[row + 1]; ++i)
      sum += collision_term_3ph(at, mode0, processes_[static_cast<std::size_t>(i)]).gamma_per_ps;
    out[row] = sum;
  }
  return out;
}

}  // namespace quasi::thermal
