#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "workers/backend/complex.hpp"
#include "workers/backend/device/device_buffer.cuh"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal::cuda3ph {

constexpr int kThreads = 256;  ///< threads of a block in the kernels of three phonons

/// Views of a three-phonon problem on the device, as kernels take them.
struct Tables3 {
  QMesh mesh;
  int nb;  ///< branches
  ProcessRules3 rules;
  const Complex<double>* e;    ///< [n_modes][nb]
  const std::int32_t* point;   ///< [n_rows / nb] q of the rows
  const int* first_zone;       ///< [n_q][3]
  const double* occupation;    ///< [nT][n_modes]
  TetrahedraView3 tetrahedra;  ///< with kTetrahedra

  QUASI_HD std::int64_t mode_of_row(std::int64_t row) const {
    return static_cast<std::int64_t>(point[row / nb]) * nb + row % nb;
  }
  bool has_tetrahedra() const { return rules.broadening == Broadening::kTetrahedra; }
};

/// The frequency and the spread vector of a mode in registers.
struct ModeData {
  double omega;
  Spread spread;
};

__device__ inline ModeData mode_data(const ProcessRules3& rules, std::int64_t mode) {
  return {__ldg(rules.omega_rad_ps + mode),
          {__ldg(rules.spread_rad_ps + 3 * mode), __ldg(rules.spread_rad_ps + 3 * mode + 1),
           __ldg(rules.spread_rad_ps + 3 * mode + 2)}};
}

/// Copies complex numbers of the host to the device in use.
cuda::DeviceBuffer<Complex<double>> upload_complex(const std::vector<std::complex<double>>& values,
                                                   const char* what);

/// The arrays of a three-phonon problem on the device in use.
class DeviceProblem3 {
 public:
  DeviceProblem3() = default;
  /// Uploads the problem. @throws OutOfMemory if the device has no room for it.
  explicit DeviceProblem3(const ThreePhononProblem& problem);

  /// Computes the occupations of all modes at the temperatures of Tables3::occupation.
  void set_temperatures(const std::vector<double>& temperatures_k);
  int n_temperatures() const { return n_temperatures_; }
  std::int64_t n_modes() const { return static_cast<std::int64_t>(omega_host_.size()); }

  const Tables3& tables() const { return tables_; }
  /// exp(iq·R) on the mesh of the problem.
  PhaseTable phase_table() const;
  /// [n_modes] active_frequencies of the problem, on the host.
  const std::vector<double>& omega_rad_ps() const { return omega_host_; }

 private:
  /// Uploads the arrays of TetrahedraView3.
  void upload_tetrahedra(const ThreePhononProblem& problem);

  double hbar_over_kb_k_ps_ = 0.0;
  int n_temperatures_ = 0;
  std::vector<double> omega_host_;
  cuda::DeviceBuffer<double> omega_, spread_, occupation_;
  cuda::DeviceBuffer<double> corner_omega_;  ///< with kTetrahedra, as the next two
  cuda::DeviceBuffer<std::int32_t> neighbours_, tied_;
  cuda::DeviceBuffer<TetrahedronCorners> corners_;
  cuda::DeviceBuffer<Complex<double>> e_, roots_[3];
  cuda::DeviceBuffer<std::int32_t> point_;
  cuda::DeviceBuffer<int> zone_;
  Tables3 tables_{};
};

}  // namespace quasi::thermal::cuda3ph
