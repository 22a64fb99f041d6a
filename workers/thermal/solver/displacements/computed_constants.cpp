#include "workers/thermal/solver/displacements/computed_constants.hpp"

#include "workers/thermal/solver/displacements/force_sources.hpp"

namespace quasi::thermal {
namespace {

PhonopyCell cell_of(const Control& control, const Crystal& crystal) {
  PhonopyCell cell;
  for (int i = 0; i < 3; ++i) cell.lattice_angstrom[i] = 10.0 * crystal.lattice_nm[i];
  cell.position = crystal.position;
  for (const int type : control.types)
    cell.symbol.push_back(control.elements[static_cast<std::size_t>(type - 1)]);
  return cell;
}

DisplacementOptions options_of(const Control& control) {
  const bool fourth = control.renormalise || (control.four_phonon && !control.only_harmonic);
  return {.supercell = control.supercell,
          .order = fourth ? 4 : (control.only_harmonic ? 2 : 3),
          .cutoff_3rd_angstrom = control.cutoff_3rd_angstrom,
          .cutoff_4th_angstrom = control.cutoff_4th_angstrom,
          .distance_angstrom = control.displacement_angstrom,
          .symprec_angstrom = 10.0 * control.symmetry_tolerance};
}

/// Lays pair constants out as SecondOrder does: the first atom in its cell, the second at the
/// origin.
SecondOrder second_order(const DisplacementPlan& plan, const ClusterConstants& constants,
                         double unit) {
  const SupercellGroup& group = plan.group();
  SecondOrder result{
      .supercell = plan.options().supercell, .n_atoms = group.n_atoms(), .value = {}};
  const auto n_cells = static_cast<std::size_t>(result.n_cells());
  const auto n_atoms = static_cast<std::size_t>(group.n_atoms());
  result.value.assign(n_atoms * n_atoms * n_cells * 9, 0.0);
  for (std::size_t origin = 0; origin < n_atoms; ++origin)
    for (std::size_t site = 0; site < n_atoms * n_cells; ++site) {
      const std::vector<double>& tensor =
          constants.at({group.at_origin(static_cast<int>(origin)), static_cast<int>(site)});
      double* block =
          &result.value[((site / n_cells * n_atoms + origin) * n_cells + site % n_cells) * 9];
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) block[b * 3 + a] = unit * tensor[a * 3 + b];
    }
  return result;
}

}  // namespace

ComputedConstants computed_constants(const Control& control, const Crystal& crystal) {
  const DisplacementPlan plan(cell_of(control, crystal), options_of(control));
  const PlanForces forces = potential_forces(plan, control.forces);
  const auto sparse = [&](int order) {
    return sparse_constants(plan, finite_differences(plan, forces, order), order);
  };
  ComputedConstants computed{.second = second_order(plan, finite_differences(plan, forces, 2),
                                                    control.constants().ev_per_a2_amu_to_omega2),
                             .third = {},
                             .fourth = {}};
  if (!control.only_harmonic) computed.third = sparse(3);
  if (plan.options().order == 4) computed.fourth = sparse(4);
  return computed;
}

SparseForceConstants sparse_constants(const DisplacementPlan& plan,
                                      const ClusterConstants& constants, int order) {
  const SupercellGroup& group = plan.group();
  SparseForceConstants sparse;
  sparse.order = order;
  for (const auto& [cluster, tensor] : constants) {
    const int first = group.atom_of(cluster[0]);
    std::vector<int> key;
    for (const int site : cluster) key.push_back(group.atom_of(site));
    for (std::size_t k = 1; k < cluster.size(); ++k)
      for (const int x : group.nearest_cell(first, cluster[k])) key.push_back(x);
    sparse.append(key, tensor);
  }
  sparse.blocks_read = sparse.n_blocks();
  return sparse;
}

}  // namespace quasi::thermal
