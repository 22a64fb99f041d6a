#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/three_phonon/process_finder_3ph_cpu.hpp"
#include "workers/thermal/physics/occupation.hpp"

namespace quasi::thermal {

/// Sums the rates of rows on CPU threads. Any number of threads may share an object, each with
/// sums of its own. See docs/theory/thermal.md 6 for the equations.
class RowRates3phCpu {
 public:
  /// The sums of the row that a thread works on.
  struct Sums {
    std::int64_t row = 0;
    std::int64_t mode0 = 0;
    std::vector<RowSums3> at;  ///< [nT]
    double phase_space[2] = {0.0, 0.0};
    std::int64_t count[2] = {0, 0};  ///< processes: absorption, emission
  };

  /// @param problem, finder  must outlive the object
  RowRates3phCpu(const ThreePhononProblem& problem, const ProcessFinder3phCpu& finder,
                 const std::vector<double>& temperatures_k)
      : problem_(problem), finder_(finder), n_t_(temperatures_k.size()) {
    const std::vector<double>& omega = finder.omega_rad_ps();
    occupation_.assign(omega.size() * n_t_, 0.0);
    for (std::size_t mode = 0; mode < omega.size(); ++mode)
      for (std::size_t t = 0; t < n_t_; ++t)
        if (finder.rules().active(static_cast<std::int64_t>(mode)))
          occupation_[mode * n_t_ + t] =
              bose_einstein(omega[mode], temperatures_k[t], problem.hbar_over_kb_k_ps);
  }

  /// Sets the sums of a row to zero.
  void begin(std::int64_t row, Sums& sums) const {
    sums.row = row;
    sums.mode0 = problem_.mode_of_row(row);
    sums.at.assign(n_t_, {});
    for (int channel = 0; channel < 2; ++channel) {
      sums.phase_space[channel] = 0.0;
      sums.count[channel] = 0;
    }
  }

  /// Adds one process. @return the process with its weight
  Process3 add(const Found3& found, double element_squared, Sums& sums) const {
    Process3 process = found.process;
    const std::vector<double>& omega = finder_.omega_rad_ps();
    const ProcessRules3& rules = finder_.rules();
    const bool emission = process.emission();
    const std::int64_t m1 = process.partner();
    const std::int64_t m2 = process.second;
    const int nb = problem_.n_branches();
    const double delta = finder_.delta_ps(found);
    const double phase_space_ps4 = delta / (omega[sums.mode0] * omega[m1] * omega[m2]);
    process.weight_per_ps = rules.prefactor * phase_space_ps4 * element_squared;
    const bool normal =
        is_normal_3ph(process.channel(), problem_.first_zone[sums.mode0 / nb].data(),
                      problem_.first_zone[m1 / nb].data(), problem_.first_zone[m2 / nb].data());
    sums.phase_space[emission ? 1 : 0] += delta;
    ++sums.count[emission ? 1 : 0];
    const double* n1 = &occupation_[static_cast<std::size_t>(m1) * n_t_];
    const double* n2 = &occupation_[static_cast<std::size_t>(m2) * n_t_];
    for (std::size_t t = 0; t < n_t_; ++t)
      add_process(sums.at[t], emission, normal, occupation_factor_3ph(emission, n1[t], n2[t]),
                  process.weight_per_ps, phase_space_ps4);
    return process;
  }

  /// Writes the sums of a row at its place in `rates`.
  void store(const Sums& sums, ThreePhononRates& rates) const {
    const auto n_rows = static_cast<std::size_t>(problem_.n_rows());
    const double per_point = 1.0 / static_cast<double>(problem_.mesh.size());
    for (std::size_t t = 0; t < n_t_; ++t) {
      const std::size_t at = t * n_rows + static_cast<std::size_t>(sums.row);
      const RowSums3& from = sums.at[t];
      rates.absorption_per_ps[at] = from.absorption;
      rates.emission_per_ps[at] = 0.5 * from.emission;
      rates.normal_absorption_per_ps[at] = from.normal_absorption;
      rates.normal_emission_per_ps[at] = 0.5 * from.normal_emission;
      rates.weighted_absorption_ps4[at] = per_point * from.weighted_absorption;
      rates.weighted_emission_ps4[at] = 0.5 * per_point * from.weighted_emission;
    }
    rates.phase_space_absorption_ps[sums.row] = sums.phase_space[0];
    rates.phase_space_emission_ps[sums.row] = sums.phase_space[1];
  }

 private:
  const ThreePhononProblem& problem_;
  const ProcessFinder3phCpu& finder_;
  std::size_t n_t_;
  std::vector<double> occupation_;  ///< [n_modes][nT]
};

}  // namespace quasi::thermal
