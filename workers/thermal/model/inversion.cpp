#include "workers/thermal/model/inversion.hpp"

#include <cmath>

namespace quasi::thermal {

std::optional<Inversion> find_inversion(const Crystal& crystal, double tolerance_nm) {
  const int n = crystal.n_atoms();
  for (int image = 0; image < n;
       ++image) {  // the centre lies halfway between the first atom and an equal atom
    Inversion inversion;
    for (int atom = 0; atom < n; ++atom) {
      int partner = -1;
      Index3 shift{};
      for (int other = 0; other < n && partner < 0; ++other) {
        if (crystal.type[other] != crystal.type[atom] ||
            crystal.mass_amu[other] != crystal.mass_amu[atom])
          continue;
        const Vec3 away = crystal.position[0] + crystal.position[image] - crystal.position[atom] -
                          crystal.position[other];
        for (int i = 0; i < 3; ++i) {
          shift[i] = static_cast<int>(std::lround(away[i]));
        }
        const Vec3 left{away[0] - shift[0], away[1] - shift[1], away[2] - shift[2]};
        const Vec3 distance = crystal.cartesian_nm(left);
        if (std::sqrt(dot(distance, distance)) < tolerance_nm) partner = other;
      }
      if (partner < 0) break;
      inversion.partner.push_back(partner);
      inversion.shift.push_back(shift);
    }
    if (static_cast<int>(inversion.partner.size()) == n) return inversion;
  }
  return {};
}

}  // namespace quasi::thermal
