#include "workers/gw/solver/mean_field/empirical_structure.hpp"

#include <spglib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "workers/backend/error.hpp"
#include "workers/backend/philox.hpp"
#include "workers/gw/physics/g_sphere.hpp"

namespace quasi::gw {
namespace {

struct Structure {
  Mat3 lattice{};              ///< rows, Bohr
  std::vector<Vec3> position;  ///< reduced
  std::vector<int> kind;       ///< 0 or 1
};

/// Atomic numbers of both kinds of atoms of a built-in crystal. A well counts as helium.
std::array<int, 2> atomic_numbers(const std::string& name) {
  if (well_model(name) != nullptr) return {2, 2};
  const FormFactors& factors = form_factors(name);
  return {factors.atomic_number[0], factors.atomic_number[1]};
}

/// The cell of a monolayer of wells and its repeats.
Structure make_wells(const EmpiricalCrystal& wanted, double a, double height) {
  Structure s;
  const Vec3 edge{a, a, height};
  for (int i = 0; i < 3; ++i) {
    Vec3 axis{};
    axis[i] = edge[i] * wanted.repeats[i];
    s.lattice[i] = multiply(wanted.deformation, axis);
  }
  for (int i = 0; i < wanted.repeats[0]; ++i)
    for (int j = 0; j < wanted.repeats[1]; ++j)
      for (int k = 0; k < wanted.repeats[2]; ++k) {
        s.position.push_back(Vec3{1.0 * i / wanted.repeats[0], 1.0 * j / wanted.repeats[1],
                                  1.0 * k / wanted.repeats[2]} +
                             wanted.origin_shift);
        s.kind.push_back(0);
      }
  return s;
}

Vec3 cross(const Vec3& x, const Vec3& y) {
  return {x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]};
}
double determinant(const Mat3& rows) { return dot(rows[0], cross(rows[1], rows[2])); }
/// Returns rows b_i with b_i · l_j = δ_ij.
Mat3 dual_of(const Mat3& l) {
  Mat3 dual{};
  for (int i = 0; i < 3; ++i)
    dual[i] = (1.0 / determinant(l)) * cross(l[(i + 1) % 3], l[(i + 2) % 3]);
  return dual;
}

/// Second key of the random numbers, so that no other use of an equal seed shares them.
constexpr std::uint32_t kKeyOfDisorder = 0x6469736fu;

/// Displaces every atom by one length in a random direction of its own, uniform on the sphere.
void displace_atoms(const EmpiricalCrystal& wanted, Structure* s) {
  if (wanted.disorder_bohr <= 0.0) return;
  const Mat3 dual = dual_of(s->lattice);
  const auto seed = static_cast<std::uint32_t>(wanted.disorder_seed);
  for (std::size_t atom = 0; atom < s->position.size(); ++atom) {
    const auto number = static_cast<std::uint32_t>(atom);
    const double z = 2.0 * Philox::at(number, 0, 0, 0, seed, kKeyOfDisorder).unit() - 1.0,
                 angle = 2.0 * kPi * Philox::at(number, 1, 0, 0, seed, kKeyOfDisorder).unit(),
                 r = std::sqrt(1.0 - z * z);
    const Vec3 moved_bohr =
        wanted.disorder_bohr * Vec3{r * std::cos(angle), r * std::sin(angle), z};
    for (int i = 0; i < 3; ++i) s->position[atom][i] += dot(dual[i], moved_bohr);
  }
}

/// Returns the atoms of a crystal without disorder.
Structure make_ideal_structure(const EmpiricalCrystal& wanted, double a) {
  if (const WellModel* wells = well_model(wanted.name))
    return make_wells(wanted, a, wells->height_bohr);
  // The primitive vectors of the reference files, so that q-lists coincide.
  const Mat3 primitive{{{-0.5, 0.0, 0.5}, {0.0, 0.5, 0.5}, {-0.5, 0.5, 0.0}}};
  const Mat3 cubic{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  Structure s;
  const Mat3& cell = wanted.cubic_cell ? cubic : primitive;
  for (int i = 0; i < 3; ++i)
    s.lattice[i] = (a * wanted.repeats[i]) * multiply(wanted.deformation, cell[i]);
  std::vector<Vec3> base{{-0.125, -0.125, -0.125}, {0.125, 0.125, 0.125}};
  std::vector<int> kinds{0, 1};
  if (wanted.cubic_cell) {
    base.clear();
    kinds.clear();
    for (const Vec3& shift :
         {Vec3{0, 0, 0}, Vec3{0, 0.5, 0.5}, Vec3{0.5, 0, 0.5}, Vec3{0.5, 0.5, 0}})
      for (int t = 0; t < 2; ++t) {
        const double x = t == 0 ? -0.125 : 0.125;
        base.push_back(shift + Vec3{x, x, x});
        kinds.push_back(t);
      }
  }
  for (int i = 0; i < wanted.repeats[0]; ++i)
    for (int j = 0; j < wanted.repeats[1]; ++j)
      for (int k = 0; k < wanted.repeats[2]; ++k)
        for (std::size_t n = 0; n < base.size(); ++n) {
          const Vec3 p = base[n] + to_real({i, j, k});
          s.position.push_back(
              Vec3{p[0] / wanted.repeats[0], p[1] / wanted.repeats[1], p[2] / wanted.repeats[2]} +
              wanted.origin_shift);
          s.kind.push_back(kinds[n]);
        }
  return s;
}

Structure make_structure(const EmpiricalCrystal& wanted, double a) {
  Structure s = make_ideal_structure(wanted, a);
  displace_atoms(wanted, &s);
  return s;
}

/// True if a rotation maps the points of a k-grid onto each other: k'_j = R_ji/n_i is a multiple of
/// 1/n_j.
bool keeps_grid(const IMat3& rotation, const IVec3& grid) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      if (grid[j] * rotation[j][i] % grid[i] != 0) return false;
  return true;
}

/// The point operations of the crystal that the k-grid has too, with their translations. The pure
/// translations of a supercell would enlarge the group beyond what the files of BerkeleyGW can
/// hold. A supercell is therefore used without symmetry.
std::vector<SymmetryOperation> find_symmetries(const Structure& s, const EmpiricalCrystal& wanted) {
  const SymmetryOperation identity{{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, {}};
  std::vector<SymmetryOperation> operations{identity};
  if (wanted.cubic_cell || wanted.repeats != IVec3{1, 1, 1}) return operations;
  double lattice[3][3];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) lattice[j][i] = s.lattice[i][j];
  std::vector<std::array<double, 3>> positions(s.position.begin(), s.position.end());
  const std::array<int, 2> numbers = atomic_numbers(wanted.name);
  const bool same = numbers[0] == numbers[1];
  std::vector<int> types;
  for (const int kind : s.kind) types.push_back(same ? 1 : kind + 1);
  SpglibDataset* data = spg_get_dataset(lattice, reinterpret_cast<double(*)[3]>(positions.data()),
                                        types.data(), static_cast<int>(types.size()), 1e-6);
  if (data == nullptr)
    throw InvalidInput("the symmetry of the built-in crystal could not be found");
  for (int n = 0; n < data->n_operations; ++n) {
    IMat3 w{};
    SymmetryOperation operation;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) w[i][j] = data->rotations[n][i][j];
    const IMat3 inv = inverse(w);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) operation.rotation[i][j] = inv[j][i];
      double t = data->translations[n][i];
      t -= std::round(t);
      operation.translation[i] = 2.0 * kPi * t;
    }
    if (operation.rotation != identity.rotation && keeps_grid(operation.rotation, wanted.k_grid))
      operations.push_back(operation);
  }
  spg_free_dataset(data);
  return operations;
}

