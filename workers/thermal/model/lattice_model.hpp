#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/model/symmetry.hpp"

namespace quasi::thermal {

/// A crystal with its force constants and the symmetry of crystal and mesh.
struct LatticeModel {
  Crystal crystal;
  SecondOrder second_order;
  SparseForceConstants third_order;                  ///< no blocks where only modes are wanted
  std::optional<SparseForceConstants> fourth_order;  ///< with four phonons
  Symmetry symmetry;
  std::vector<std::string> warnings;  ///< found while the model was read
};

}  // namespace quasi::thermal
