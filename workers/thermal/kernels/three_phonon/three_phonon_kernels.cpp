#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

#include <string>

#include "workers/backend/error.hpp"

namespace quasi::thermal {

std::vector<double> active_frequencies(const ThreePhononProblem& problem) {
  const Modes& modes = *problem.modes;
  std::vector<double> omega(static_cast<std::size_t>(modes.n_modes()));
  for (std::int64_t mode = 0; mode < modes.n_modes(); ++mode)
    omega[mode] = modes.active(mode, problem.omega_max_rad_ps) ? modes.omega_rad_ps[mode]
                                                               : ProcessRules3::kInactive;
  return omega;
}

ProcessRules3 process_rules(const ThreePhononProblem& problem, const double* omega_rad_ps,
                            const double* spread_rad_ps) {
  return {.omega_rad_ps = omega_rad_ps,
          .spread_rad_ps = spread_rad_ps,
          .broadening = problem.broadening,
          .scale_broad = problem.scale_broad,
          .window = problem.cut * problem.scale_broad * problem.cut * problem.scale_broad,
          .delta_norm = problem.delta_norm,
          .prefactor = problem.rate_constant / static_cast<double>(problem.mesh.size())};
}

ThreePhononRates ThreePhononRates::zeros(std::int64_t n_temperatures, std::int64_t n_rows) {
  ThreePhononRates rates;
  rates.n_temperatures = n_temperatures;
  for (auto* array : {&rates.absorption_per_ps, &rates.emission_per_ps,
                      &rates.normal_absorption_per_ps, &rates.normal_emission_per_ps,
                      &rates.weighted_absorption_ps4, &rates.weighted_emission_ps4})
    array->assign(static_cast<std::size_t>(n_temperatures * n_rows), 0.0);
  for (auto* array : {&rates.phase_space_absorption_ps, &rates.phase_space_emission_ps})
    array->assign(static_cast<std::size_t>(n_rows), 0.0);
  return rates;
}

void ThreePhononRates::set_counts(const std::vector<std::int64_t>& counts) {
  n_absorption = n_emission = 0;
  for (std::size_t i = 0; i < counts.size(); i += 2) {
    n_absorption += counts[i];
    n_emission += counts[i + 1];
  }
}

std::vector<std::int64_t> process_offsets(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> first(1, 0);
  for (std::size_t i = 0; i < counts.size(); i += 2)
    first.push_back(first.back() + counts[i] + counts[i + 1]);
  return first;
}

namespace {

/// Bytes in MiB, rounded up, so that a small need is never shown as none.
std::string shown_mib(std::int64_t bytes) {
  return std::to_string((bytes + (std::int64_t{1} << 20) - 1) >> 20) + " MiB";
}

}  // namespace

void require_list_fits(std::int64_t n_processes, std::int64_t list_bytes,
                       std::int64_t budget_bytes) {
  if (list_bytes <= budget_bytes) return;
  throw OutOfMemory(
      "the list of " + std::to_string(n_processes) + " three-phonon processes needs " +
      shown_mib(list_bytes) + " and " +
      (budget_bytes > 0 ? shown_mib(budget_bytes) + " may be used"
                        : "the memory is used up, by other programs or by the rest of the job") +
      "; use a coarser mesh, a smaller 'scalebroad', 'convergence' = .false., or raise "
      "'memory_budget_mib'");
}

std::unique_ptr<ThreePhononKernels> make_three_phonon_kernels(const Device& device) {
  switch (device.backend) {
    case Backend::kCpu:
      return make_three_phonon_kernels_cpu();
    case Backend::kCuda:
      return make_three_phonon_kernels_cuda(device);
  }
  throw BackendAbsent("unknown back end");
}

}  // namespace quasi::thermal
