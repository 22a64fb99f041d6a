#include "workers/gw/solver/perturbation/response/vxc_change.hpp"

#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"
#include "workers/gw/solver/mean_field/xc/local_density.hpp"
#include "workers/gw/solver/perturbation/coupling_parts.hpp"
#include "workers/gw/solver/perturbation/displaced_files/file_displacement.hpp"
#include "workers/gw/solver/perturbation/response/density_response.hpp"

namespace quasi::gw {

std::vector<Perturbation> vxc_changes(const DisplacedCrystal& displaced,
                                      const std::vector<Perturbation>& potentials,
                                      const MeanField& field, GwKernels& kernels) {
  std::vector<Perturbation> changes;
  if (potentials.empty()) return changes;
  const Vec3 q = potentials.front().p;
  if (displaced.files != nullptr) {
    for (const FileDisplacement& made : *displaced.files)
      if (made.has_vxc) changes.push_back(made.vxc_at(q));
    return changes;
  }
  if (!displaced.local_density) return changes;
  const auto response = density_response(
      potentials, field, empirical_states(displaced.crystal, field.crystal(), kernels));
  const LocalDensity local(field.density);
  for (const std::vector<Cplx>& change : response.change) {
    const std::vector<Cplx> values = local.potential_change(response.g, change);
    PotentialElements elements;
    for (std::size_t i = 0; i < values.size(); ++i) elements.emplace_back(response.g[i], values[i]);
    changes.push_back(local_perturbation("V_xc", q, elements));
  }
  return changes;
}

void add_matrices(const std::vector<Perturbation>& changes, const MeanField& field,
                  const SigmaOptions& options, GwKernels& kernels,
                  std::vector<Cplx> ElementsAtK::*matrix, std::vector<ElementsAtK>& elements) {
  if (changes.empty()) return;
  const Vec3 k = field.waves.k[static_cast<std::size_t>(options.kpoints.front())];
  const BraPoint bra = bra_point(k, changes.front().p);
  const auto outer = [&](const Vec3& at) {
    return waves_at(field, at, 0, options.band_min - 1, options.band_max,
                    sum_box(field, field.waves.header.g));
  };
  const WavesAtPoint left = outer(bra.k), right = outer(k);
  const std::int64_t n = right.waves.coefficients.extent[0];
  const auto block = kernels.hamiltonian().make_couplings();
  for (std::size_t d = 0; d < changes.size(); ++d) {
    std::vector<Cplx>& to = elements[d].*matrix;
    to.resize(static_cast<std::size_t>(n * n));
    coupling_parts({changes[d]}, k, left, bra.umklapp, right, kernels)->of_kets({0, n}, *block);
    block->read(view<Cplx>(to, 1, n, n));
  }
}

}  // namespace quasi::gw
