#include <complex>
#include <memory>
#include <mutex>

#include "workers/gw/kernels/pole_sums/changes/screened_elements.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cpu.hpp"
#include "workers/gw/solver/pseudoband_errors/sigma_response.hpp"

// Makes the changes of the poles in host memory, and brings poles to a device.
namespace quasi::gw {
namespace {

double tau_of(double pole_ry) { return pole_ry >= kStaticPole_ry ? 0.0 : 1.0 / pole_ry; }

}  // namespace

PoleChange change_of(const PlasmonPoleModel& own, const PlasmonPoleModel& changed) {
  const std::int64_t n = own.n;
  const bool folded = is_hermitian(own.view());
  const auto size = static_cast<std::size_t>(elements_of_change(n, folded));
  PoleChange change{.strength = UnsetVector<std::complex<float>>(size),
                    .tau_per_ry = UnsetVector<float>(size)};
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < (folded ? g + 1 : n); ++h) {
      const auto to = static_cast<std::size_t>(folded ? g * (g + 1) / 2 + h : g * n + h),
                 at = static_cast<std::size_t>(g * n + h);
      change.strength[to] = std::complex<float>(changed.strength[at] / changed.pole_ry[at] -
                                                own.strength[at] / own.pole_ry[at]);
      change.tau_per_ry[to] = static_cast<float>(
          bounded_change_of_tau(tau_of(own.pole_ry[at]), tau_of(changed.pole_ry[at])));
    }
  return change;
}

void PolesOnDevice::take(const ChangingPoles& poles, std::size_t of_q, const PoleRules& rules,
                         GwKernels& kernels) {
  if (model != nullptr && iq == of_q) return;
  changes = {};
  model = {};  // its memory is free before the next model takes as much
  std::shared_ptr<const LoadedPoleModel> there;
  {
    const std::lock_guard lock(poles.first_device->mutex);
    there = poles.first_device->model.lock();
    if (there == nullptr)
      poles.first_device->model = model =
          kernels.pole_sums().load_for_changes(poles.model.view(), rules);
  }
  if (model == nullptr) model = kernels.pole_sums().copy_of(there);
  iq = of_q;
}

void PolesOnDevice::take_rows(const ChangingPoles& poles, std::size_t of_q, const ElementRows& rows,
                              const PoleRules& rules, GwKernels& kernels) {
  changes = {};
  model = {};  // its memory is free before the next rows take as much
  model = kernels.pole_sums().load_rows(poles.model.view(), rules, rows);
  iq = of_q;
}

}  // namespace quasi::gw
