#include "workers/thermal/kernels/three_phonon/process_finder_3ph_cpu.hpp"

namespace quasi::thermal {

ProcessFinder3phCpu::ProcessFinder3phCpu(const ThreePhononProblem& problem)
    : mesh_(problem.mesh),
      nb_(problem.n_branches()),
      padded_((nb_ + kLanes - 1) / kLanes * kLanes),
      omega_rad_ps_(active_frequencies(problem)) {
  const std::vector<double>& spread = problem.modes->spread_rad_ps;
  lanes_.assign(static_cast<std::size_t>(mesh_.size() * 4 * padded_), 0.0);
  for (std::int64_t q = 0; q < mesh_.size(); ++q) {
    double* lane = &lanes_[static_cast<std::size_t>(q * 4 * padded_)];
    for (int s = 0; s < padded_; ++s) {
      lane[s] = s < nb_ ? omega_rad_ps_[q * nb_ + s] : ProcessRules3::kInactive;
      for (int d = 0; d < 3 && s < nb_; ++d)
        lane[(d + 1) * padded_ + s] = spread[(q * nb_ + s) * 3 + d];
    }
  }
  rules_ = process_rules(problem, omega_rad_ps_.data(), spread.data());
  if (problem.broadening == Broadening::kTetrahedra) {
    neighbours_ = problem.tetrahedra.neighbours(mesh_);
    tied_ = tied_branches(*problem.modes);
    tetrahedra_ = problem.tetrahedra.view(problem.modes->omega_rad_ps.data(), neighbours_.data(),
                                          tied_.data(), problem.tetrahedra.corners.data(), nb_);
  }
}

template <Broadening kKind>
void ProcessFinder3phCpu::add_at_point(std::int64_t mode0, std::int64_t p,
                                       std::vector<Found3>& found) const {
  const std::int64_t q2 = mesh_.add(mode0 / nb_, p, 1);
  const std::int64_t minus = mesh_.minus(p);
  const double* lane = &lanes_[static_cast<std::size_t>(q2 * 4 * padded_)];
  const double w0 = omega_rad_ps_[mode0];
  const Spread p0 = spread_at(rules_.spread_rad_ps + 3 * mode0);
  double mismatch[3 * 1024];
  double width[3 * 1024];
  for (const Channel3 channel : {Channel3::kAbsorption, Channel3::kEmission}) {
    const std::int64_t q1 = channel == Channel3::kAbsorption ? p : minus;
    for (int s1 = 0; s1 < nb_; ++s1) {
      const std::int64_t m1 = q1 * nb_ + s1;
      if (!rules_.active(m1)) continue;
      const double w1 = omega_rad_ps_[m1];
      const Spread p1 = spread_at(rules_.spread_rad_ps + 3 * m1);
      int hits = 0;
#pragma omp simd reduction(+ : hits)
      for (int s2 = 0; s2 < padded_; ++s2) {
        const Spread p2{lane[padded_ + s2], lane[2 * padded_ + s2], lane[3 * padded_ + s2]};
        mismatch[s2] = ProcessRules3::mismatch(channel, w0, w1, lane[s2]);
        width[s2] = width_squared_3ph(kKind, p0, p1, p2);
        hits += mismatch[s2] * mismatch[s2] <= rules_.window * width[s2] ? 1 : 0;
      }
      if (hits == 0) continue;
      const auto first = static_cast<std::int32_t>(channel == Channel3::kAbsorption ? m1 : ~m1);
      for (int s2 = 0; s2 < nb_; ++s2)
        if (rules_.in_window(mismatch[s2], width[s2]))
          found.push_back({{first, static_cast<std::int32_t>(q2 * nb_ + s2), 0.0},
                           mismatch[s2],
                           width[s2],
                           0.0});
    }
  }
}

void ProcessFinder3phCpu::add_tetrahedra_at_point(std::int64_t mode0, std::int64_t p,
                                                  std::vector<Found3>& found) const {
  const std::int64_t q2 = mesh_.add(mode0 / nb_, p, 1);
  const double w0 = omega_rad_ps_[static_cast<std::size_t>(mode0)];
  for (const Channel3 channel : {Channel3::kAbsorption, Channel3::kEmission}) {
    const std::int64_t q1 = channel == Channel3::kAbsorption ? p : mesh_.minus(p);
    for (std::int64_t m1 = q1 * nb_; m1 < (q1 + 1) * nb_; ++m1)
      for (std::int64_t m2 = q2 * nb_; m2 < (q2 + 1) * nb_; ++m2) {
        if (!rules_.active(m1) || !rules_.active(m2)) continue;
        const double delta = tetrahedra_.delta_ps(channel, w0, m1, m2);
        if (!(delta > 0.0)) continue;
        const auto first = static_cast<std::int32_t>(channel == Channel3::kAbsorption ? m1 : ~m1);
        found.push_back({{first, static_cast<std::int32_t>(m2), 0.0}, 0.0, 0.0, delta});
      }
  }
}

void ProcessFinder3phCpu::add_at_point(std::int64_t mode0, std::int64_t p,
                                       std::vector<Found3>& found) const {
  switch (rules_.broadening) {
    case Broadening::kSymmetric:
      return add_at_point<Broadening::kSymmetric>(mode0, p, found);
    case Broadening::kAdaptiveMax:
      return add_at_point<Broadening::kAdaptiveMax>(mode0, p, found);
    case Broadening::kAdaptiveRms:
      return add_at_point<Broadening::kAdaptiveRms>(mode0, p, found);
    case Broadening::kFixed:
      return add_at_point<Broadening::kFixed>(mode0, p, found);
    case Broadening::kTetrahedra:
      return add_tetrahedra_at_point(mode0, p, found);
  }
}

void ProcessFinder3phCpu::find_all(std::int64_t mode0, std::vector<Found3>& found) const {
  found.clear();
  if (!rules_.active(mode0)) return;
  for (std::int64_t p = 0; p < mesh_.size(); ++p) add_at_point(mode0, p, found);
}

}  // namespace quasi::thermal
