#pragma once

#include <cstdint>
#include <functional>

#include "workers/gw/solver/calculation/gw_calculation.hpp"

// A matrix between plane waves G and G', such as χ or ε⁻¹, may exceed the memory of one
// device. It is then cut into slices, ranges of rows that are worked on one after the other. This
// folder chooses their number and plans their memory (docs/theory/gw.md 4.3). Begin here.
namespace quasi::gw {

/// Holds the bytes that one slice of each kind of matrix takes on a device.
struct SliceBytes {
  double chi = 0.0;        ///< a slice of χ(0) while it is summed
  double inversion = 0.0;  ///< a panel of ε̃, its product, and some rows of a slice
  double poles = 0.0;      ///< A and ω̃ of a slice of the poles
  double least() const;
};
/// @param n_g  plane waves of ε @param n_screened  plane waves of W @param count  number of slices
/// @param real  the states are real
SliceBytes bytes_of_slices(double n_g, double n_screened, int count, bool real);

/// Plans a job and, if a device cannot hold its matrices whole and the deck allows slices, plans it
/// again with the smallest number of slices that fits. The number depends on the memory of one
/// device and not on the number of devices.
/// @param plan_job  plans run.plan for a deck
void plan_slices(const Deck& deck, const Workplace& place,
                 const std::function<void(const Deck&)>& plan_job, Calculation& run);

}  // namespace quasi::gw
