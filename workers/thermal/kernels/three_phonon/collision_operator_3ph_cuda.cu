#include "workers/thermal/kernels/three_phonon/collision_operator_3ph_cuda.cuh"

#include <cub/cub.cuh>

#include <cmath>

#include "workers/thermal/physics/occupation.hpp"

namespace quasi::thermal::cuda3ph {
namespace {

/// One block computes one row of the collision operator applied to f.
/// @param f    [n_modes][3]; null: the rate of the row is summed instead
/// @param out  [n_rows][3], or [n_rows] without f
__global__ void __launch_bounds__(kThreads)
    collision_kernel(Tables3 t, CollisionOccupations3 occupations, RowLists3 lists, const double* f,
                     double* out) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t mode0 = t.mode_of_row(row);
  double sum[3] = {0.0, 0.0, 0.0};
  for (std::int64_t i = lists.begin(row) + threadIdx.x; i < lists.end(row); i += kThreads) {
    const Process3 process = lists.processes[i];
    const std::int64_t m1 = process.partner();
    const std::int64_t m2 = process.second;
    const CollisionTerm3 term = collision_term_3ph(occupations, mode0, process);
    if (f == nullptr) {
      sum[0] += term.gamma_per_ps;
    } else {
      for (int d = 0; d < 3; ++d)
        sum[d] += term.gamma_per_ps * (f[m2 * 3 + d] + term.sign * f[m1 * 3 + d]);
    }
  }
  using Reduce = cub::BlockReduce<double, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  const int components = f == nullptr ? 1 : 3;
  for (int d = 0; d < components; ++d) {
    const double total = Reduce(storage).Sum(sum[d]);
    if (threadIdx.x == 0) out[row * components + d] = total;
    __syncthreads();
  }
}

}  // namespace

void CollisionOperator3phCuda::tabulate(double temperature_k) {
  if (tabulated_k_ == temperature_k) return;
  const std::vector<double>& omega = device_problem_->omega_rad_ps();
  std::vector<double> n(omega.size(), 0.0);
  std::vector<double> s(omega.size(), 0.0);
  for (std::size_t mode = 0; mode < omega.size(); ++mode) {
    if (omega[mode] >= ProcessRules3::kInactive) continue;
    n[mode] = bose_einstein(omega[mode], temperature_k, problem_->hbar_over_kb_k_ps);
    s[mode] = std::sqrt(n[mode] * (n[mode] + 1.0));
  }
  n_ = cuda::DeviceBuffer<double>(n, "occupations");
  s_ = cuda::DeviceBuffer<double>(s, "occupations");
  tabulated_k_ = temperature_k;
}

std::vector<double> CollisionOperator3phCuda::collide(double temperature_k, OccupationForm form,
                                                      const double* f, int components) {
  tabulate(temperature_k);
  const std::int64_t n_rows = problem_->n_rows();
  if (static_cast<std::int64_t>(out_.size()) != n_rows * components)
    out_ = cuda::DeviceBuffer<double>(static_cast<std::size_t>(n_rows * components),
                                      "collision operator");
  collision_kernel<<<static_cast<unsigned>(n_rows), kThreads>>>(
      device_problem_->tables(), {form == OccupationForm::kSymmetric, n_.data(), s_.data()},
      offsets_->lists(0, processes_.data()), f, out_.data());
  cuda::check_launch("collision operator");
  return cuda::to_host(out_, "collision operator");
}

std::vector<double> CollisionOperator3phCuda::apply(double temperature_k, OccupationForm form,
                                                    const std::vector<double>& f) {
  if (f_.size() != f.size()) f_ = cuda::DeviceBuffer<double>(f.size(), "vector field");
  f_.copy_from(f.data(), f.size(), "vector field");
  return collide(temperature_k, form, f_.data(), 3);
}

std::vector<double> CollisionOperator3phCuda::row_rates(double temperature_k, OccupationForm form) {
  return collide(temperature_k, form, nullptr, 1);
}

}  // namespace quasi::thermal::cuda3ph
