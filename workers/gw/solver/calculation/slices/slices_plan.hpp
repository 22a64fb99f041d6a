#pragma once

#include <cstdint>
#include <functional>

#include "workers/gw/solver/calculation/gw_calculation.hpp"

// A matrix between plane waves G and G', such as χ or ε⁻¹, may exceed the memory of one
// device. It is then cut into slices, which are ranges of rows that a device works on one after
// another. This folder chooses their number and plans their memory (docs/theory/gw.md 4.3). Begin
// here.
namespace quasi::gw {

/// Holds the bytes that one slice of each kind of matrix takes on a device.
struct SliceBytes {
  double chi = 0.0;        ///< bytes of a slice of χ(0) while it is summed
  double inversion = 0.0;  ///< bytes of a panel of ε̃, its product, and some rows of a slice
  double poles = 0.0;      ///< bytes of the strengths A and the poles ω̃ of a slice
  /// Returns the largest of the three, which a device must have.
  double least() const;
};
/// Returns the bytes of the largest slices. See invert_in_slices() for the panel of ε̃.
/// @param n_g         number of plane waves of ε
/// @param n_screened  number of plane waves of W
/// @param count       number of slices
/// @param real        true if the states, and therefore χ, are real
SliceBytes bytes_of_slices(double n_g, double n_screened, int count, bool real);

/// Plans a job. If a device cannot hold its matrices whole and the deck allows slices, the job is
/// planned again with the smallest number of slices that fits. This number depends on the memory
/// of one device and not on the number of devices.
/// @param plan_job  sets run.plan from a deck
/// @param run       receives the plan, with a note if it has slices
void plan_slices(const Deck& deck, const Workplace& place,
                 const std::function<void(const Deck&)>& plan_job, Calculation& run);

}  // namespace quasi::gw
