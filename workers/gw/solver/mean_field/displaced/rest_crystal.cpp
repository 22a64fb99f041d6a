#include "workers/gw/solver/mean_field/displaced/rest_crystal.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "workers/backend/error.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {

std::string take_rest_crystal(const MeanFieldHeader& rest, Wavefunctions& waves) {
  constexpr double kSame_bohr = 1e-6, kLargest_bohr = 0.2;
  auto& atoms = waves.header.crystal.atoms;
  std::optional<std::size_t> displaced;
  Vec3 by_bohr{};
  for (std::size_t a = 0; a < std::min(atoms.size(), rest.crystal.atoms.size()); ++a) {
    const Vec3 moved =
        rest.crystal.alat_bohr * (atoms[a].position_alat - rest.crystal.atoms[a].position_alat);
    if (std::sqrt(dot(moved, moved)) < kSame_bohr) continue;
    if (displaced)
      throw InvalidInput("meanfield.displaced: WFN displaces the atoms " +
                         std::to_string(*displaced + 1) + " and " + std::to_string(a + 1) +
                         " of RHO; displace one atom");
    displaced = a;
    by_bohr = moved;
  }
  if (!displaced)
    throw InvalidInput(
        "meanfield.displaced: WFN displaces no atom of RHO; give the WFN of a displaced crystal, "
        "or remove the key");
  const double length_bohr = std::sqrt(dot(by_bohr, by_bohr));
  if (length_bohr > kLargest_bohr)
    throw InvalidInput("meanfield.displaced: WFN displaces atom " + std::to_string(*displaced + 1) +
                       " of RHO by " + shown(length_bohr) +
                       " Bohr, above the limit of 0.2; displace it by 0.01");
  atoms[*displaced].position_alat = rest.crystal.atoms[*displaced].position_alat;
  char text[200];
  std::snprintf(text, sizeof text,
                "inner states have atom %zu displaced by (%.6f, %.6f, %.6f) Bohr; W, density, V_xc "
                "and outer states are those at rest",
                *displaced + 1, by_bohr[0], by_bohr[1], by_bohr[2]);
  return text;
}

}  // namespace quasi::gw
