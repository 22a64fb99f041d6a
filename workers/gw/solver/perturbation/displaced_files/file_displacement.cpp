#include "workers/gw/solver/perturbation/displaced_files/file_displacement.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"

namespace quasi::gw {
namespace {

/// Positions in the files are exact to about 1e-9. Smaller steps lose the digits of ∂V, and
/// larger ones leave the harmonic range.
constexpr double kSmallestStep_bohr = 1e-4, kLargestStep_bohr = 0.2, kSame_bohr = 1e-6;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& sentence) {
  throw InvalidInput("perturbation.displaced: '" + path.string() + "' " + sentence);
}

/// Holds the files of one displaced crystal.
struct DisplacedCalculation {
  std::filesystem::path folder;
  PlaneWaveField potential, vxc;
  Projectors projectors;
};

/// Holds an atom of a file and its displacement from the crystal at rest.
struct Shift {
  std::size_t atom = 0;
  Vec3 by_bohr{};
};

std::string shown(const Vec3& v) {
  char text[80];
  std::snprintf(text, sizeof text, "(%.6f, %.6f, %.6f)", v[0], v[1], v[2]);
  return text;
}

/// Finds the displaced atom of a file, and checks that all else equals the crystal at rest.
Shift shift_of(const MeanFieldHeader& rest, const MeanFieldHeader& header,
               const std::filesystem::path& path) {
  MeanFieldHeader other = header;
  std::optional<Shift> found;
  const auto& atoms = rest.crystal.atoms;
  for (std::size_t a = 0; a < std::min(atoms.size(), other.crystal.atoms.size()); ++a) {
    const Vec3 by_bohr =
        rest.crystal.alat_bohr * (other.crystal.atoms[a].position_alat - atoms[a].position_alat);
    if (dot(by_bohr, by_bohr) < kSame_bohr * kSame_bohr) continue;
    if (found)
      refuse(path, "displaces the atoms " + std::to_string(found->atom + 1) + " and " +
                       std::to_string(a + 1) + "; displace one atom");
    found = Shift{a, by_bohr};
    other.crystal.atoms[a].position_alat = atoms[a].position_alat;
  }
  require_same_crystal(rest, "WFN", other, path.string());
  if (!found) refuse(path, "displaces no atom; give the calculation of a displaced crystal");
  return *found;
}

DisplacedCalculation read_calculation(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) refuse(folder, "is no folder; name one");
  return {folder, read_field(folder / "VSC", "VSC"), read_field(folder / "VXC", "VXC"),
          read_projectors(folder / "VKB")};
}

/// Returns the displacement of a calculation, which its three files must share.
Shift shift_of(const MeanField& field, const DisplacedCalculation& from) {
  const MeanFieldHeader& rest = field.waves.header;
  const Shift shift = shift_of(rest, from.potential.header, from.folder / "VSC");
  const std::pair<const MeanFieldHeader*, const char*> others[] = {
      {&from.vxc.header, "VXC"}, {&from.projectors.header, "VKB"}};
  for (const auto& [header, name] : others) {
    const Shift other = shift_of(rest, *header, from.folder / name);
    const Vec3 difference = other.by_bohr - shift.by_bohr;
    if (other.atom != shift.atom || dot(difference, difference) > kSame_bohr * kSame_bohr)
      refuse(from.folder / name, "displaces atom " + std::to_string(other.atom + 1) + " by " +
                                     shown(other.by_bohr) + " Bohr, but VSC displaces atom " +
                                     std::to_string(shift.atom + 1) + " by " +
                                     shown(shift.by_bohr) + "; give files of one calculation");
  }
  return shift;
}

/// Returns the displacement of a pair of calculations. @param step_bohr  receives h
Displacement displacement_of(const MeanField& field, const DisplacedCalculation& forth,
                             const DisplacedCalculation& back, double* step_bohr) {
  const Shift up = shift_of(field, forth), down = shift_of(field, back);
  const Vec3 sum = up.by_bohr + down.by_bohr;
  if (up.atom != down.atom || dot(sum, sum) > 4.0 * kSame_bohr * kSame_bohr)
    refuse(back.folder, "displaces atom " + std::to_string(down.atom + 1) + " by " +
                            shown(down.by_bohr) + " Bohr, which is not opposite to atom " +
                            std::to_string(up.atom + 1) + " by " + shown(up.by_bohr) + " in '" +
                            forth.folder.string() + "'; give pairs of +h and -h");
  std::size_t axis = 0;
  for (std::size_t i = 1; i < 3; ++i)
    if (std::abs(up.by_bohr[i]) > std::abs(up.by_bohr[axis])) axis = i;
  for (std::size_t i = 0; i < 3; ++i)
    if (i != axis && std::abs(up.by_bohr[i]) > kSame_bohr)
      refuse(forth.folder, "displaces atom " + std::to_string(up.atom + 1) + " by " +
                               shown(up.by_bohr) + " Bohr; displace it along x, y or z");
  *step_bohr = up.by_bohr[axis];
  if (*step_bohr < 0.0)
    refuse(forth.folder, "displaces its atom by " + shown(up.by_bohr) +
                             " Bohr, against the axis; exchange the two folders");
  if (*step_bohr < kSmallestStep_bohr || *step_bohr > kLargestStep_bohr)
    refuse(forth.folder, "displaces its atom by " + std::to_string(*step_bohr) +
                             " Bohr, outside 0.0001 ... 0.2; displace it by 0.01");
  return {static_cast<int>(up.atom) + 1, static_cast<char>('x' + axis)};
}

