#include "workers/gw/solver/perturbation/zero_point_modes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <numeric>

#include "workers/backend/error.hpp"
#include "workers/gw/model/element_symbols.hpp"
#include "workers/units/constants.hpp"

namespace quasi::gw {
namespace {

/// Lattice constants of force constants and of form factors differ by up to a percent.
constexpr double kLatticeLimit = 0.02;
/// Positions in units of the lattice vectors.
constexpr double kPositionLimit = 0.01;
/// Modes files hold four digits or more.
constexpr double kOrthonormalLimit = 1e-3;
/// Force constants that break the acoustic sum rule by 5 meV mix 1e-4 of shifts into optical modes.
constexpr double kShiftLimit = 0.01;
constexpr double kAcousticLimit_ev = 5e-3;
constexpr double kSmallestOptical_ev = 1e-4;
constexpr double kDegenerate_ev = 2e-5;
/// Wave vectors may have four digits.
constexpr double kSameWaveVector = 1e-3;
/// Mω² of N2, the strongest known bond, is 4,600 N/m; that of diamond is 1,250 N/m.
constexpr double kStiffnessLimit_n_m = 5000.0;

[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  char text[400];
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

[[noreturn]] void refuse(const PhononModes& modes, const std::string& problem) {
  throw InvalidInput("perturbation.modes: " + modes.file + ": " + problem);
}

/// Returns ħ²/(2M ħω) in Bohr².
double squared_amplitude_bohr2(double mass_amu, double energy_ev) {
  const double joule = energy_ev * units::kElementaryCharge_c;
  return units::kHbar_j_s * units::kHbar_j_s /
         (2.0 * mass_amu * units::kAtomicMass_kg * joule * units::kBohr_m * units::kBohr_m);
}

// --- crystal

void check_counts(const PhononModes& modes, const Crystal& crystal) {
  const std::size_t n = modes.atoms.size();
  if (n != crystal.atoms.size())
    refuse(modes, formatted("its cell has %zu atoms, but the cell of the job has %zu; calculate "
                            "the modes in the cell of the job",
                            n, crystal.atoms.size()));
  if (modes.n_modes() != 3 * n)
    refuse(modes, formatted("it holds %zu modes, but %zu atoms have %zu; list all of them",
                            modes.n_modes(), n, 3 * n));
}

/// Returns the lattice vectors of the modes in whole units of those of the crystal.
IMat3 lattice_in_crystal(const PhononModes& modes, const Crystal& crystal) {
  IMat3 whole{};
  for (std::size_t i = 0; i < 3; ++i) {
    const Vec3 vector = (1.0 / crystal.alat_bohr) * modes.lattice_bohr[i];
    const Vec3 reduced = multiply(crystal.bvec, vector);
    if (!nearest_lattice_point(reduced, &whole[i], kLatticeLimit))
      refuse(modes,
             formatted("lattice vector %zu is (%.4f, %.4f, %.4f) lattice vectors of the job, "
                       "more than %.2f from whole numbers; use the modes of the same "
                       "crystal with the same Cartesian axes",
                       i + 1, reduced[0], reduced[1], reduced[2], kLatticeLimit));
  }
  if (std::abs(determinant(whole)) != 1)
    refuse(modes, formatted("its cell has %d times the volume of the cell of the job; calculate "
                            "the modes in the cell of the job",
                            std::abs(determinant(whole))));
  return whole;
}

/// Reduced coordinates of an atom of the crystal.
Vec3 reduced_position(const Crystal& crystal, std::size_t atom) {
  return multiply(crystal.bvec, crystal.atoms[atom].position_alat);
}

/// Holds the place of an atom of the modes: an atom of the crystal, in one of its cells.
struct AtomOfCell {
  std::size_t atom;
  IVec3 cell;  ///< lattice vector from the atom that the crystal lists to that place, reduced
};

/// Returns the atom of the crystal at each position plus a shift; empty if an atom is not found.
std::vector<AtomOfCell> atoms_at(const PhononModes& modes, const std::vector<Vec3>& position,
                                 const Vec3& shift, const Crystal& crystal) {
  std::vector<AtomOfCell> found;
  for (std::size_t a = 0; a < position.size(); ++a)
    for (std::size_t b = 0; b < crystal.atoms.size(); ++b) {
      IVec3 cell{};
      if (modes.atoms[a].atomic_number == crystal.atoms[b].atomic_number &&
          nearest_lattice_point(position[a] + shift - reduced_position(crystal, b), &cell,
                                kPositionLimit) &&
          std::none_of(found.begin(), found.end(),
                       [b](const AtomOfCell& other) { return other.atom == b; })) {
        found.push_back({b, cell});
        break;
      }
    }
  return found.size() == position.size() ? found : std::vector<AtomOfCell>{};
}

/// Lists the elements of a cell, such as "Ga As".
template <typename Atoms>
std::string elements_of(const Atoms& atoms) {
  std::string text;
  for (const auto& atom : atoms) {
    text += text.empty() ? "" : " ";
    text += element_symbol(atom.atomic_number);
  }
  return text;
}

/// Refuses modes whose cell has other elements.
void check_elements(const PhononModes& modes, const Crystal& crystal) {
  std::vector<int> theirs, ours;
  for (const VibratingAtom& atom : modes.atoms) theirs.push_back(atom.atomic_number);
  for (const Atom& atom : crystal.atoms) ours.push_back(atom.atomic_number);
  std::sort(theirs.begin(), theirs.end());
  std::sort(ours.begin(), ours.end());
  if (theirs != ours)
    refuse(modes, "its atoms are " + elements_of(modes.atoms) + ", but those of the job are " +
                      elements_of(crystal.atoms) + "; use the modes of the crystal of the job");
}

/// Returns the wave vector of the modes in units of the reciprocal vectors of the crystal. With
/// lattice vectors A = W a of the modes, q·A_i = 2π (W q)_i.
Vec3 wave_vector_in_crystal(const PhononModes& modes, const IMat3& whole) {
  const IMat3 back = inverse(whole);
  Vec3 q{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) q[i] += back[i][j] * modes.q[j];
  return folded(q);
}

/// Place of the atoms of the modes in the crystal of the job.
struct Placement {
  std::vector<AtomOfCell> atom;  ///< atom of the crystal for each atom of the modes
  double sign = 1.0;             ///< −1: the crystal is that of the modes after inversion
  Vec3 q{};                      ///< wave vector of the modes in the crystal, in [0, 1)
};

Placement placement(const PhononModes& modes, const Crystal& crystal) {
  check_counts(modes, crystal);
  check_elements(modes, crystal);
  const IMat3 whole = lattice_in_crystal(modes, crystal);
  for (const double sign : {1.0, -1.0}) {
    std::vector<Vec3> position(modes.atoms.size());
    for (std::size_t a = 0; a < position.size(); ++a)
      for (std::size_t i = 0; i < 3; ++i)
        position[a] = position[a] + sign * modes.atoms[a].position[i] * to_real(whole[i]);
    for (std::size_t b = 0; b < crystal.atoms.size(); ++b) {
      const auto found =
          atoms_at(modes, position, reduced_position(crystal, b) - position[0], crystal);
      if (!found.empty()) return {found, sign, wave_vector_in_crystal(modes, whole)};
    }
  }
  refuse(modes, formatted("no shift of the origin brings its atoms to those of the job within "
                          "%.2f lattice vectors, nor does one after inversion; correct the "
                          "positions, which are in units of the lattice vectors",
                          kPositionLimit));
}

// --- modes

void check_orthonormal(const PhononModes& modes) {
  const std::size_t n = modes.n_modes();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      Cplx product;
      for (std::size_t c = 0; c < n; ++c)
        product += std::conj(modes.eigenvector[i * n + c]) * modes.eigenvector[j * n + c];
      const double error = std::abs(product - (i == j ? 1.0 : 0.0));
      if (error <= kOrthonormalLimit) continue;
      refuse(modes, formatted("the product of eigenvectors %zu and %zu is %.4f instead of %d, "
                              "outside of %.0e; give orthonormal eigenvectors of the dynamical "
                              "matrix, not displacements",
                              i + 1, j + 1, std::abs(product), i == j ? 1 : 0, kOrthonormalLimit));
    }
}

/// Returns the share of rigid shifts in an eigenvector, Σ_α |Σ_a √(M_a/M) e_aα|².
double share_of_shifts(const ZeroPointModes& modes, std::size_t mode) {
  const double total_amu = std::accumulate(modes.mass_amu.begin(), modes.mass_amu.end(), 0.0);
  double share = 0.0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    Cplx along;
    for (std::size_t a = 0; a < modes.mass_amu.size(); ++a)
      along += std::sqrt(modes.mass_amu[a] / total_amu) *
               modes.eigenvector[mode * modes.n_modes() + 3 * a + axis];
    share += std::norm(along);
  }
  return share;
}

/// Returns Mω² in N/m with the mass that moves in the mode.
double stiffness_n_m(const ZeroPointModes& modes, std::size_t mode) {
  double inverse_amu = 0.0;
  for (std::size_t c = 0; c < modes.n_modes(); ++c)
    inverse_amu += std::norm(modes.eigenvector[mode * modes.n_modes() + c]) / modes.mass_amu[c / 3];
  const double omega_per_s = modes.energy_ev[mode] * units::kElementaryCharge_c / units::kHbar_j_s;
  return units::kAtomicMass_kg / inverse_amu * omega_per_s * omega_per_s;
}

/// Checks the energies of shifts and of optical modes. @pre `acoustic` is set
void check_energies(const PhononModes& file, const ZeroPointModes& modes) {
  for (std::size_t m = 0; m < modes.n_modes(); ++m) {
    const double mev = 1e3 * modes.energy_ev[m];
    if (modes.acoustic[m]) {
      if (std::abs(modes.energy_ev[m]) > kAcousticLimit_ev)
        refuse(file, formatted("mode %zu is a rigid shift, but has %.4g meV, above the limit of "
                               "%.0f meV; impose the acoustic sum rule, or correct frequency_unit",
                               m + 1, mev, 1e3 * kAcousticLimit_ev));
      continue;
    }
    if (modes.energy_ev[m] < kSmallestOptical_ev)
      refuse(file,
             formatted("mode %zu is no rigid shift and has %.4g meV, below the limit of %.1f "
                       "meV: an unstable mode has no zero-point amplitude; relax the crystal, "
                       "or give renormalised modes",
                       m + 1, mev, 1e3 * kSmallestOptical_ev));
    if (const double stiffness = stiffness_n_m(modes, m); stiffness > kStiffnessLimit_n_m)
      refuse(file, formatted("mode %zu has %.4g meV, which needs a force constant of %.3g N/m, "
                             "above the limit of %.0f N/m; correct the unit of the frequencies or "
                             "of the masses (amu)",
                             m + 1, mev, stiffness, kStiffnessLimit_n_m));
  }
}

void find_acoustic(const PhononModes& file, ZeroPointModes& modes) {
  for (std::size_t m = 0; m < modes.n_modes(); ++m) {
    const double share = share_of_shifts(modes, m);
    modes.acoustic.push_back(share > 0.5);
    if (std::min(share, std::abs(1.0 - share)) > kShiftLimit)
      refuse(file, formatted("mode %zu is to %.3f a rigid shift, neither 0 nor 1 within %.2f; give "
                             "eigenvectors of the dynamical matrix, sqrt(M) u, with the masses "
                             "that belong to them",
                             m + 1, share, kShiftLimit));
  }
}

/// Finds degenerate sets: chains of modes with close energies, shifts apart from the others.
void find_sets(ZeroPointModes& modes) {
  const std::size_t n = modes.n_modes();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (modes.acoustic[a] != modes.acoustic[b]) return static_cast<bool>(modes.acoustic[a]);
    return !modes.acoustic[a] && modes.energy_ev[a] < modes.energy_ev[b];
  });
  modes.first_of_set.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t m = order[i], before = i == 0 ? m : order[i - 1];
    const bool same =
        i > 0 && modes.acoustic[m] == modes.acoustic[before] &&
        (modes.acoustic[m] || modes.energy_ev[m] - modes.energy_ev[before] <= kDegenerate_ev);
    modes.first_of_set[m] = same ? modes.first_of_set[before] : static_cast<int>(m);
  }
}

}  // namespace

