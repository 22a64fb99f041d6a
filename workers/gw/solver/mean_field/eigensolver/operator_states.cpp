#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"

#include <algorithm>
#include <cstdlib>

#include "workers/gw/kernels/hamiltonian/hamiltonian_kernels_cpu.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/mean_field/gauge.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

PotentialElements elements_of(const PlaneWaveField& field, int spin) {
  const auto& values = field.values[static_cast<std::size_t>(
      std::min<int>(spin, static_cast<int>(field.values.size()) - 1))];
  PotentialElements elements;
  for (std::size_t i = 0; i < values.size(); ++i)
    elements.emplace_back(field.header.g[i], values[i]);
  return elements;
}

}  // namespace

HamiltonianParts local_parts(const Crystal& crystal, const Vec3& k, const std::vector<IVec3>& g,
                             const PotentialElements& potential) {
  HamiltonianParts parts;
  IVec3 low = g.at(0), high = g.at(0), reach{};
  for (const IVec3& v : g) {
    const Vec3 p = k + to_real(v);
    parts.kinetic_ry.push_back(metric_dot(crystal.bdot, p, p));
    for (int i = 0; i < 3; ++i) {
      low[i] = std::min(low[i], v[i]);
      high[i] = std::max(high[i], v[i]);
    }
  }
  const IVec3 width = high - low;
  const auto connects = [&](const IVec3& v) {
    return std::abs(v[0]) <= width[0] && std::abs(v[1]) <= width[1] && std::abs(v[2]) <= width[2];
  };
  for (const auto& [v, value] : potential)
    for (int i = 0; i < 3 && connects(v); ++i) reach[i] = std::max(reach[i], std::abs(v[i]));
  // The product V ψ reaches from low − reach to high + reach. Its edges may wrap around, but not
  // onto the sphere.
  for (int i = 0; i < 3; ++i) parts.box[i] = good_fft_size(width[i] + reach[i] + 1);
  for (const IVec3& v : g) parts.box_index.push_back(box_position(v, parts.box));
  for (const auto& [v, value] : potential)
    if (connects(v)) parts.potential_ry.emplace_back(box_position(v, parts.box), value);
  return parts;
}

HamiltonianParts hamiltonian_parts(const Wavefunctions& waves, int k_index, int spin,
                                   const PlaneWaveField& potential, const Projectors& projectors) {
  const auto ik = static_cast<std::size_t>(k_index);
  HamiltonianParts parts = local_parts(waves.header.crystal, waves.k[ik], waves.waves[ik].g,
                                       elements_of(potential, spin));
  ProjectorProducts products = projectors_of_point(waves, k_index, spin, projectors);
  parts.beta = std::move(products.beta);
  parts.right = std::move(products.right);
  return parts;
}

HamiltonianParts hamiltonian_parts_at(const Crystal& crystal, const Vec3& k,
                                      const std::vector<IVec3>& g, int spin,
                                      const PlaneWaveField& potential,
                                      const RadialProjectors& projectors) {
  HamiltonianParts parts = local_parts(crystal, k, g, elements_of(potential, spin));
  ProjectorProducts products = projectors_at(crystal, k, g, spin, projectors);
  parts.beta = std::move(products.beta);
  parts.right = std::move(products.right);
  return parts;
}

LowestStates operator_states(HamiltonianParts parts, const std::vector<IVec3>& g, int n_bands,
                             const EigensolverOptions& options, HamiltonianKernels& kernels) {
  const HamiltonianOperator h(std::move(parts));
  CpuHamiltonianKernels cpu;
  LowestStates states =
      lowest_states(h, h.size() < kLeastOrderOnGpu ? cpu : kernels, n_bands, options);
  fix_gauge(g, states.energy_ry, kDegenerateStates_ry, states.coefficients, h.parts().n_spinor);
  states.energy_ry.resize(static_cast<std::size_t>(n_bands));
  states.coefficients.resize(static_cast<std::size_t>(n_bands * h.size()));
  return states;
}

void log_residual(const EigensolverOptions& options, double largest_residual_ry,
                  Progress& progress) {
  if (options.method != Eigensolver::kOperator) return;
  progress.log("the eigensolver's largest residual is " + shown(largest_residual_ry) +
               " Ry (meanfield.residual_ry = " + shown(options.residual_ry) + ")");
}

}  // namespace quasi::gw
