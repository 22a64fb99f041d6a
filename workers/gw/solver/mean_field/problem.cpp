#include "workers/gw/solver/mean_field/problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/mean_field_checks.hpp"

namespace quasi::gw {
namespace {

/// Requires states of as many components as WFN has.
void require_components(const Wavefunctions& waves, const Wavefunctions& other,
                        const std::string& name) {
  if (waves.header.n_spinor != other.header.n_spinor)
    throw InvalidInput("WFN has states of " + std::to_string(waves.header.n_spinor) +
                       " component(s), " + name + " of " + std::to_string(other.header.n_spinor) +
                       "; make both with or without spin–orbit coupling");
}

std::int64_t grid_points(const IVec3& grid) {
  return std::int64_t{1} * std::max(1, grid[0]) * std::max(1, grid[1]) * std::max(1, grid[2]);
}

/// Returns q₀, the shift of the second list against the first. Every k of the second list lies on
/// the first grid + q₀.
Vec3 shift_between(const Wavefunctions& waves, const BrillouinZone& zone,
                   const Wavefunctions& shifted) {
  for (const ZonePoint& point : zone.points()) {
    // The shift from this point to the first point of the shifted list is a candidate if it is
    // short.
    Vec3 q = shifted.k[0] - point.k;
    for (double& x : q) x -= std::round(x);
    if (metric_dot(waves.header.crystal.bdot, q, q) > 1e-3) continue;
    return q;
  }
  throw InvalidInput(
      "WFNq is not on the grid of WFN shifted by a small q₀: its first k-point is far from every "
      "point");
}

}  // namespace

std::vector<int> occupied_bands(const Wavefunctions& waves) {
  std::vector<int> counts;
  for (int spin = 0; spin < waves.header.n_spins; ++spin) {
    const int n = waves.last_occupied[static_cast<std::size_t>(spin * waves.n_k())];
    for (int ik = 0; ik < waves.n_k(); ++ik) {
      const int here = waves.last_occupied[static_cast<std::size_t>(spin * waves.n_k() + ik)];
      if (here != n)
        throw InvalidInput("k-points 1 and " + std::to_string(ik + 1) + " have " +
                           std::to_string(n) + " and " + std::to_string(here) +
                           " occupied bands (ifmax); metals are not supported");
      for (int band = 0; band < waves.n_bands; ++band) {
        const double f = waves.occupied(spin, ik, band);
        if (std::abs(f - (band < n ? 1.0 : 0.0)) > 1e-3)
          throw InvalidInput("band " + std::to_string(band + 1) + " at k-point " +
                             std::to_string(ik + 1) + " has the occupation " + std::to_string(f) +
                             "; partially occupied bands (metals) are not supported");
      }
    }
    counts.push_back(n);
  }
  return counts;
}

double MeanField::n_electrons() const {
  double n = 0.0;
  for (const int occupied : n_occupied_of_spin) n += occupied;
  return n * waves.header.electrons_per_band();
}

MeanField make_mean_field(Wavefunctions waves, std::optional<Wavefunctions> shifted,
                          PlaneWaveField density) {
  const std::int64_t expected = grid_points(waves.k_grid);
  const int added = complete_by_time_reversal(waves, expected);
  BrillouinZone zone(waves.k, waves.header.crystal.symmetries, expected, "WFN");
  if (zone.index_of({0, 0, 0}) < 0)
    throw InvalidInput(
        "WFN holds no Γ point; its k-grid must be Γ-centred (shift 0) because q = k − k' must lie "
        "on it");
  MeanField field{.waves = std::move(waves),
                  .zone = std::move(zone),
                  .shifted = {},
                  .shifted_zone = {},
                  .q_zone = {},
                  .nonlocal = {},
                  .density = std::move(density),
                  .n_occupied_of_spin = {}};
  field.n_occupied_of_spin = occupied_bands(field.waves);
  check_time_reversal(field.waves, field.zone, field.n_occupied_of_spin);
  field.added_k = added;
  field.n_occupied =
      *std::max_element(field.n_occupied_of_spin.begin(), field.n_occupied_of_spin.end());
  if (field.n_occupied < 1) throw InvalidInput("WFN has no occupied band (ifmax = 0)");
  if (field.n_occupied >= field.waves.n_bands)
    throw InvalidInput("WFN holds " + std::to_string(field.waves.n_bands) +
                       " bands, all occupied; empty bands are needed");
  require_same_crystal(field.waves.header, "WFN", field.density.header, "RHO");
  double charge = 0.0;
  for (std::size_t i = 0; i < field.density.header.g.size(); ++i)
    if (field.density.header.g[i] == IVec3{})
      for (const auto& spin : field.density.values) charge += spin[i].real();
  if (std::abs(charge - field.n_electrons()) > 1e-3)
    throw InvalidInput("RHO holds " + std::to_string(charge) +
                       " electrons per cell, the occupied bands of WFN " +
                       std::to_string(field.n_electrons()));
  if (shifted) {
    require_same_crystal(field.waves.header, "WFN", shifted->header, "WFNq");
    require_components(field.waves, *shifted, "WFNq");
    if (std::abs(shifted->wavefunction_cutoff_ry - field.waves.wavefunction_cutoff_ry) > 1e-6)
      throw InvalidInput("WFN has a cut-off of " +
                         std::to_string(field.waves.wavefunction_cutoff_ry) + " Ry, WFNq of " +
                         std::to_string(shifted->wavefunction_cutoff_ry) + " Ry");
    if (occupied_bands(*shifted) != field.n_occupied_of_spin)
      throw InvalidInput("WFN and WFNq have different numbers of occupied bands");
    field.q0 = shift_between(field.waves, field.zone, *shifted);
    if (metric_dot(field.crystal().bdot, field.q0, field.q0) < 1e-14)
      throw InvalidInput(
          "WFNq is on the same grid as WFN; it must be shifted by a small q₀, e.g. 0.001 0 0");
    // Only operations that keep q₀ map the shifted grid onto itself.
    std::vector<SymmetryOperation> keep;
    for (const int s : little_group(shifted->header.crystal.symmetries, field.q0, true))
      keep.push_back(shifted->header.crystal.symmetries[static_cast<std::size_t>(s)]);
    field.shifted_zone.emplace(shifted->k, keep, expected, "WFNq");
    for (const ZonePoint& point : field.zone.points())
      field.shifted_zone->rotation_to(point.k + field.q0);
    field.shifted = std::move(shifted);
    check_shifted_energies(field);
  }
  return field;
}

MeanField make_outer_mean_field(const MeanField& field, Wavefunctions outer) {
  require_same_crystal(field.waves.header, "WFN", outer.header, "WFN_outer");
  require_components(field.waves, outer, "WFN_outer");
  if (std::abs(outer.wavefunction_cutoff_ry - field.waves.wavefunction_cutoff_ry) > 1e-6)
    throw InvalidInput("WFN has a cut-off of " +
                       std::to_string(field.waves.wavefunction_cutoff_ry) + " Ry, WFN_outer of " +
                       std::to_string(outer.wavefunction_cutoff_ry) + " Ry");
  if (outer.k_grid != field.waves.k_grid)
    throw InvalidInput("WFN_outer must hold the k-grid of WFN, shifted: its header says " +
                       std::to_string(outer.k_grid[0]) + " x " + std::to_string(outer.k_grid[1]) +
                       " x " + std::to_string(outer.k_grid[2]) + " points");
  if (occupied_bands(outer) != field.n_occupied_of_spin)
    throw InvalidInput("WFN and WFN_outer have different numbers of occupied bands");
  // An operation of the crystal maps the shifted grid onto itself only if it moves the first point
  // by a vector of the grid.
  std::vector<SymmetryOperation> keep;
  for (const SymmetryOperation& s : outer.header.crystal.symmetries) {
    const Vec3 moved = multiply(s.rotation, outer.k[0]) - outer.k[0];
    bool on_grid = true;
    for (int i = 0; i < 3; ++i)
      on_grid = on_grid && std::abs(moved[i] * outer.k_grid[i] -
                                    std::round(moved[i] * outer.k_grid[i])) < 1e-5;
    if (on_grid) keep.push_back(s);
  }
  BrillouinZone zone(outer.k, std::move(keep), grid_points(outer.k_grid), "WFN_outer");
  for (const ZonePoint& q : field.zone.points()) zone.rotation_to(outer.k[0] - q.k);
  return {.waves = std::move(outer),
          .zone = std::move(zone),
          .shifted = {},
          .shifted_zone = {},
          .q_zone = field.zone,
          .q0 = field.q0,
          .by_velocity = field.by_velocity,
          .nonlocal = {},
          .density = field.density,
          .n_occupied = field.n_occupied,
          .n_occupied_of_spin = field.n_occupied_of_spin,
          .reference_energy_ry = {}};
}

int band_count_without_split(const Wavefunctions& waves, int wanted, int minimum,
                             const std::string& what, const std::vector<int>& at) {
  if (wanted > waves.n_bands)
    throw InvalidInput(
        what + " = " + std::to_string(wanted) + " but the wavefunctions hold " +
        std::to_string(waves.n_bands) +
        "; lower it, or give meanfield.vsc and meanfield.vkb so that the missing bands are made");
  if (wanted < minimum)
    throw InvalidInput(what + " = " + std::to_string(wanted) +
                       " leaves no empty band: " + std::to_string(minimum - 1) +
                       " bands are occupied; ask for " + std::to_string(minimum) + " or more");
  std::vector<int> points = at;
  for (int ik = 0; at.empty() && ik < waves.n_k(); ++ik) points.push_back(ik);
  for (int n = wanted; n >= minimum; --n) {
    bool splits = false;
    for (int spin = 0; spin < waves.header.n_spins && n > 0 && n < waves.n_bands; ++spin)
      for (const int ik : points)
        splits = splits || std::abs(waves.energy(spin, ik, n) - waves.energy(spin, ik, n - 1)) <
                               kDegenerate_ry;
    if (!splits) return n;
  }
  throw InvalidInput(what + " = " + std::to_string(wanted) +
                     " splits a multiplet, and so does every smaller number down to " +
                     std::to_string(minimum));
}

std::vector<int> whole_band_counts(const Wavefunctions& waves, int low, int high) {
  std::vector<int> counts;
  for (int n = low; n <= std::min(high, waves.n_bands); ++n) {
    bool splits = false;
    for (int spin = 0; spin < waves.header.n_spins && n > 0 && n < waves.n_bands; ++spin)
      for (int ik = 0; ik < waves.n_k(); ++ik)
        splits = splits || std::abs(waves.energy(spin, ik, n) - waves.energy(spin, ik, n - 1)) <
                               kDegenerate_ry;
    if (!splits) counts.push_back(n);
  }
  return counts;
}

std::vector<std::pair<int, int>> multiplets(const Wavefunctions& waves, int spin, int ik, int begin,
                                            int end) {
  std::vector<std::pair<int, int>> groups;
  for (int n = begin; n < end; ++n) {
    if (n > begin &&
        std::abs(waves.energy(spin, ik, n) - waves.energy(spin, ik, n - 1)) < kDegenerate_ry)
      groups.back().second = n + 1;
    else
      groups.emplace_back(n, n + 1);
  }
  return groups;
}

}  // namespace quasi::gw
