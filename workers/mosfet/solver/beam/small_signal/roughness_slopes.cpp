#include "workers/mosfet/solver/beam/small_signal/roughness_slopes.hpp"

#include <array>

#include "workers/mosfet/kernels/transport/transport_cpu.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kStep = 1e-4;  // eV and V

}  // namespace

RoughnessSlopes::RoughnessSlopes(const FieldResponse& response) : response_(response) {
  if (response.roughness().empty()) return;
  const BeamDevice& device = response.device();
  const Structure& s = response.structure();
  const BeamGrid& grid = response.transport().geometry().grid;
  const auto nx = static_cast<std::size_t>(s.nx), nz = static_cast<std::size_t>(s.nz),
             np = static_cast<std::size_t>(s.subbands);
  for (std::size_t p = 0; p < np; ++p) {
    std::array<std::vector<double>, 2> moved;
    for (const int side : {0, 1}) {
      BeamLevels levels = response.levels();
      for (std::size_t at = 0; at < levels.edge_ev.size(); ++at)
        if (at / nx % np == p) levels.edge_ev[at] += side == 0 ? -kStep : kStep;
      moved[side] = device.elastic.roughness(device.problem, grid, levels, response.subbands().psi);
    }
    std::vector<double>& slope = by_level_.emplace_back(moved[0].size());
    for (std::size_t at = 0; at < slope.size(); ++at)
      slope[at] = (moved[1][at] - moved[0][at]) / (2.0 * kStep);
  }
  const std::size_t levels = static_cast<std::size_t>(s.n_families()) * np,
                    pairs = levels * levels * nx;
  by_wave_.resize(pairs * nz);
  for (std::size_t j = 1; j + 1 < nz; ++j) {
    std::array<std::vector<double>, 2> moved;
    for (const int side : {0, 1}) {
      std::vector<double> potential = response.potential_v();
      for (std::size_t i = 0; i < nx; ++i) potential[i * nz + j] += side == 0 ? -kStep : kStep;
      moved[side].resize(pairs);
      roughness_strengths(device.problem, solve_subbands(s, potential).psi.data(),
                          moved[side].data());
    }
    for (std::size_t at = 0; at < pairs; ++at)
      if (const double sum = moved[1][at] + moved[0][at]; sum > 0.0)
        by_wave_[at * nz + j] = (moved[1][at] - moved[0][at]) / (sum * kStep);
  }
}

RoughnessSlopes::Found RoughnessSlopes::of(const std::vector<double>& slopes) const {
  const Structure& s = response_.structure();
  const auto nx = static_cast<std::size_t>(s.nx), nz = static_cast<std::size_t>(s.nz),
             np = static_cast<std::size_t>(s.subbands),
             nk = static_cast<std::size_t>(response_.transport().geometry().grid.n_h),
             levels = static_cast<std::size_t>(s.n_families()) * np;
  Found found{std::vector<double>(response_.level_of().size() * nx, 0.0),
              std::vector<double>(nx * nz, 0.0)};
  for (std::size_t column = 0; column < slopes.size() / nk; ++column) {
    const std::size_t i = column % nx, state = column / nx / np, other = column / nx % np;
    double change = 0.0;  // of the function per change of ln|F|²
    for (std::size_t at = column * nk; at < (column + 1) * nk; ++at) {
      change += slopes[at] * response_.roughness()[at];
      for (std::size_t p = 0; p < np; ++p)
        found.level[(state / np * np + p) * nx + i] += slopes[at] * by_level_[p][at];
    }
    const std::size_t partner = state / np * np + other;
    const auto pair = static_cast<std::size_t>(response_.level_of()[state]) * levels +
                      static_cast<std::size_t>(response_.level_of()[partner]);
    for (std::size_t j = 0; j < nz; ++j)
      if (response_.boundary().fixed[i * nz + j] == 0)
        found.potential[i * nz + j] += change * by_wave_[(pair * nx + i) * nz + j];
  }
  return found;
}

}  // namespace quasi::mosfet
