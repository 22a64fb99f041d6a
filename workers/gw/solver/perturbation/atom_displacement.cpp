#include "workers/gw/solver/perturbation/atom_displacement.hpp"

#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"

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

/// ∂V(G) where it is not 0, Ry/Bohr.
PotentialElements derivative_elements(const FormFactors& factors, const Crystal& crystal, int atom,
                                      const Vec3& direction) {
  const double unit_ry = std::pow(2.0 * kPi / crystal.alat_bohr, 2);
  constexpr int kShell[] = {3, 4, 8, 11};
  const auto& of_atom = crystal.atoms[static_cast<std::size_t>(atom)];
  const double sign = of_atom.atomic_number == factors.atomic_number[0] ? -1.0 : 1.0;
  PotentialElements elements;
  const GSphere sphere = make_g_sphere(crystal.bdot, {}, (kShell[3] + 0.5) * unit_ry);
  for (std::size_t i = 0; i < sphere.g.size(); ++i)
    for (int shell = 0; shell < 4; ++shell) {
      if (std::abs(sphere.kinetic_ry[i] / unit_ry - kShell[shell]) > 1e-6) continue;
      Vec3 g{};  // Cartesian, in units of blat
      for (int j = 0; j < 3; ++j) g = g + static_cast<double>(sphere.g[i][j]) * crystal.bvec[j];
      const double v = factors.symmetric_ry[shell] + sign * factors.antisymmetric_ry[shell];
      const double along = crystal.blat_per_bohr * dot(g, direction);
      const double phase = -2.0 * kPi * dot(g, of_atom.position_alat);
      elements.emplace_back(sphere.g[i], Cplx(0.0, -along) * v * std::polar(1.0, phase) /
                                             static_cast<double>(crystal.atoms.size()));
    }
  return elements;
}

}  // namespace

Perturbation atom_displacement(const EmpiricalCrystal& wanted, const Crystal& crystal, int atom,
                               const Vec3& direction) {
  check(wanted, crystal, atom);
  Perturbation perturbation;
  perturbation.name = "atom " + std::to_string(atom + 1);
  perturbation.potential =
      [elements = derivative_elements(form_factors(wanted.name), crystal, atom, direction)](
          const Vec3& /*k*/, const std::vector<IVec3>& bra, const std::vector<IVec3>& ket) {
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

}  // namespace quasi::gw
