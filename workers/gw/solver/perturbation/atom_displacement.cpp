#include "workers/gw/solver/perturbation/atom_displacement.hpp"

#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/g_sphere.hpp"

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

/// One plane wave of the potential of an atom, without the position of the atom.
struct FormFactorAt {
  IVec3 g{};
  Vec3 g_per_bohr{};      ///< Cartesian
  double value_ry = 0.0;  ///< v_a(|G|²)/N_at
};

/// Lists the plane waves of the potential of one atom.
std::vector<FormFactorAt> form_factors_at(const FormFactors& factors, const Crystal& crystal,
                                          std::size_t atom) {
  const double unit_ry = std::pow(2.0 * kPi / crystal.alat_bohr, 2);
  constexpr int kShell[] = {3, 4, 8, 11};
  const bool first = crystal.atoms[atom].atomic_number == factors.atomic_number[0];
  std::vector<FormFactorAt> list;
  const GSphere sphere = make_g_sphere(crystal.bdot, {}, (kShell[3] + 0.5) * unit_ry);
  for (std::size_t i = 0; i < sphere.g.size(); ++i)
    for (int shell = 0; shell < 4; ++shell) {
      if (std::abs(sphere.kinetic_ry[i] / unit_ry - kShell[shell]) > 1e-6) continue;
      Vec3 g{};
      for (int j = 0; j < 3; ++j) g = g + static_cast<double>(sphere.g[i][j]) * crystal.bvec[j];
      const double v =
          factors.symmetric_ry[shell] + (first ? -1.0 : 1.0) * factors.antisymmetric_ry[shell];
      list.push_back(
          {sphere.g[i], crystal.blat_per_bohr * g, v / static_cast<double>(crystal.atoms.size())});
    }
  return list;
}

/// Returns e^{−iG·τ} of an atom at τ.
Cplx phase_at(const FormFactorAt& wave, const Vec3& position_bohr) {
  return std::polar(1.0, -dot(wave.g_per_bohr, position_bohr));
}

Vec3 position_bohr(const Crystal& crystal, std::size_t atom) {
  return crystal.alat_bohr * crystal.atoms[atom].position_alat;
}

/// ∂V(G) where it is not 0, Ry/Bohr.
PotentialElements derivative_elements(const FormFactors& factors, const Crystal& crystal, int atom,
                                      const Vec3& direction) {
  const auto a = static_cast<std::size_t>(atom);
  PotentialElements elements;
  for (const FormFactorAt& wave : form_factors_at(factors, crystal, a))
    elements.emplace_back(wave.g, Cplx(0.0, -dot(wave.g_per_bohr, direction)) * wave.value_ry *
                                      phase_at(wave, position_bohr(crystal, a)));
  return elements;
}

}  // namespace

Perturbation atom_displacement(const EmpiricalCrystal& wanted, const Crystal& crystal, int atom,
                               const Vec3& direction) {
  check(wanted, crystal, atom);
  Perturbation perturbation;
  perturbation.name = "atom " + std::to_string(atom + 1);
  perturbation.elements = derivative_elements(form_factors(wanted.name), crystal, atom, direction);
  perturbation.potential = [elements = perturbation.elements](const Vec3& /*k*/,
                                                              const std::vector<IVec3>& bra,
                                                              const std::vector<IVec3>& ket) {
    const GIndex index(ket);
    std::vector<Cplx> matrix(bra.size() * ket.size());
    for (std::size_t i = 0; i < bra.size(); ++i)
      for (const auto& [difference, value] : elements)
        if (const std::int32_t j = index.find(bra[i] - difference); j >= 0)
          matrix[i * ket.size() + static_cast<std::size_t>(j)] = value;
    return matrix;
  };
  return perturbation;
}

PotentialElements displaced_potential(const EmpiricalCrystal& wanted, const Crystal& crystal,
                                      int atom, const Vec3& displacement_bohr) {
  check(wanted, crystal, atom);
  PotentialElements elements;
  for (std::size_t a = 0; a < crystal.atoms.size(); ++a) {
    Vec3 position = position_bohr(crystal, a);
    if (a == static_cast<std::size_t>(atom)) position = position + displacement_bohr;
    const auto list = form_factors_at(form_factors(wanted.name), crystal, a);
    if (elements.empty())
      for (const FormFactorAt& wave : list) elements.emplace_back(wave.g, Cplx{});
    for (std::size_t i = 0; i < list.size(); ++i)
      elements[i].second += list[i].value_ry * phase_at(list[i], position);
  }
  return elements;
}

}  // namespace quasi::gw
