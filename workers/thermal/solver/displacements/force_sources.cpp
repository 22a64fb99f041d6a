#include "workers/thermal/solver/displacements/force_sources.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/thermal/physics/stillinger_weber.hpp"

namespace quasi::thermal {
namespace {

constexpr double kSameCell_angstrom = 1e-4;
constexpr double kSameMove = 0.02;      ///< as a share of the displacement
constexpr double kLargestDrift = 0.02;  ///< of the sum of forces, as a share of their largest

struct Neighbour {
  int atom;
  Vec3 apart_angstrom;
};

/// Returns the neighbours of every atom within a distance, periodic images included.
std::vector<std::vector<Neighbour>> neighbours(const PhonopyCell& cell, double cutoff_angstrom) {
  const Mat3& a = cell.lattice_angstrom;
  const double volume = std::fabs(determinant(a));
  Index3 reach;
  for (int i = 0; i < 3; ++i)
    reach[i] = 1 + static_cast<int>(std::ceil(
                       cutoff_angstrom * length(cross(a[(i + 1) % 3], a[(i + 2) % 3])) / volume));
  std::vector<std::vector<Neighbour>> near(cell.position.size());
  for (int atom = 0; atom < cell.n_atoms(); ++atom)
    for (int other = 0; other < cell.n_atoms(); ++other) {
      const Vec3 direct = cell.cartesian_angstrom(other) - cell.cartesian_angstrom(atom);
      for (int i = -reach[0]; i <= reach[0]; ++i)
        for (int j = -reach[1]; j <= reach[1]; ++j)
          for (int k = -reach[2]; k <= reach[2]; ++k) {
            const Vec3 apart = direct + double(i) * a[0] + double(j) * a[1] + double(k) * a[2];
            const double distance = length(apart);
            if (distance > 1e-6 && distance < cutoff_angstrom) near[atom].push_back({other, apart});
          }
    }
  return near;
}

std::string frame_name(const std::string& file, std::size_t frame) {
  return file + ", frame " + std::to_string(frame) + ": ";
}

void check_lattice(const PhonopyCell& planned, const ForceFrame& frame, const std::string& where) {
  for (int i = 0; i < 3; ++i)
    if (length(frame.lattice_angstrom[i] - planned.lattice_angstrom[i]) > kSameCell_angstrom)
      throw InvalidInput(
          where + "vector " + std::to_string(i + 1) +
          " of the cell differs from the planned supercell by " +
          std::to_string(length(frame.lattice_angstrom[i] - planned.lattice_angstrom[i])) +
          " Å (limit 0.0001): these forces belong to another supercell");
}

void check_positions(const PhonopyCell& planned, const ForceFrame& frame, double limit_angstrom,
                     const std::string& where) {
  const Mat3 columns = transpose(planned.lattice_angstrom);
  const Mat3 to_fractional = inverse(columns);
  for (int site = 0; site < planned.n_atoms(); ++site) {
    const std::string atom = "atom " + std::to_string(site + 1);
    if (frame.symbol[site] != planned.symbol[site])
      throw InvalidInput(where + atom + " is " + frame.symbol[site] + " where the plan has " +
                         planned.symbol[site] + ": keep the order of the atoms");
    Vec3 apart = to_fractional * frame.position_angstrom[site] - planned.position[site];
    for (double& x : apart) x -= std::round(x);
    const double distance = length(columns * apart);
    if (distance > limit_angstrom)
      throw InvalidInput(where + atom + " lies " + std::to_string(distance) +
                         " Å from its planned position (limit " + std::to_string(limit_angstrom) +
                         "): keep the order of the frames and relax no atom");
  }
}

/// Checks forces without positions: those on displaced atoms must drive them back. This notices
/// frames or atoms in another order.
void check_work(const PhonopyCell& at_rest, const PhonopyCell& planned, const ForceFrame& frame,
                const std::string& where) {
  const Mat3 columns = transpose(planned.lattice_angstrom);
  double work = 0.0, largest = 0.0;
  for (int site = 0; site < planned.n_atoms(); ++site) {
    const Vec3 move = columns * (planned.position[site] - at_rest.position[site]);
    work += dot(move, frame.force_ev_per_angstrom[static_cast<std::size_t>(site)]);
    largest = std::max(largest, length(move));
  }
  if (largest > 0.0 && !(work < 0.0))
    throw InvalidInput(where +
                       "the forces do not drive the displaced atoms back: give the forces of the "
                       "cells of displacements.xyz, and keep the order of frames and atoms");
}

void check_sum(const ForceFrame& frame, const std::string& where) {
  Vec3 sum{};
  double largest = 0.0;
  for (const Vec3& force : frame.force_ev_per_angstrom) {
    sum = sum + force;
    largest = std::max(largest, length(force));
  }
  if (!(largest > 0.0))
    throw InvalidInput(where + "all forces are zero: the calculation did not write them");
  if (length(sum) > kLargestDrift * largest)
    throw InvalidInput(where + "the forces add up to " + std::to_string(length(sum)) +
                       " eV/Å, more than 0.02 of the largest, " + std::to_string(largest) +
                       ": converge the calculation more tightly");
}

}  // namespace

std::vector<Vec3> stillinger_weber_forces(const PhonopyCell& cell) {
  const StillingerWeberPotential potential;
  const auto near = neighbours(cell, potential.cutoff_angstrom());
  std::vector<Vec3> force(cell.position.size(), Vec3{});
  for (int atom = 0; atom < cell.n_atoms(); ++atom)
    for (const Neighbour& j : near[atom]) {
      // Each bond appears once from either end, so the slope acts on this end alone.
      const double distance = length(j.apart_angstrom);
      force[atom] = force[atom] + (potential.pair_slope(distance) / distance) * j.apart_angstrom;
      for (const Neighbour& k : near[atom]) {
        if (&j == &k) continue;
        const Vec3 on_j = potential.bend_force(j.apart_angstrom, k.apart_angstrom);
        force[j.atom] = force[j.atom] + on_j;
        force[atom] = force[atom] - on_j;
      }
    }
  return force;
}

std::vector<std::string> potential_names() { return {"stillinger-weber"}; }

PlanForces potential_forces(const DisplacementPlan& plan, const std::string& name) {
  if (name != "stillinger-weber")
    throw InvalidInput("no potential is named '" + name + "'; known: stillinger-weber");
  for (const std::string& symbol : plan.group().supercell().symbol)
    if (symbol != "Si")
      throw InvalidInput("the potential stillinger-weber describes Si, and the crystal contains " +
                         symbol + ": give a file of forces with collect --forces");
  PlanForces forces;
  for (std::size_t cell = 0; cell < plan.cells().size(); ++cell)
    forces.push_back(stillinger_weber_forces(plan.displaced(cell)));
  return forces;
}

PlanForces checked_forces(const DisplacementPlan& plan, const std::vector<ForceFrame>& frames,
                          const std::string& file) {
  if (frames.size() != plan.cells().size())
    throw InvalidInput(file + " has " + std::to_string(frames.size()) +
                       " frames, and the plan has " + std::to_string(plan.cells().size()) +
                       " cells: give the forces of every cell in the order of displacements.xyz");
  PlanForces forces;
  for (std::size_t cell = 0; cell < frames.size(); ++cell) {
    const PhonopyCell planned = plan.displaced(cell);
    const std::string where = frame_name(file, cell);
    if (frames[cell].force_ev_per_angstrom.size() != planned.position.size())
      throw InvalidInput(where + std::to_string(frames[cell].force_ev_per_angstrom.size()) +
                         " atoms, and the supercell has " +
                         std::to_string(planned.position.size()));
    if (frames[cell].position_angstrom.empty()) {
      check_work(plan.group().supercell(), planned, frames[cell], where);
    } else {
      check_lattice(planned, frames[cell], where);
      check_positions(planned, frames[cell], kSameMove * plan.options().distance_angstrom, where);
    }
    if (cell > 0) check_sum(frames[cell], where);
    forces.push_back(frames[cell].force_ev_per_angstrom);
  }
  return forces;
}

}  // namespace quasi::thermal
