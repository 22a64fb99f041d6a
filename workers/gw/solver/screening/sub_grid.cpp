#include "workers/gw/solver/screening/sub_grid.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

std::string text_of(const IVec3& grid) {
  return std::to_string(grid[0]) + " x " + std::to_string(grid[1]) + " x " +
         std::to_string(grid[2]);
}

/// Returns the k-points of a list that lie on `grid` + shift.
Wavefunctions selected(const Wavefunctions& from, const IVec3& grid, const Vec3& shift) {
  std::vector<std::size_t> keep;
  for (std::size_t ik = 0; ik < from.k.size(); ++ik) {
    bool inside = true;
    for (int i = 0; i < 3; ++i) {
      const double steps = (from.k[ik][i] - shift[i]) * grid[i];
      inside = inside && std::abs(steps - std::round(steps)) < 1e-4;
    }
    if (inside) keep.push_back(ik);
  }
  Wavefunctions to;
  to.header = from.header;
  to.n_bands = from.n_bands;
  to.wavefunction_cutoff_ry = from.wavefunction_cutoff_ry;
  to.k_grid = grid;
  for (int i = 0; i < 3; ++i) to.k_shift[i] = shift[i] * grid[i];
  double total = 0.0;
  for (const std::size_t ik : keep) total += from.weight[ik];
  for (const std::size_t ik : keep) {
    to.k.push_back(from.k[ik]);
    to.weight.push_back(from.weight[ik] / total);
    to.waves.push_back(from.waves[ik]);
  }
  const auto n_bands = static_cast<std::size_t>(from.n_bands);
  for (std::size_t spin = 0; spin < static_cast<std::size_t>(from.header.n_spins); ++spin)
    for (const std::size_t ik : keep) {
      const std::size_t row = spin * from.k.size() + ik;
      to.first_occupied.push_back(from.first_occupied[row]);
      to.last_occupied.push_back(from.last_occupied[row]);
      for (std::size_t n = 0; n < n_bands; ++n) {
        to.energy_ry.push_back(from.energy_ry[row * n_bands + n]);
        to.occupation.push_back(from.occupation[row * n_bands + n]);
      }
    }
  return to;
}

}  // namespace

MeanField on_sub_grid(const MeanField& field, const IVec3& grid) {
  const IVec3& own = field.waves.k_grid;
  for (int i = 0; i < 3; ++i)
    if (grid[i] < 1 || own[i] % grid[i] != 0)
      throw InvalidInput("a k-grid of " + text_of(grid) + " does not lie on the " + text_of(own) +
                         " grid of the wavefunctions; choose divisors of it");
  std::optional<Wavefunctions> shifted;
  if (field.shifted) shifted = selected(*field.shifted, grid, field.q0);
  MeanField coarse =
      make_mean_field(selected(field.waves, grid, {}), std::move(shifted), field.density);
  coarse.by_velocity = field.by_velocity;
  coarse.nonlocal = field.nonlocal;
  coarse.spin_orbit = field.spin_orbit;
  coarse.shifted_states = field.shifted_states;
  if (!coarse.shifted) coarse.q0 = field.q0;
  return coarse;
}

std::vector<IVec3> coarser_grids(const IVec3& grid) {
  std::vector<IVec3> list;
  for (int divisor = *std::max_element(grid.begin(), grid.end()); divisor > 1; --divisor) {
    IVec3 coarse{};
    bool divides = true;
    for (int i = 0; i < 3; ++i) {
      divides = divides && (grid[i] == 1 || grid[i] % divisor == 0);
      coarse[i] = std::max(1, grid[i] / divisor);
    }
    if (divides) list.push_back(coarse);
  }
  return list;
}

}  // namespace quasi::gw
