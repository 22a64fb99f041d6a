#include "workers/gw/solver/perturbation/atom_displacement.hpp"

#include <cmath>
#include <optional>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/model/form_factor_curve.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"
#include "workers/gw/solver/perturbation/coupling_parts.hpp"
#include "workers/gw/solver/perturbation/spinors/spin_orbit_displacement.hpp"

namespace quasi::gw {
namespace {

void check(const EmpiricalCrystal& wanted, const Crystal& crystal, int atom) {
  if (atom < 0 || atom >= static_cast<int>(crystal.atoms.size()))
    throw InvalidInput("atom " + std::to_string(atom + 1) + " is displaced, but the crystal has " +
                       std::to_string(crystal.atoms.size()) + " atoms; count them from 1");
  if (wanted.deformation != EmpiricalCrystal{}.deformation)
    throw InvalidInput(
        "an atom of a deformed built-in crystal is displaced, but its form factors are known at "
        "the lengths of the undeformed crystal alone; leave out the deformation");
}

/// Holds one plane wave K = p + G of an atom's potential, without the position of the atom.
struct FormFactorAt {
  IVec3 g{};
  Vec3 k_per_bohr{};      ///< K, Cartesian
  double value_ry = 0.0;  ///< v_a(|K|²)/N_at
};

/// Returns v_a in Ry, or nothing where the rule has no form factor. A uniform potential moves no
/// state, so that K = 0 has none.
std::optional<double> form_factor(const FormFactorCurve& curve, double squared, bool all_lengths) {
  if (squared < 1e-6) return {};
  if (all_lengths) return curve.at(squared);
  for (const int shell : {3, 4, 8, 11})
    if (std::abs(squared - shell) <= 1e-6) return curve.at(squared);
  return {};
}

/// Lists the plane waves of the potential of one atom.
std::vector<FormFactorAt> form_factors_at(const FormFactors& factors, const Crystal& crystal,
                                          std::size_t atom, const DisplacementWave& wave) {
  constexpr double kLargest = 12.0;
  const double unit_ry = std::pow(2.0 * kPi / crystal.alat_bohr, 2);
  const FormFactorCurve curve(factors,
                              crystal.atoms[atom].atomic_number == factors.atomic_number[0]);
  std::vector<FormFactorAt> list;
  const GSphere sphere = make_g_sphere(crystal.bdot, wave.p, kLargest * unit_ry);
  for (std::size_t i = 0; i < sphere.g.size(); ++i) {
    const auto value = form_factor(curve, sphere.kinetic_ry[i] / unit_ry, wave.all_lengths);
    if (!value) continue;
    Vec3 k{};
    for (std::size_t j = 0; j < 3; ++j) k = k + (wave.p[j] + sphere.g[i][j]) * crystal.bvec[j];
    list.push_back({sphere.g[i], crystal.blat_per_bohr * k,
                    *value / static_cast<double>(crystal.atoms.size())});
  }
  return list;
}

/// Returns e^{−iK·τ} of an atom at τ.
Cplx phase_at(const FormFactorAt& wave, const Vec3& position_bohr) {
  return std::polar(1.0, -dot(wave.k_per_bohr, position_bohr));
}

Vec3 position_bohr(const Crystal& crystal, std::size_t atom) {
  return crystal.alat_bohr * crystal.atoms[atom].position_alat;
}

}  // namespace

Perturbation atom_displacement(const EmpiricalCrystal& wanted, const Crystal& crystal, int atom,
                               const Vec3& direction, const DisplacementWave& wave) {
  check(wanted, crystal, atom);
  if (wave.p != Vec3{} && !wave.all_lengths)
    throw InvalidInput("a displacement with a wave vector needs the form factors of all lengths");
  const auto a = static_cast<std::size_t>(atom);
  PotentialElements elements;
  for (const FormFactorAt& at : form_factors_at(form_factors(wanted.name), crystal, a, wave))
    elements.emplace_back(at.g, Cplx(0.0, -dot(at.k_per_bohr, direction)) * at.value_ry *
                                    phase_at(at, position_bohr(crystal, a)));
  Perturbation perturbation{
      .name = "atom " + std::to_string(atom + 1), .p = wave.p, .potential = {}};
  // Only ∂V with the period of the lattice has elements by G alone.
  if (wave.p == Vec3{}) perturbation.elements = elements;
  perturbation.digest = digest_of(elements);
  perturbation.potential = [elements](const Vec3& /*k*/, const std::vector<IVec3>& bra,
                                      const std::vector<IVec3>& ket) {
    const GIndex index(ket);
    std::vector<Cplx> matrix(bra.size() * ket.size());
    for (std::size_t i = 0; i < bra.size(); ++i)
      for (const auto& [difference, value] : elements)
        if (const std::int32_t j = index.find(bra[i] - difference); j >= 0)
          matrix[i * ket.size() + static_cast<std::size_t>(j)] = value;
    return matrix;
  };
  if (wanted.couples_spins())
    perturbation.spin_orbit = std::make_shared<const SpinOrbitDisplacement>(
        crystal, atom, spin_orbit_strengths(wanted)[a], direction);
  return perturbation;
}

PotentialElements displaced_potential(const EmpiricalCrystal& wanted, const Crystal& crystal,
                                      int atom, const Vec3& displacement_bohr, bool all_lengths) {
  check(wanted, crystal, atom);
  PotentialElements elements;
  for (std::size_t a = 0; a < crystal.atoms.size(); ++a) {
    Vec3 position = position_bohr(crystal, a);
    if (a == static_cast<std::size_t>(atom)) position = position + displacement_bohr;
    const auto list = form_factors_at(form_factors(wanted.name), crystal, a,
                                      {.p = {}, .all_lengths = all_lengths});
    if (elements.empty())
      for (const FormFactorAt& wave : list) elements.emplace_back(wave.g, Cplx{});
    for (std::size_t i = 0; i < list.size(); ++i)
      elements[i].second += list[i].value_ry * phase_at(list[i], position);
  }
  return elements;
}

std::shared_ptr<const SpinOrbitTerm> displaced_spin_orbit(const EmpiricalCrystal& wanted,
                                                          const Crystal& crystal, int atom,
                                                          const Vec3& displacement_bohr) {
  check(wanted, crystal, atom);
  if (!wanted.couples_spins()) return nullptr;
  std::vector<Vec3> positions;
  for (std::size_t a = 0; a < crystal.atoms.size(); ++a) {
    Vec3 at = crystal.atoms[a].position_alat;
    if (a == static_cast<std::size_t>(atom))
      at = at + (1.0 / crystal.alat_bohr) * displacement_bohr;
    positions.push_back(
        {dot(crystal.bvec[0], at), dot(crystal.bvec[1], at), dot(crystal.bvec[2], at)});
  }
  return std::make_shared<const SpinOrbitTerm>(crystal, spin_orbit_strengths(wanted),
                                               std::move(positions));
}

}  // namespace quasi::gw