Crystal make_crystal(const Structure& s, const std::array<int, 2>& atomic_number, double a,
                     std::vector<SymmetryOperation> operations) {
  Crystal c;
  c.alat_bohr = a;
  c.blat_per_bohr = 2.0 * kPi / a;
  const Mat3& l = s.lattice;
  c.volume_bohr3 = std::abs(determinant(l));
  Mat3 reciprocal = dual_of(l);
  for (Vec3& row : reciprocal) row = 2.0 * kPi * row;
  c.recvol_per_bohr3 = std::pow(2.0 * kPi, 3) / c.volume_bohr3;
  for (int i = 0; i < 3; ++i) {
    c.avec[i] = (1.0 / a) * l[i];
    c.bvec[i] = (1.0 / c.blat_per_bohr) * reciprocal[i];
    for (int j = 0; j < 3; ++j) {
      c.adot[i][j] = dot(l[i], l[j]);
      c.bdot[i][j] = dot(reciprocal[i], reciprocal[j]);
    }
  }
  for (std::size_t n = 0; n < s.position.size(); ++n) {
    Vec3 p{};
    for (int i = 0; i < 3; ++i) p = p + (s.position[n][i] / a) * l[i];
    c.atoms.push_back({p, atomic_number[static_cast<std::size_t>(s.kind[n])]});
  }
  c.symmetries = std::move(operations);
  return c;
}

