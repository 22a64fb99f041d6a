#pragma once

#include <array>
#include <complex>

#include "workers/thermal/model/crystal.hpp"

namespace quasi::thermal {

/// Returns the numbers of the three modes at Γ that overlap most with rigid shifts of the crystal.
/// @param vectors  [branch][3κ+α] eigenvectors at Γ
std::array<int, 3> rigid_shifts(const Crystal& crystal, const std::complex<double>* vectors);

}  // namespace quasi::thermal
