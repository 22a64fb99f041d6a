#include "workers/gw/solver/perturbation/displaced_files/displaced_calculation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

// Positions in the files are exact to about 1e-9 Bohr, so that positions which differ by less than
// kSame_bohr are equal. Atoms of a crystal are more than 2 kNear_bohr apart. An atom farther than
// kNear_bohr from every atom of WFN therefore belongs to another crystal.
constexpr double kSame_bohr = 1e-6, kNear_bohr = 1.0, kSameCutoff = 1e-6;

bool is_same(const Vec3& a, const Vec3& b) {
  const Vec3 difference = a - b;
  return dot(difference, difference) < kSame_bohr * kSame_bohr;
}

[[noreturn]] void refuse_two_atoms(const std::filesystem::path& path, std::size_t a,
                                   std::size_t b) {
  refuse_displaced(path, "displaces the atoms " + std::to_string(a + 1) + " and " +
                             std::to_string(b + 1) + "; displace one atom");
}

/// Finds the displaced atom of a file whose cell is that of WFN. The atoms of both must have the
/// same order.
/// @param rest    header of WFN
/// @param header  header of the file
std::optional<Shift> shift_in_cell(const MeanFieldHeader& rest, const MeanFieldHeader& header,
                                   const std::filesystem::path& path) {
  MeanFieldHeader other = header;
  std::optional<Shift> found;
  const auto& atoms = rest.crystal.atoms;
  for (std::size_t a = 0; a < std::min(atoms.size(), other.crystal.atoms.size()); ++a) {
    const Vec3 by_bohr =
        rest.crystal.alat_bohr * (other.crystal.atoms[a].position_alat - atoms[a].position_alat);
    if (is_same(by_bohr, {})) continue;
    if (found) refuse_two_atoms(path, found->listed, a);
    found = Shift{a, a, {}, by_bohr};
    other.crystal.atoms[a].position_alat = atoms[a].position_alat;
  }
  require_same_crystal(rest, "WFN", other, path.string());
  return found;
}

/// Finds the atom of WFN, in any cell, that is nearest to an atom of a supercell.
/// @param listed  position of the atom in the list of the supercell
Shift nearest_atom(const Crystal& cell, const Crystal& large, std::size_t listed) {
  const Vec3 position = reduced_position(cell, large.alat_bohr * large.atoms[listed].position_alat);
  Shift nearest{.listed = listed};
  double squared = 1e300;
  for (std::size_t a = 0; a < cell.atoms.size(); ++a) {
    const Vec3 from =
        position - reduced_position(cell, cell.alat_bohr * cell.atoms[a].position_alat);
    IVec3 whole{};
    nearest_lattice_point(from, &whole, 1.0);
    const Vec3 by_bohr = cartesian_position(cell, from - to_real(whole));
    if (dot(by_bohr, by_bohr) >= squared) continue;
    squared = dot(by_bohr, by_bohr);
    nearest = {a, listed, whole, by_bohr};
  }
  return nearest;
}

/// Checks that a supercell has the density cut-off and the spins of WFN, and the right number of
/// atoms. @throws InvalidInput
void require_same_calculation(const MeanFieldHeader& rest, const MeanFieldHeader& header,
                              const Supercell& supercell, const std::filesystem::path& path) {
  if (std::abs(header.density_cutoff_ry - rest.density_cutoff_ry) >
      kSameCutoff * rest.density_cutoff_ry)
    refuse_displaced(path, "has a density cut-off of " + shown(header.density_cutoff_ry) +
                               " Ry, but WFN has " + shown(rest.density_cutoff_ry) +
                               "; use the cut-off of WFN in the supercell");
  if (header.n_spins != rest.n_spins)
    refuse_displaced(path, "has " + std::to_string(header.n_spins) + " spins, but WFN has " +
                               std::to_string(rest.n_spins) + "; use those of WFN");
  const std::size_t expected =
      rest.crystal.atoms.size() * static_cast<std::size_t>(supercell.n_cells());
  if (header.crystal.atoms.size() != expected)
    refuse_displaced(path, "has " + std::to_string(header.crystal.atoms.size()) +
                               " atoms, but the supercell " + shown_repeats(supercell) +
                               " of WFN has " + std::to_string(expected) +
                               "; give a supercell of the same crystal");
}

/// Finds the displaced atom of a file whose cell is a supercell of that of WFN. The atoms of the
/// file may have any order.
/// @param rest    header of WFN
/// @param header  header of the file
std::optional<Shift> shift_in_supercell(const MeanFieldHeader& rest, const MeanFieldHeader& header,
                                        const Supercell& supercell,
                                        const std::filesystem::path& path) {
  require_same_calculation(rest, header, supercell, path);
  std::optional<Shift> found;
  std::set<std::pair<std::size_t, IVec3>> places;
  for (std::size_t a = 0; a < header.crystal.atoms.size(); ++a) {
    const Shift at = nearest_atom(rest.crystal, header.crystal, a);
    const double distance_bohr = std::sqrt(dot(at.by_bohr, at.by_bohr));
    const std::string name = "atom " + std::to_string(a + 1);
    if (distance_bohr > kNear_bohr)
      refuse_displaced(path, "has " + name + " at " + shown(distance_bohr) +
                                 " Bohr from the nearest atom of WFN; give a supercell of the same "
                                 "crystal with the same origin");
    const int number = header.crystal.atoms[a].atomic_number,
              expected = rest.crystal.atoms[at.atom].atomic_number;
    if (number != expected)
      refuse_displaced(path, "has the atomic number " + std::to_string(number) + " for " + name +
                                 ", but atom " + std::to_string(at.atom + 1) +
                                 " of WFN, which it repeats, has " + std::to_string(expected) +
                                 "; give a supercell of the same crystal");
    if (!places.emplace(at.atom, supercell.folded_cell(at.cell)).second)
      refuse_displaced(
          path, "has two atoms at the place of " + name + "; give a supercell of the same crystal");
    if (distance_bohr < kSame_bohr) continue;
    if (found) refuse_two_atoms(path, found->listed, a);
    found = at;
  }
  return found;
}

