#include <algorithm>
#include <cmath>
#include <cstdint>

#include "workers/backend/stopwatch.hpp"
#include "workers/gw/solver/calculation/cost/cost_estimate.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

/// Times the diagonalisation of a smaller matrix and scales it to the order of H.
double seconds_of_states(const MeanField& field, GwKernels& kernels) {
  constexpr std::int64_t kOrderOnCpu = 200, kOrderOnDevice = 1024;
  const auto n = static_cast<std::int64_t>(field.waves.waves[0].g.size()) * field.n_spinor(),
             order = std::min(
                 n, kernels.device().backend == Backend::kCpu ? kOrderOnCpu : kOrderOnDevice);
  std::vector<Cplx> h(static_cast<std::size_t>(order * order), Cplx{0.01, 0.0}), states(h.size());
  std::vector<double> energies(static_cast<std::size_t>(order));
  for (std::int64_t i = 0; i < order; ++i)
    h[static_cast<std::size_t>(i * (order + 1))] = static_cast<double>(i);
  double seconds = 0.0;
  for (int turn = 0; turn < 2; ++turn) {  // The first turn allocates memory.
    const Stopwatch clock;
    kernels.dense().eigen_hermitian(view<const Cplx>(h, order, order),
                                    view<double>(energies, order),
                                    view<Cplx>(states, order, order));
    seconds = clock.seconds();
  }
  return seconds * std::pow(static_cast<double>(n) / static_cast<double>(order), 3);
}

}  // namespace

SamplingWork sampling_work(const MeanField& field, const SigmaOptions& options, int samples,
                           GwKernels& kernels) {
  SamplingWork work;
  if (samples == 0) return work;
  work.state_s = seconds_of_states(field, kernels);
  const auto& symmetries = field.transfers().operations();
  // States at k + q have the symmetry that leaves q where it is.
  work.epsilon_states =
      samples *
      static_cast<double>(
          orbits(field.zone, little_group(field.zone.operations(), field.q0, true)).size());
  const BrillouinZone images({field.q0}, symmetries, 0, "images of q0");
  const IVec3& grid = field.waves.k_grid;
  const bool even = (grid[0] == 1 || grid[0] % 2 == 0) && (grid[1] == 1 || grid[1] % 2 == 0);
  for (const int ik : options.kpoints) {
    const Vec3& k = field.waves.k[static_cast<std::size_t>(ik)];
    const std::vector<int> own =
        options.reduce_q ? little_group(symmetries, k, false) : std::vector<int>{};
    const double of_sample = options.reduce_q ? static_cast<double>(orbits(images, own).size())
                                              : static_cast<double>(images.size());
    double of_grid = 0.0;
    for (const auto& [iq, members] : q_points_by_star(field, k, options.reduce_q))
      of_grid += static_cast<double>(members.size());
    work.sigma_states += samples * of_sample;
    // The point q → 0 once more, and the coarse grid whose sum shows the error.
    work.sigma_points += samples * of_sample + 1.0 + of_grid / (even ? 4.0 : 9.0);
  }
  return work;
}

}  // namespace quasi::gw
