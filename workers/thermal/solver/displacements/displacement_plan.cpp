#include "workers/thermal/solver/displacements/displacement_plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

constexpr double kTie_angstrom = 1e-4;  ///< a distance that exceeds a cutoff by less is within it
constexpr double kKeySteps = 1e6;       ///< resolution of a displacement, as a share of its length

std::string decimal(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  return text.back() == '.' ? text + "0" : text;
}

}  // namespace

bool advance_digits(std::vector<int>& digit, int base) {
  for (auto d = digit.rbegin(); d != digit.rend(); ++d) {
    if (++*d < base) return true;
    *d = 0;
  }
  return false;
}

DisplacementPlan::DisplacementPlan(const PhonopyCell& primitive, const DisplacementOptions& options)
    : group_(primitive, options.supercell, options.symprec_angstrom), options_(options) {
  if (options.order < 2 || options.order > 4)
    throw InvalidInput("--order is " + std::to_string(options.order) + "; give 2, 3 or 4");
  if (!(options.distance_angstrom > 0.0) || options.distance_angstrom > 0.5)
    throw InvalidInput("--distance-angstrom is " + decimal(options.distance_angstrom) +
                       "; give a length above 0 and up to 0.5 Å, usually 0.01 to 0.05");
  for (int order = 3; order <= options.order; ++order) check_cutoff(order);
  add({});
  for (int order = 2; order <= options.order; ++order) {
    std::set<Cluster> representatives;
    for (const Cluster& cluster : clusters(order))
      representatives.insert(orbit_of(cluster).representative);
    for (const Cluster& cluster : representatives) {
      std::vector<int> axes(static_cast<std::size_t>(order - 1), 0);
      do {
        for_each_difference(cluster, axes, [&](const DisplacedCell& cell, double) { add(cell); });
      } while (advance_digits(axes, 3));
    }
  }
}

double DisplacementPlan::cutoff(int order) const {
  return order == 3 ? options_.cutoff_3rd_angstrom : options_.cutoff_4th_angstrom;
}

void DisplacementPlan::check_cutoff(int order) const {
  const std::string key = order == 3 ? "--cutoff-3rd-angstrom (cutoff_3rd_angstrom of a deck)"
                                     : "--cutoff-4th-angstrom (cutoff_4th_angstrom of a deck)";
  const double limit = 0.5 * group_.shortest_period_angstrom();
  if (!(cutoff(order) > 0.0))
    throw InvalidInput(key + " is " + decimal(cutoff(order)) + "; order " + std::to_string(order) +
                       " needs a length above 0 and below " + decimal(limit) + " Å");
  if (cutoff(order) + kTie_angstrom >= limit)
    throw InvalidInput(key + " is " + decimal(cutoff(order)) +
                       "; it must be below half of the shortest period of the supercell, " +
                       decimal(limit) + " Å: lower it, or raise --supercell (scell of a deck)");
}

std::vector<Cluster> DisplacementPlan::clusters(int order) const {
  std::vector<Cluster> found;
  for (int atom = 0; atom < group_.n_atoms(); ++atom) {
    std::vector<int> near;
    for (int site = 0; site < group_.n_sites(); ++site)
      if (order == 2 || length(group_.nearest_vector(atom, site)) < cutoff(order) + kTie_angstrom)
        near.push_back(site);
    std::vector<int> pick(static_cast<std::size_t>(order - 1), 0);
    do {
      Cluster cluster{group_.at_origin(atom)};
      bool within = true;
      for (const int p : pick) {
        const Vec3& here = group_.nearest_vector(atom, near[p]);
        for (std::size_t other = 1; other < cluster.size() && within; ++other)
          within = length(here - group_.nearest_vector(atom, cluster[other])) <
                   cutoff(order) + kTie_angstrom;
        cluster.push_back(near[p]);
      }
      if (within || order == 2) found.push_back(std::move(cluster));
    } while (advance_digits(pick, static_cast<int>(near.size())));
  }
  return found;
}