/// V(G) of the local potential where it is not 0.
class LocalPotential {
 public:
  /// @param crystal  not deformed: form factors are known at its |G| alone
  LocalPotential(const Structure& s, const FormFactors& factors, const Crystal& crystal) {
    const double unit_ry = std::pow(2.0 * kPi / crystal.alat_bohr, 2);
    constexpr int kShell[] = {3, 4, 8, 11};
    const GSphere sphere = make_g_sphere(crystal.bdot, {}, (kShell[3] + 0.5) * unit_ry);
    for (std::size_t i = 0; i < sphere.g.size(); ++i)
      for (int shell = 0; shell < 4; ++shell) {
        if (std::abs(sphere.kinetic_ry[i] / unit_ry - kShell[shell]) > 1e-6) continue;
        Cplx sum;
        for (std::size_t n = 0; n < s.position.size(); ++n) {
          const double v = factors.symmetric_ry[shell] +
                           (s.kind[n] == 0 ? -1.0 : 1.0) * factors.antisymmetric_ry[shell];
          sum += v * std::polar(1.0, -2.0 * kPi * dot(to_real(sphere.g[i]), s.position[n]));
        }
        values_.emplace_back(sphere.g[i], sum / static_cast<double>(s.position.size()));
      }
    drop_rounding();
  }
  /// The potential of displaced atoms, whose structure factors vanish at no G.
  /// @param crystal  not deformed
  static LocalPotential of_disorder(const Structure& s, const FormFactors& factors,
                                    const Crystal& crystal) {
    LocalPotential potential;
    const double unit_ry = std::pow(2.0 * kPi / crystal.alat_bohr, 2);
    const GSphere sphere = make_g_sphere(crystal.bdot, {}, kEndOfFormFactors * unit_ry);
    for (std::size_t i = 0; i < sphere.g.size(); ++i) {
      if (sphere.g[i] == IVec3{}) continue;  // ⟨V⟩ is the zero of energy
      double v[2];
      for (int kind = 0; kind < 2; ++kind)
        v[kind] = interpolated_form_factor(factors, crystal.alat_bohr,
                                           sphere.kinetic_ry[i] / unit_ry, kind);
      Cplx sum;
      for (std::size_t n = 0; n < s.position.size(); ++n)
        sum +=
            v[s.kind[n]] * std::polar(1.0, -2.0 * kPi * dot(to_real(sphere.g[i]), s.position[n]));
      potential.values_.emplace_back(sphere.g[i], sum / static_cast<double>(s.position.size()));
    }
    return potential;
  }
  /// Wells −depth e^{−r²/2w²} at the atoms. @param crystal  not deformed
  LocalPotential(const Structure& s, const WellModel& wells, const Crystal& crystal,
                 double wavefunction_cutoff_ry) {
    const double width2 = wells.width_bohr * wells.width_bohr;
    const double at_zero =
        -wells.depth_ry * std::pow(2.0 * kPi * width2, 1.5) / crystal.volume_bohr3;
    // Differences of plane waves reach twice the radius of their sphere, and a little more in a
    // deformed crystal.
    const GSphere sphere = make_g_sphere(crystal.bdot, {}, 6.5 * wavefunction_cutoff_ry);
    for (std::size_t i = 0; i < sphere.g.size(); ++i) {
      Cplx sum;
      for (const Vec3& position : s.position)
        sum += std::polar(1.0, -2.0 * kPi * dot(to_real(sphere.g[i]), position));
      const double form = at_zero * std::exp(-0.5 * width2 * sphere.kinetic_ry[i]);
      if (std::abs(form) > 1e-14 * std::abs(at_zero)) values_.emplace_back(sphere.g[i], form * sum);
    }
    drop_rounding();
  }
  const PotentialElements& values() const { return values_; }