Cplx ZeroPointModes::displacement_bohr(std::size_t mode, std::size_t atom, std::size_t axis) const {
  return std::sqrt(squared_amplitude_bohr2(mass_amu[atom], energy_ev[mode])) *
         eigenvector[mode * n_modes() + 3 * atom + axis];
}

double ZeroPointModes::cell_amplitude_bohr(std::size_t mode) const {
  return std::sqrt(squared_amplitude_bohr2(std::accumulate(mass_amu.begin(), mass_amu.end(), 0.0),
                                           energy_ev[mode]));
}

namespace {

/// Returns an element of an eigenvector in the crystal. The listed atom lies `cell` before its
/// place in the modes, which gives it the phase e^{−iq·cell}. Inversion turns a pattern of q
/// into one of −q, whose complex conjugate has the wave vector q again.
Cplx placed_element(const Cplx& element, const Placement& place, const IVec3& cell) {
  const Cplx phase = std::polar(1.0, -2.0 * kPi * dot(place.q, to_real(cell)));
  if (place.q == Vec3{}) return place.sign * element;
  return place.sign > 0.0 ? element * phase : -std::conj(element) * phase;
}

/// True if a wave vector in [0, 1) is 0.
bool is_gamma(const Vec3& q) {
  IVec3 whole{};
  return nearest_lattice_point(q, &whole, kSameWaveVector);
}

}  // namespace

