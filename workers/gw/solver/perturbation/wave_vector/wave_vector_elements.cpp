#include "workers/gw/solver/perturbation/wave_vector/wave_vector_elements.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/model/grid_vector.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/displaced_files/file_displacement.hpp"
#include "workers/gw/solver/perturbation/response/vxc_change.hpp"
#include "workers/gw/solver/perturbation/state_coupling.hpp"
#include "workers/gw/solver/perturbation/wave_vector/long_range.hpp"
#include "workers/gw/solver/perturbation/zero_point_modes.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

/// Returns a name for messages and parts of a checkpoint, such as "atom 1 x, q 0.5 0 0".
std::string name_of(const Displacement& displacement, const Vec3& q) {
  char text[120];
  std::snprintf(text, sizeof text, "%s, q %.9g %.9g %.9g", displacement.name().c_str(), q[0], q[1],
                q[2]);
  return text;
}

std::vector<Perturbation> perturbations_at(const DisplacedCrystal& displaced,
                                           const Crystal& crystal,
                                           const std::vector<Displacement>& list, const Vec3& q) {
  std::vector<Perturbation> perturbations;
  if (displaced.files != nullptr) {
    for (const FileDisplacement& made : *displaced.files) {
      perturbations.push_back(made.potential_at(q));
      perturbations.back().name = name_of(made.displacement, q);
    }
    return perturbations;
  }
  for (const Displacement& d : list) {
    perturbations.push_back(atom_displacement(displaced.crystal, crystal, d.atom - 1,
                                              unit_vector(d.direction),
                                              {.p = q, .all_lengths = true}));
    perturbations.back().name = name_of(d, q);
  }
  return perturbations;
}

/// Returns the energies of the bras and then those of the kets.
std::vector<double> energies_of(const MeanField& field, const SigmaOptions& options, int bra_index,
                                int ket_index) {
  std::vector<double> energies_ry;
  for (const int k_index : {bra_index, ket_index})
    for (int band = options.band_min; band <= options.band_max; ++band)
      energies_ry.push_back(field.waves.energy(0, k_index, band - 1));
  return energies_ry;
}

}  // namespace

PerturbationRequest request_on_grid(PerturbationRequest request, const MeanField& field) {
  std::vector<Vec3> fitted;
  for (const Vec3& q : request.wave_vectors) {
    const GridVector at = nearest_grid_vector(q, field.waves.k_grid);
    if (at.axis_off_grid) {
      const auto axis = static_cast<std::size_t>(*at.axis_off_grid);
      throw InvalidInput("perturbation.q holds " + shown(q[axis]) + " along b" +
                         std::to_string(axis + 1) +
                         ", but WFN has the k-point k + q only at multiples of 1/" +
                         std::to_string(std::max(1, field.waves.k_grid[axis])) +
                         " within 0.001; choose one, or give a WFN with that grid");
    }
    if (std::find(fitted.begin(), fitted.end(), at.q) != fitted.end())
      throw InvalidInput(
          "perturbation.q names one wave vector twice, up to a reciprocal lattice vector; name it "
          "once");
    fitted.push_back(at.q);
  }
  request.wave_vectors = std::move(fitted);
  return request;
}

std::vector<WaveVectorElements> wave_vector_elements(const DisplacedCrystal& displaced,
                                                     const MeanField& field,
                                                     const std::vector<DielectricMatrix>& epsilon,
                                                     SigmaOptions options,
                                                     const StepContext& context) {
  const std::vector<int> k_index = std::exchange(options.kpoints, {});
  options.slope = false;
  const auto list = displacements_of(displaced, field.crystal());
  std::vector<WaveVectorElements> found;
  for (const Vec3& q : displaced.request.wave_vectors) {
    const auto perturbations = perturbations_at(displaced, field.crystal(), list, q);
    const auto vxc = vxc_changes(displaced, perturbations, field, context.team.first());
    const auto long_range = long_range_parts(displaced.request, list, field.crystal(), q);
    WaveVectorElements at_q{.q = q,
                            .k_plus_q = {},
                            .elements = {.displacements = list,
                                         .k_index = k_index,
                                         .bra_index = {},
                                         .band_min = options.band_min,
                                         .band_max = options.band_max},
                            .phonons = {}};
    at_q.elements.at.resize(list.size());
    StepTimes times;
    for (const int ik : k_index) {
      const Vec3 bra = bra_point(field.waves.k[static_cast<std::size_t>(ik)], q).k;
      at_q.k_plus_q.push_back(bra);
      at_q.elements.bra_index.push_back(field.zone.rotation_to(bra).irreducible);
      const std::vector<double> energies_ry =
          energies_of(field, options, at_q.elements.bra_index.back(), ik);
      options.kpoints = {ik};
      const auto derivatives = sigma_derivatives(
          field, epsilon, options, DerivativeRequest{perturbations, energies_ry, &times}, context);
      std::vector<ElementsAtK> at_k;
      for (const auto& derivative : derivatives) at_k.push_back(at_bra_and_ket(derivative.front()));
      add_matrices(vxc, field, options, context.team.first(), &ElementsAtK::vxc, at_k);
      add_matrices(long_range, field, options, context.team.first(), &ElementsAtK::long_range,
                   at_k);
      if (displaced.request.check_step_bohr > 0.0)
        add_wave_differences(field, epsilon, options,
                             {perturbations, energies_ry, displaced.request.check_step_bohr},
                             {context.coulomb, context.team.first(), context.progress}, at_k);
      for (std::size_t d = 0; d < list.size(); ++d)
        at_q.elements.at[d].push_back(std::move(at_k[d]));
    }
    at_q.elements.seconds = times.seconds();
    if (!displaced.request.modes_at_q.empty())
      at_q.phonons =
          mode_elements(zero_point_modes_at(displaced.request.modes_at_q, q, field.crystal()),
                        at_q.elements, field.waves);
    found.push_back(std::move(at_q));
  }
  return found;
}

}  // namespace quasi::gw