 private:
  LocalPotential() = default;
  /// With an inversion centre at the origin V(G) is real but for the rounding of the phases; H is
  /// then made exactly real where k is its own inverse, which halves every transform and quarters
  /// every product.
  void drop_rounding() {
    double largest = 0.0, imaginary = 0.0;
    for (const auto& [g, value] : values_) {
      largest = std::max(largest, std::abs(value));
      imaginary = std::max(imaginary, std::abs(value.imag()));
    }
    if (imaginary < 1e-13 * largest)
      for (auto& [g, value] : values_) value = value.real();
  }
  PotentialElements values_;
};

double lattice_of(const EmpiricalCrystal& wanted) {
  if (wanted.lattice_bohr > 0.0) return wanted.lattice_bohr;
  const WellModel* wells = well_model(wanted.name);
  return wells != nullptr ? wells->lattice_bohr : form_factors(wanted.name).lattice_bohr;
}

}  // namespace

Crystal empirical_crystal(const EmpiricalCrystal& wanted) {
  const double a = lattice_of(wanted);
  const Structure structure = make_structure(wanted, a);
  return make_crystal(structure, atomic_numbers(wanted.name), a,
                      find_symmetries(structure, wanted));
}

PotentialElements empirical_potential(const EmpiricalCrystal& wanted) {
  const double a = lattice_of(wanted);
  EmpiricalCrystal plain = wanted;
  plain.deformation = EmpiricalCrystal{}.deformation;
  const Structure structure = make_structure(wanted, a);
  const Crystal crystal =
      make_crystal(make_structure(plain, a), atomic_numbers(wanted.name), a, {});
  if (const WellModel* wells = well_model(wanted.name))
    return LocalPotential(structure, *wells, crystal, wanted.wavefunction_cutoff_ry).values();
  const FormFactors& factors = form_factors(wanted.name);
  return wanted.disorder_bohr > 0.0
             ? LocalPotential::of_disorder(structure, factors, crystal).values()
             : LocalPotential(structure, factors, crystal).values();
}

std::vector<double> spin_orbit_strengths(const EmpiricalCrystal& wanted) {
  std::vector<double> strength;
  for (const int kind : make_structure(wanted, lattice_of(wanted)).kind)
    strength.push_back((*wanted.spin_orbit_ry_bohr2)[static_cast<std::size_t>(kind)]);
  return strength;
}

SpinOrbitTerm spin_orbit_term(const EmpiricalCrystal& wanted, const Crystal& crystal) {
  return SpinOrbitTerm(crystal, spin_orbit_strengths(wanted),
                       make_structure(wanted, lattice_of(wanted)).position);
}

int occupied_bands_of(const EmpiricalCrystal& wanted, const Crystal& crystal) {
  // An atom has four electrons, a well two, and a band holds two, or one if states are spinors.
  return (well_model(wanted.name) != nullptr ? 1 : 2) * wanted.n_spinor() *
         static_cast<int>(crystal.atoms.size());
}

}  // namespace quasi::gw
