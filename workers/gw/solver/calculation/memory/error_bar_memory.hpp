#pragma once

#include <cstdint>

#include "workers/gw/input/deck.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {

/// Returns the number of elements of a matrix between the plane waves of W.
double elements_of_w(const Calculation& run);

/// Returns the bytes of a device that Σ with a closed sum cannot do without. These are the poles,
/// the matrix of the closed sum and its products. Where Σ shares the sum of its error bars, they
/// are the bytes of one change of the poles.
std::int64_t least_of_closed_sum(const Deck& deck, const Calculation& run);

/// Sets the memory of the error bars, whose last phase has the groups of χ beside the rest.
/// @param given  bytes of the given states, which remain unless solves_once()
void plan_memory_of_blocks(const Deck& deck, double given, int devices, Calculation& run);

/// Describes the poles and their changes on one device while it sums the response of Σ
/// (sigma_response.hpp).
struct ResponseShape {
  double n_g = 0.0;        ///< plane waves of W
  double n_changes = 0.0;  ///< at one q
  double kept = 0.0;       ///< changes of all q that the device has made and keeps
  double kept_of_q = 0.0;  ///< changes among them that belong to one q
  double ranges = 1.0;     ///< into which the rows of other changes are cut
  bool real = false;       ///< strengths have no imaginary parts
  bool folded = true;      ///< poles and changes are triangles
};
/// Returns the bytes of the poles, of the kept changes, and of one range of the others.
double bytes_of_response(const ResponseShape& shape);

}  // namespace quasi::gw
