#include "workers/gw/solver/mean_field/displaced/inner_states.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/mean_field/mean_field_checks.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

/// Positions in the files are exact to about 1e-9. Smaller steps lose the digits of the difference
/// of two jobs, and larger ones leave the range in which it is a derivative.
constexpr double kSame_bohr = 1e-6, kSmallest_bohr = 1e-4, kLargest_bohr = 0.2;

std::string shown_point(const Vec3& v) {
  char text[100];
  std::snprintf(text, sizeof text, "(%.6g, %.6g, %.6g)", v[0], v[1], v[2]);
  return text;
}

std::string shown_grid(const IVec3& grid) {
  return std::to_string(grid[0]) + " x " + std::to_string(grid[1]) + " x " +
         std::to_string(grid[2]);
}

[[noreturn]] void refuse(const std::string& sentence) {
  throw InvalidInput("meanfield.wfn_inner: " + sentence);
}

/// Finds the displaced atoms, and checks that all else is the crystal at rest.
std::vector<DisplacedAtom> displaced_atoms(const MeanFieldHeader& rest, MeanFieldHeader inner) {
  std::vector<DisplacedAtom> list;
  auto& atoms = inner.crystal.atoms;
  for (std::size_t a = 0; a < std::min(atoms.size(), rest.crystal.atoms.size()); ++a) {
    const Vec3& place = rest.crystal.atoms[a].position_alat;
    const Vec3 by_bohr = rest.crystal.alat_bohr * (atoms[a].position_alat - place);
    atoms[a].position_alat = place;
    if (dot(by_bohr, by_bohr) >= kSame_bohr * kSame_bohr)
      list.push_back({static_cast<int>(a) + 1, by_bohr});
  }
  require_same_crystal(rest, "meanfield.wfn", inner, "meanfield.wfn_inner");
  if (list.empty())
    refuse(
        "displaces no atom of WFN, so that the job would repeat Σ at rest; name the WFN of a "
        "displaced crystal, or remove the key");
  for (const DisplacedAtom& at : list) {
    const double length_bohr = std::sqrt(dot(at.by_bohr, at.by_bohr));
    if (length_bohr < kSmallest_bohr - kSame_bohr || length_bohr > kLargest_bohr + kSame_bohr)
      refuse("displaces atom " + std::to_string(at.atom) + " of WFN by " +
             std::to_string(length_bohr) + " Bohr, outside 0.0001 … 0.2; displace it by 0.01");
  }
  return list;
}

void require_same_states(const MeanField& rest, const Wavefunctions& waves) {
  if (waves.header.n_spinor != rest.n_spinor())
    refuse("has states of " + std::to_string(waves.header.n_spinor) + " component(s), WFN of " +
           std::to_string(rest.n_spinor()) + "; make both with or without spin–orbit coupling");
  const double cutoff_ry = rest.waves.wavefunction_cutoff_ry;
  if (std::abs(waves.wavefunction_cutoff_ry - cutoff_ry) > 1e-6)
    refuse("has a cut-off of " + shown(waves.wavefunction_cutoff_ry) + " Ry, WFN of " +
           shown(cutoff_ry) + " Ry; make both with that of WFN");
  if (waves.k_grid != rest.waves.k_grid)
    refuse("has the k-grid " + shown_grid(waves.k_grid) + ", WFN " + shown_grid(rest.waves.k_grid) +
           "; make both with that of WFN");
  if (occupied_bands(waves) != rest.n_occupied_of_spin)
    refuse(
        "has another number of occupied bands than WFN; displace the atom of the same crystal, "
        "with the same electrons");
}

}  // namespace

InnerStates make_inner_states(const MeanField& rest, Wavefunctions waves) {
  std::vector<DisplacedAtom> displaced = displaced_atoms(rest.waves.header, waves.header);
  require_same_states(rest, waves);
  complete_by_time_reversal(waves, rest.zone.size());
  BrillouinZone zone(waves.k, waves.header.crystal.symmetries, rest.zone.size(), "WFN_inner");
  for (const ZonePoint& point : rest.zone.points())
    if (zone.index_of(point.k) < 0)
      refuse("lacks the k-point " + shown_point(point.k) +
             " of the grid of WFN; make both on one grid");
  return {std::move(waves), std::move(zone), std::move(displaced)};
}

std::string note_of_inner_states(const InnerStates& inner) {
  std::string atoms;
  for (const DisplacedAtom& at : inner.displaced)
    atoms += (atoms.empty() ? "atom " : ", atom ") + std::to_string(at.atom) + " by " +
             shown_point(at.by_bohr) + " Bohr";
  return "meanfield.wfn_inner displaces " + atoms +
         ". Σ of this job belongs to a difference of two jobs with W and outer states at rest, "
         "and gives no quasiparticle energies";
}

}  // namespace quasi::gw
