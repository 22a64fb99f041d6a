#include "workers/gw/solver/perturbation/displaced_files/file_displacement.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/perturbation/coupling_parts.hpp"

namespace quasi::gw {
namespace {

// A step h below the smallest one loses the digits of ∂V. A step above the largest one leaves the
// range in which V is linear in h. Lengths that differ by kSame_bohr are equal.
constexpr double kSmallestStep_bohr = 1e-4, kLargestStep_bohr = 0.2, kSame_bohr = 1e-6;

/// Checks that two calculations displace one atom by opposite vectors along an axis.
/// @param step_bohr  receives h
Displacement displacement_of(const Shift& up, const Shift& down, const DisplacedFolders& folders,
                             double* step_bohr) {
  const Vec3 sum = up.by_bohr + down.by_bohr;
  if (up.listed != down.listed || dot(sum, sum) > 4.0 * kSame_bohr * kSame_bohr)
    refuse_displaced(folders.back,
                     "displaces atom " + std::to_string(down.listed + 1) + " by " +
                         shown_vector(down.by_bohr) + " Bohr, which is not opposite to atom " +
                         std::to_string(up.listed + 1) + " by " + shown_vector(up.by_bohr) +
                         " in '" + folders.forth.string() + "'; give pairs of +h and -h");
  std::size_t axis = 0;
  for (std::size_t i = 1; i < 3; ++i)
    if (std::abs(up.by_bohr[i]) > std::abs(up.by_bohr[axis])) axis = i;
  const std::string by = shown_vector(up.by_bohr) + " Bohr";
  for (std::size_t i = 0; i < 3; ++i)
    if (i != axis && std::abs(up.by_bohr[i]) > kSame_bohr)
      refuse_displaced(folders.forth, "displaces atom " + std::to_string(up.listed + 1) + " by " +
                                          by + "; displace it along x, y or z");
  *step_bohr = up.by_bohr[axis];
  if (*step_bohr < 0.0)
    refuse_displaced(folders.forth, "displaces its atom by " + by +
                                        ", against the axis; exchange the two folders");
  if (*step_bohr < kSmallestStep_bohr || *step_bohr > kLargestStep_bohr)
    refuse_displaced(folders.forth, "displaces its atom by " + std::to_string(*step_bohr) +
                                        " Bohr, outside 0.0001 ... 0.2; displace it by 0.01");
  return {static_cast<int>(up.atom) + 1, static_cast<char>('x' + axis)};
}

FileDisplacement read_displacement(const DisplacedFolders& folders, const MeanField& field,
                                   bool with_vxc) {
  const DisplacedCalculation forth = read_calculation(folders.forth, with_vxc),
                             back = read_calculation(folders.back, with_vxc);
  const Supercell supercell = supercell_of(field, forth);
  if (supercell_of(field, back).repeats() != supercell.repeats())
    refuse_displaced(folders.back, "has other lattice vectors than '" + folders.forth.string() +
                                       "'; give one supercell with +h and -h");
  const Shift up = shift_of(field, supercell, forth), down = shift_of(field, supercell, back);
  FileDisplacement made{.displacement = {},
                        .folder = folders.forth,
                        .supercell = supercell,
                        .difference = {},
                        .has_vxc = with_vxc};
  made.displacement = displacement_of(up, down, folders, &made.step_bohr);
  made.difference = std::make_shared<const DifferenceOfFiles>(field.waves, supercell, forth, back,
                                                              up, made.step_bohr);
  return made;
}

void require_whole_grid(const MeanField& field) {
  const std::int64_t listed = field.waves.n_k();
  if (field.zone.size() != listed)
    throw InvalidInput("perturbation.displaced: WFN lists " + std::to_string(listed) + " of " +
                       std::to_string(field.zone.size()) +
                       " k-points, but a displaced atom breaks the symmetry; list the whole grid");
}

}  // namespace

Perturbation FileDisplacement::potential_at(const Vec3& q) const {
  Perturbation perturbation = local_perturbation(displacement.name(), q, difference->local(q));
  perturbation.elements.clear();  // The projectors have no elements by G alone.
  perturbation.potential = [local = perturbation.potential, q, nonlocal = difference](
                               const Vec3& k, const std::vector<IVec3>& bra,
                               const std::vector<IVec3>& ket) {
    std::vector<Cplx> matrix = local(k, bra, ket);
    nonlocal->add_projectors(k, q, bra, ket, matrix);
    return matrix;
  };
  return perturbation;
}

Perturbation FileDisplacement::vxc_at(const Vec3& q) const {
  return local_perturbation("V_xc", q, difference->vxc(q));
}

std::vector<FileDisplacement> file_displacements(const std::vector<DisplacedFolders>& folders,
                                                 const MeanField& field) {
  require_whole_grid(field);
  const bool with_vxc =
      std::any_of(folders.begin(), folders.end(), [](const DisplacedFolders& pair) {
        return std::filesystem::exists(pair.forth / "VXC") ||
               std::filesystem::exists(pair.back / "VXC");
      });
  std::vector<FileDisplacement> list;
  for (const DisplacedFolders& pair : folders) {
    FileDisplacement made = read_displacement(pair, field, with_vxc);
    for (const FileDisplacement& other : list)
      if (other.displacement.name() == made.displacement.name())
        refuse_displaced(pair.forth, "displaces " + made.displacement.name() +
                                         " like another folder; name each displacement once");
    list.push_back(std::move(made));
  }
  std::sort(list.begin(), list.end(), [](const FileDisplacement& a, const FileDisplacement& b) {
    return std::pair(a.displacement.atom, a.displacement.direction) <
           std::pair(b.displacement.atom, b.displacement.direction);
  });
  return list;
}

void require_all_displacements(const std::vector<FileDisplacement>& list, const Crystal& crystal) {
  for (std::size_t atom = 1; atom <= crystal.atoms.size(); ++atom)
    for (const char direction : {'x', 'y', 'z'}) {
      const std::string name = Displacement{static_cast<int>(atom), direction}.name();
      if (std::none_of(list.begin(), list.end(),
                       [&](const auto& made) { return made.displacement.name() == name; }))
        throw InvalidInput("perturbation.displaced lacks " + name +
                           ", but perturbation.modes needs all atoms along x, y and z; add its two "
                           "folders");
    }
}

void require_whole_waves(const std::vector<FileDisplacement>& list, const std::vector<Vec3>& q) {
  for (const FileDisplacement& made : list)
    for (const Vec3& wave : q)
      if (!made.supercell.vector_of(wave))
        throw InvalidInput("perturbation.q holds " + shown_vector(wave) +
                           ", but the lattice vectors " + shown_repeats(made.supercell) + " of '" +
                           made.folder.string() +
                           "', in units of those of WFN, hold no whole number of its waves; "
                           "displace the atom in a supercell that does");
}

}  // namespace quasi::gw
