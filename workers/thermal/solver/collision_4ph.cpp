#include "workers/thermal/solver/collision_4ph.hpp"

#include <algorithm>

#include "workers/thermal/solver/tile_queue.hpp"

namespace quasi::thermal {

Collision4ph::Collision4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                           std::vector<ScatteringKernels4ph*> kernels, const Rates4ph& rates,
                           bool symmetric, Progress& progress)
    : problem_(problem), kernels_(std::move(kernels)), rates_(rates), symmetric_(symmetric),
      progress_(progress), temperature_(problem.temperatures_k.size()) {
  const double n_q = static_cast<double>(problem.mesh.size());
  rate_constant_ = constants.rate_4ph / (n_q * n_q);
  const auto n_points = static_cast<std::int32_t>(problem.point.size());
  const auto n_devices = static_cast<std::int32_t>(kernels_.size());
  std::int64_t fit = n_points;
  for (const auto* kernel : kernels_) fit = std::min(fit, kernel->collision_points_that_fit());
  const std::int32_t share = (n_points + n_devices - 1) / n_devices;
  recomputes_ = share > fit;
  const auto size = static_cast<std::int32_t>(std::min<std::int64_t>(share, fit));
  for (std::int32_t first = 0; first < n_points; first += size)
    chunks_.push_back({first, std::min(n_points, first + size), chunks_.size() % kernels_.size()});
  out_per_ps_.resize(problem.point.size() * static_cast<std::size_t>(problem.n_branches));
}

void Collision4ph::build(std::size_t t, const Chunk& chunk) {
  ScatteringKernels4ph& kernels = *kernels_[chunk.device];
  const auto nb = static_cast<std::int64_t>(problem_.n_branches);
  const auto n_q = static_cast<std::int32_t>(problem_.mesh.size());
  CollisionRequest4ph request{.temperature = static_cast<int>(t), .symmetric = symmetric_,
                              .first_point = chunk.first_point, .last_point = chunk.last_point, .row_size = {}};
  for (std::int64_t row = chunk.first_point * nb; row < chunk.last_point * nb; ++row)
    request.row_size.push_back(rates_.total_per_ps(static_cast<int>(t), row) / rate_constant_);
  kernels.begin_collision(request);
  std::vector<double> out;
  while (out.empty()) {
    for (std::int32_t first = 0; first < n_q; first += kTotalsPerTile4ph) {
      if (stop_) return;
      kernels.add_collision(first, std::min(n_q, first + kTotalsPerTile4ph));
      if (chunk.device == 0) progress_.report("collision 4ph", std::min(n_q, first + kTotalsPerTile4ph), n_q);
    }
    out = kernels.finish_collision();
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    out_per_ps_[static_cast<std::size_t>(chunk.first_point * nb) + i] = rate_constant_ * out[i];
}

void Collision4ph::prepare(std::size_t t) {
  if (temperature_ == t) return;
  on_every_device(kernels_.size(), stop_, [&](std::size_t device) {
    for (const Chunk& chunk : chunks_)
      if (chunk.device == device) build(t, chunk);
  });
  temperature_ = t;
}

std::vector<double> Collision4ph::out_scattering(std::size_t t) {
  prepare(t);
  return out_per_ps_;
}

std::vector<double> Collision4ph::in_scattering(std::size_t t, const std::vector<double>& f) {
  if (!recomputes_) prepare(t);
  std::vector<double> result(3 * out_per_ps_.size());
  on_every_device(kernels_.size(), stop_, [&](std::size_t device) {
    for (const Chunk& chunk : chunks_) {
      if (chunk.device != device || stop_) continue;
      if (recomputes_) build(t, chunk);
      const std::vector<double> part = kernels_[device]->apply_collision(f);
      const auto at = static_cast<std::ptrdiff_t>(3 * chunk.first_point * problem_.n_branches);
      std::transform(part.begin(), part.end(), result.begin() + at, [&](double x) { return rate_constant_ * x; });
    }
  });
  return result;
}

}  // namespace quasi::thermal
