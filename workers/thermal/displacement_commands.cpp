#include "workers/thermal/displacement_commands.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/displacements/force_files.hpp"
#include "workers/thermal/input/phonopy/phonopy_deck.hpp"
#include "workers/thermal/output/displacements/displacement_files.hpp"
#include "workers/thermal/solver/displacements/computed_constants.hpp"
#include "workers/thermal/solver/displacements/force_sources.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

constexpr double kLargeForce_ev_per_angstrom = 0.01;

void make_directory(const fs::path& directory) {
  std::error_code failure;
  fs::create_directories(directory, failure);
  if (failure)
    throw StorageError("cannot create '" + directory.string() + "': " + failure.message());
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw InvalidInput("'" + file.string() + "' is missing or cannot be read");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

DisplacementOptions read_plan(const fs::path& file) {
  try {
    const nlohmann::json plan = nlohmann::json::parse(content_of(file));
    return {.supercell = plan.at("supercell").get<Index3>(),
            .order = plan.at("order").get<int>(),
            .cutoff_3rd_angstrom = plan.at("cutoff_3rd_angstrom").get<double>(),
            .cutoff_4th_angstrom = plan.at("cutoff_4th_angstrom").get<double>(),
            .distance_angstrom = plan.at("distance_angstrom").get<double>(),
            .symprec_angstrom = plan.at("symprec_angstrom").get<double>()};
  } catch (const nlohmann::json::exception& failure) {
    throw InvalidInput("'" + file.string() + "' is no plan of displacements (" + failure.what() +
                       "): run quasi-engine displace again");
  }
}

double largest_force(const std::vector<Vec3>& forces) {
  double largest = 0.0;
  for (const Vec3& force : forces) largest = std::max(largest, length(force));
  return largest;
}

PlanForces forces_of(const DisplacementPlan& plan, const std::vector<std::string>& sources) {
  const std::vector<std::string> names = potential_names();
  for (const std::string& source : sources) {
    const bool is_potential = std::find(names.begin(), names.end(), source) != names.end();
    if (is_potential && sources.size() == 1) return potential_forces(plan, source);
    if (!fs::exists(source))
      throw InvalidInput("--forces: '" + source +
                         "' is neither a file nor a potential; known potentials: stillinger-weber");
  }
  std::vector<ForceFrame> frames;
  for (const std::string& source : sources)
    for (ForceFrame& frame : read_force_file(source)) frames.push_back(std::move(frame));
  return checked_forces(plan, frames,
                        sources.size() == 1 ? fs::path(sources.front()).filename().string()
                                            : "the files of --forces");
}

}  // namespace

std::string displace(const fs::path& poscar, const DisplacementOptions& options,
                     const fs::path& directory) {
  const DisplacementPlan plan(read_poscar(poscar), options);
  make_directory(directory);
  write_text(directory / "POSCAR", content_of(poscar));
  write_plan(directory / "displacements.json", options);
  write_displaced_cells(directory / "displacements.xyz", plan);
  std::ostringstream report;
  report << "operations kept by the supercell: " << plan.group().n_operations()
         << "\natoms in the supercell: " << plan.group().n_sites()
         << "\ncells to compute: " << plan.cells().size() << '\n'
         << (directory / "displacements.xyz").string() << '\n';
  return report.str();
}

std::string collect(const fs::path& plan_directory, const std::vector<std::string>& sources,
                    const fs::path& directory) {
  PhonopyCells cells;
  cells.primitive = read_poscar(plan_directory / "POSCAR");
  const DisplacementPlan plan(cells.primitive, read_plan(plan_directory / "displacements.json"));
  const PlanForces forces = forces_of(plan, sources);
  make_directory(directory);
  write_text(directory / "CONTROL", control_text(cells, plan.options().supercell));
  write_second_order(directory / "FORCE_CONSTANTS_2ND", plan, finite_differences(plan, forces, 2));
  std::ostringstream report;
  report << "cells read: " << forces.size() << '\n';
  const double residual = largest_force(forces[0]);
  report << "largest force without displacement: " << residual << " eV/Å\n";
  if (residual > kLargeForce_ev_per_angstrom)
    report << "warning: this exceeds 0.01 eV/Å: relax the positions before displace\n";
  for (int order = 3; order <= plan.options().order; ++order) {
    const SparseForceConstants constants =
        sparse_constants(plan, finite_differences(plan, forces, order), order);
    const std::string name = order == 3 ? "FORCE_CONSTANTS_3RD" : "FORCE_CONSTANTS_4TH";
    write_sparse_constants(directory / name, cells.primitive.lattice_angstrom, constants);
    report << name << ": " << constants.n_blocks() << " blocks, sum rule broken by "
           << sum_rule_violation(constants) << " of the largest element\n";
  }
  report << directory.string() << '\n';
  return report.str();
}

}  // namespace quasi::thermal