Shift shift_of_file(const MeanFieldHeader& rest, const MeanFieldHeader& header,
                    const Supercell& supercell, const std::filesystem::path& path) {
  const auto found = supercell.is_the_cell() ? shift_in_cell(rest, header, path)
                                             : shift_in_supercell(rest, header, supercell, path);
  if (!found)
    refuse_displaced(path, "displaces no atom; give the calculation of a displaced crystal");
  return *found;
}

/// Checks that the file `name` of a folder has the cell of its VSC.
void require_same_cell(const DisplacedCalculation& from, const MeanFieldHeader& header,
                       const std::string& name) {
  const auto cells = Supercell::of(from.potential.header.crystal, header.crystal);
  if (!cells || !cells->is_the_cell())
    refuse_displaced(from.folder / name,
                     "has other lattice vectors than VSC; give files of one calculation");
}

}  // namespace

void refuse_displaced(const std::filesystem::path& path, const std::string& sentence) {
  throw InvalidInput("perturbation.displaced: '" + path.string() + "' " + sentence);
}

std::string shown_vector(const Vec3& v) {
  Vec3 rounded = v;
  for (double& x : rounded)
    if (std::abs(x) < 5e-7) x = 0.0;  // Rounding would print -0.000000.
  char text[80];
  std::snprintf(text, sizeof text, "(%.6f, %.6f, %.6f)", rounded[0], rounded[1], rounded[2]);
  return text;
}

std::string shown_repeats(const Supercell& supercell) {
  std::string text;
  for (const IVec3& row : supercell.repeats()) {
    char vector[60];
    std::snprintf(vector, sizeof vector, "%s(%d, %d, %d)", text.empty() ? "" : " ", row[0], row[1],
                  row[2]);
    text += vector;
  }
  return text;
}

DisplacedCalculation read_calculation(const std::filesystem::path& folder, bool with_vxc) {
  if (!std::filesystem::is_directory(folder)) refuse_displaced(folder, "is no folder; name one");
  DisplacedCalculation read{
      folder, read_field(folder / "VSC", "VSC"), {}, read_projectors(folder / "VKB")};
  if (with_vxc) read.vxc = read_field(folder / "VXC", "VXC");
  return read;
}

Supercell supercell_of(const MeanField& field, const DisplacedCalculation& from) {
  const Crystal &cell = field.crystal(), &large = from.potential.header.crystal;
  if (const auto found = Supercell::of(cell, large)) return *found;
  std::string vectors;
  for (const Vec3& row : large.avec)
    vectors.append(" ").append(shown_vector(reduced_position(cell, large.alat_bohr * row)));
  refuse_displaced(from.folder / "VSC",
                   "has the lattice vectors" + vectors +
                       " in units of those of WFN, which are not whole numbers; give the cell of "
                       "WFN or a supercell of it");
}

Shift shift_of(const MeanField& field, const Supercell& supercell,
               const DisplacedCalculation& from) {
  const MeanFieldHeader& rest = field.waves.header;
  const Shift shift = shift_of_file(rest, from.potential.header, supercell, from.folder / "VSC");
  std::vector<std::pair<const MeanFieldHeader*, const char*>> others{
      {&from.projectors.header, "VKB"}};
  if (from.vxc) others.emplace(others.begin(), &from.vxc->header, "VXC");
  for (const auto& [header, name] : others) {
    require_same_cell(from, *header, name);
    const Shift other = shift_of_file(rest, *header, supercell, from.folder / name);
    if (other.listed != shift.listed || !is_same(other.by_bohr, shift.by_bohr))
      refuse_displaced(from.folder / name,
                       "displaces atom " + std::to_string(other.listed + 1) + " by " +
                           shown_vector(other.by_bohr) + " Bohr, but VSC displaces atom " +
                           std::to_string(shift.listed + 1) + " by " + shown_vector(shift.by_bohr) +
                           "; give files of one calculation");
  }
  const double cutoff_ry = from.projectors.wavefunction_cutoff_ry,
               expected_ry = field.waves.wavefunction_cutoff_ry;
  if (std::abs(cutoff_ry - expected_ry) > kSameCutoff * expected_ry)
    refuse_displaced(from.folder / "VKB", "has a wavefunction cut-off of " + shown(cutoff_ry) +
                                              " Ry, but WFN has " + shown(expected_ry) +
                                              "; use the cut-off of WFN");
  return shift;
}

}  // namespace quasi::gw