ZeroPointModes zero_point_modes(const PhononModes& modes, const Crystal& crystal) {
  const Placement place = placement(modes, crystal);
  const auto& atoms = place.atom;
  check_orthonormal(modes);
  const std::size_t n = modes.n_modes();
  ZeroPointModes found{.energy_ev = modes.energy_ev,
                       .mass_amu = std::vector<double>(atoms.size()),
                       .eigenvector = std::vector<Cplx>(n * n),
                       .q = place.q};
  for (std::size_t a = 0; a < atoms.size(); ++a) {
    found.mass_amu[atoms[a].atom] = modes.atoms[a].mass_amu;
    for (std::size_t m = 0; m < n; ++m)
      for (std::size_t axis = 0; axis < 3; ++axis)
        found.eigenvector[m * n + 3 * atoms[a].atom + axis] =
            placed_element(modes.eigenvector[m * n + 3 * a + axis], place, atoms[a].cell);
  }
  if (is_gamma(found.q))
    find_acoustic(modes, found);
  else
    found.acoustic.assign(n, false);
  check_energies(modes, found);
  find_sets(found);
  return found;
}

ZeroPointModes zero_point_modes_at(const std::vector<PhononModes>& listed, const Vec3& q,
                                   const Crystal& crystal) {
  std::string files;
  for (const PhononModes& modes : listed) {
    check_counts(modes, crystal);
    const Vec3 own = wave_vector_in_crystal(modes, lattice_in_crystal(modes, crystal));
    IVec3 whole{};
    if (!nearest_lattice_point(own - q, &whole, kSameWaveVector)) {
      if (files.find(modes.file) == std::string::npos) files += " " + modes.file;
      continue;
    }
    PhononModes exact = modes;
    const IMat3 lattice = lattice_in_crystal(modes, crystal);
    for (std::size_t i = 0; i < 3; ++i) {
      exact.q[i] = 0.0;
      for (std::size_t j = 0; j < 3; ++j) exact.q[i] += lattice[i][j] * q[j];
    }
    return zero_point_modes(exact, crystal);
  }
  throw InvalidInput(
      formatted("perturbation.modes_at_q: no modes at q = (%.6f, %.6f, %.6f) in the "
                "files%s; add a file with these modes, or remove that q from "
                "perturbation.q",
                q[0], q[1], q[2], files.c_str()));
}

}  // namespace quasi::gw