DisplacementPlan::Orbit DisplacementPlan::orbit_of(const Cluster& cluster) const {
  Orbit best;
  const int n = static_cast<int>(cluster.size());
  for (int op = 0; op < group_.n_operations(); ++op)
    for (int first = 0; first < n; ++first) {
      const int anchor = group_.image(op, cluster[first]);
      std::vector<std::pair<int, int>> rest;  // image and slot
      for (int slot = 0; slot < n; ++slot)
        if (slot != first)
          rest.emplace_back(group_.relative_to(group_.image(op, cluster[slot]), anchor), slot);
      std::sort(rest.begin(), rest.end());
      Orbit orbit{{group_.relative_to(anchor, anchor)}, op, {first}};
      for (const auto& [image, slot] : rest) {
        orbit.representative.push_back(image);
        orbit.slot.push_back(slot);
      }
      if (best.slot.empty() || orbit.representative < best.representative) best = std::move(orbit);
    }
  return best;
}

std::pair<DisplacementPlan::Key, DisplacementPlan::Image> DisplacementPlan::canonical(
    const DisplacedCell& wanted) const {
  std::pair<Key, Image> best;
  for (int op = 0; op < group_.n_operations(); ++op)
    for (const DisplacedCell::Move& origin : wanted.moves) {
      const int anchor = group_.image(op, origin.site);
      Key key;
      for (const DisplacedCell::Move& move : wanted.moves) {
        const Vec3 by = group_.rotation(op) * move.by_angstrom;
        std::array<std::int64_t, 4> entry{group_.relative_to(group_.image(op, move.site), anchor)};
        for (int x = 0; x < 3; ++x)
          entry[x + 1] = std::llround(by[x] / options_.distance_angstrom * kKeySteps);
        key.push_back(entry);
      }
      std::sort(key.begin(), key.end());
      if (best.first.empty() || key < best.first) best = {std::move(key), Image{0, op, anchor}};
    }
  return best;
}

DisplacementPlan::Image DisplacementPlan::find(const DisplacedCell& wanted) const {
  auto [key, image] = canonical(wanted);
  image.cell = number_.at(key);
  return image;
}

void DisplacementPlan::add(const DisplacedCell& wanted) {
  auto [key, image] = canonical(wanted);
  if (!number_.try_emplace(key, cells_.size()).second) return;
  DisplacedCell cell;
  for (const DisplacedCell::Move& move : wanted.moves)
    cell.moves.push_back(
        {group_.relative_to(group_.image(image.operation, move.site), image.anchor),
         group_.rotation(image.operation) * move.by_angstrom});
  std::sort(cell.moves.begin(), cell.moves.end(),
            [](const auto& a, const auto& b) { return a.site < b.site; });
  cells_.push_back(std::move(cell));
}

DisplacedCell DisplacementPlan::moved_cell(const Cluster& cluster, const std::vector<int>& axes,
                                           unsigned signs) const {
  std::map<int, Vec3> total;
  for (std::size_t k = 0; k + 1 < cluster.size(); ++k)
    total[cluster[k]][axes[k]] +=
        (signs >> k & 1u) == 0 ? options_.distance_angstrom : -options_.distance_angstrom;
  DisplacedCell cell;
  for (const auto& [site, by] : total)
    if (length(by) > 0.5 * options_.distance_angstrom) cell.moves.push_back({site, by});
  return cell;
}

double DisplacementPlan::sign_of(unsigned signs) {
  return std::popcount(signs) % 2 == 0 ? 1.0 : -1.0;
}

PhonopyCell DisplacementPlan::displaced(std::size_t cell) const {
  PhonopyCell result = group_.supercell();
  const Mat3 to_fractional = inverse(transpose(result.lattice_angstrom));
  for (const DisplacedCell::Move& move : cells_[cell].moves)
    result.position[move.site] = result.position[move.site] + to_fractional * move.by_angstrom;
  return result;
}

}  // namespace quasi::thermal
