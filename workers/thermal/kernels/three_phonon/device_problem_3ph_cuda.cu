#include "workers/thermal/kernels/three_phonon/device_problem_3ph_cuda.cuh"
#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
#include "workers/thermal/physics/occupation.hpp"

namespace quasi::thermal::cuda3ph {

cuda::DeviceBuffer<Complex<double>> upload_complex(const std::vector<std::complex<double>>& values,
                                                   const char* what) {
  cuda::DeviceBuffer<Complex<double>> buffer(values.size(), what);
  buffer.copy_from(reinterpret_cast<const Complex<double>*>(values.data()), values.size(), what);
  return buffer;
}

DeviceProblem3::DeviceProblem3(const ThreePhononProblem& problem)
    : hbar_over_kb_k_ps_(problem.hbar_over_kb_k_ps),
      omega_host_(active_frequencies(problem)),
      omega_(omega_host_, "frequencies"),
      spread_(problem.modes->spread_rad_ps, "spread vectors"),
      e_(upload_complex(problem.modes->eigenvector, "eigenvectors")),
      point_(problem.rows, "irreducible points") {
  std::vector<int> zone;
  for (const Index3& z : problem.first_zone) zone.insert(zone.end(), z.begin(), z.end());
  zone_ = cuda::DeviceBuffer<int>(zone, "first-zone points");
  for (int d = 0; d < 3; ++d) roots_[d] = upload_complex(unit_roots(problem.mesh.n[d]), "phases");
  tables_ = {.mesh = problem.mesh,
             .nb = problem.n_branches(),
             .rules = process_rules(problem, omega_.data(), spread_.data()),
             .e = e_.data(),
             .point = point_.data(),
             .first_zone = zone_.data(),
             .occupation = nullptr,
             .tetrahedra = {}};
  if (tables_.has_tetrahedra()) upload_tetrahedra(problem);
}

void DeviceProblem3::upload_tetrahedra(const ThreePhononProblem& problem) {
  const MeshTetrahedra& shapes = problem.tetrahedra;
  corner_omega_ = cuda::DeviceBuffer<double>(problem.modes->omega_rad_ps, "frequencies");
  neighbours_ = cuda::DeviceBuffer<std::int32_t>(shapes.neighbours(problem.mesh), "neighbours");
  corners_ = cuda::DeviceBuffer<TetrahedronCorners>(shapes.corners, "tetrahedra");
  tied_ = cuda::DeviceBuffer<std::int32_t>(tied_branches(*problem.modes), "tied branches");
  tables_.tetrahedra = shapes.view(corner_omega_.data(), neighbours_.data(), tied_.data(),
                                   corners_.data(), problem.n_branches());
}

void DeviceProblem3::set_temperatures(const std::vector<double>& temperatures_k) {
  n_temperatures_ = static_cast<int>(temperatures_k.size());
  std::vector<double> occupation(omega_host_.size() * temperatures_k.size(), 0.0);
  for (std::size_t t = 0; t < temperatures_k.size(); ++t)
    for (std::size_t mode = 0; mode < omega_host_.size(); ++mode)
      if (omega_host_[mode] < ProcessRules3::kInactive)
        occupation[t * omega_host_.size() + mode] =
            bose_einstein(omega_host_[mode], temperatures_k[t], hbar_over_kb_k_ps_);
  occupation_ = cuda::DeviceBuffer<double>(occupation, "occupations");
  tables_.occupation = occupation_.data();
}

PhaseTable DeviceProblem3::phase_table() const {
  const int* n = tables_.mesh.n;
  return {{roots_[0].data(), roots_[1].data(), roots_[2].data()}, {n[0], n[1], n[2]}};
}

}  // namespace quasi::thermal::cuda3ph
