#include "workers/thermal/model/crystal.hpp"

#include "workers/units/constants.hpp"

namespace quasi::thermal {
Mat3 Crystal::reciprocal_per_nm() const {
  const double factor = 2.0 * units::kPi / determinant(lattice_nm);
  return {factor * cross(lattice_nm[1], lattice_nm[2]),
          factor * cross(lattice_nm[2], lattice_nm[0]),
          factor * cross(lattice_nm[0], lattice_nm[1])};
}

}  // namespace quasi::thermal