/// Calculates ∂V between plane waves from the difference of two Hamiltonians.
class DifferenceOfHamiltonians {
 public:
  DifferenceOfHamiltonians(const Wavefunctions& waves, DisplacedCalculation forth,
                           DisplacedCalculation back, double step_bohr)
      : waves_(waves), forth_(std::move(forth)), back_(std::move(back)), step_bohr_(step_bohr) {}

  /// @param k  reduced, a listed k-point plus a reciprocal vector
  std::vector<Cplx> between(const Vec3& k, const std::vector<IVec3>& bra,
                            const std::vector<IVec3>& ket) const {
    IVec3 shift{};
    const auto listed = std::find_if(waves_.k.begin(), waves_.k.end(), [&](const Vec3& other) {
      return nearest_lattice_point(k - other, &shift);
    });
    const auto ik = static_cast<int>(listed - waves_.k.begin());
    const std::vector<IVec3>& g = waves_.waves.at(static_cast<std::size_t>(ik)).g;
    const std::vector<Cplx> up = dense_hamiltonian(waves_, ik, 0, forth_.potential,
                                                   forth_.projectors),
                            down =
                                dense_hamiltonian(waves_, ik, 0, back_.potential, back_.projectors);
    const GIndex index(g);
    std::vector<Cplx> matrix(bra.size() * ket.size());
    for (std::size_t i = 0; i < bra.size(); ++i)
      for (std::size_t j = 0; j < ket.size(); ++j) {
        const std::int32_t row = index.find(bra[i] + shift), column = index.find(ket[j] + shift);
        if (row < 0 || column < 0) continue;
        const std::size_t at =
            static_cast<std::size_t>(row) * g.size() + static_cast<std::size_t>(column);
        matrix[i * ket.size() + j] = (up[at] - down[at]) / (2.0 * step_bohr_);
      }
    return matrix;
  }
  /// Returns ∂V_xc(G) where it is not 0.
  PotentialElements vxc() const {
    PotentialElements elements;
    const GIndex index(back_.vxc.header.g);
    for (std::size_t i = 0; i < forth_.vxc.header.g.size(); ++i) {
      const std::int32_t at = index.find(forth_.vxc.header.g[i]);
      const Cplx value = forth_.vxc.values[0][i] -
                         (at < 0 ? Cplx{} : back_.vxc.values[0][static_cast<std::size_t>(at)]);
      if (value != Cplx{}) elements.emplace_back(forth_.vxc.header.g[i], value / (2 * step_bohr_));
    }
    return elements;
  }

 private:
  const Wavefunctions& waves_;
  DisplacedCalculation forth_, back_;
  double step_bohr_;
};

void require_whole_grid(const MeanField& field) {
  const std::int64_t listed = field.waves.n_k();
  if (field.zone.size() != listed)
    throw InvalidInput("perturbation.displaced: WFN lists " + std::to_string(listed) + " of " +
                       std::to_string(field.zone.size()) +
                       " k-points, but a displaced atom breaks the symmetry; list the whole grid");
}

}  // namespace

std::vector<FileDisplacement> file_displacements(const std::vector<DisplacedFolders>& folders,
                                                 const MeanField& field) {
  require_whole_grid(field);
  std::vector<FileDisplacement> list;
  for (const DisplacedFolders& pair : folders) {
    DisplacedCalculation forth = read_calculation(pair.forth), back = read_calculation(pair.back);
    FileDisplacement made;
    made.displacement = displacement_of(field, forth, back, &made.step_bohr);
    for (const FileDisplacement& other : list)
      if (other.displacement.name() == made.displacement.name())
        refuse(pair.forth, "displaces " + made.displacement.name() +
                               " like another folder; name each displacement once");
    const auto difference = std::make_shared<const DifferenceOfHamiltonians>(
        field.waves, std::move(forth), std::move(back), made.step_bohr);
    // The projectors must hold every listed k-point.
    for (std::size_t ik = 0; ik < field.waves.k.size(); ++ik)
      difference->between(field.waves.k[ik], {}, {});
    made.perturbation.name = made.displacement.name();
    made.perturbation.potential = [difference](const Vec3& k, const std::vector<IVec3>& bra,
                                               const std::vector<IVec3>& ket) {
      return difference->between(k, bra, ket);
    };
    made.vxc = difference->vxc();
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

}  // namespace quasi::gw
