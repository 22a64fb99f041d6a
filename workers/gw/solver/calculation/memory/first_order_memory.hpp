#pragma once

#include "workers/gw/input/deck.hpp"
#include "workers/gw/solver/calculation/plan.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/mean_field/pseudobands.hpp"

namespace quasi::gw {

/// Holds the bytes that the first order of Σ needs beside the poles and W.
struct FirstOrderBytes {
  double products = 0.0;  ///< of both spheres with all bands, and copies of the states
  double sums = 0.0;      ///< couplings of one part, terms of its kets, and their sums
  double kernel = 0.0;    ///< matrices and rows in work
  double results = 0.0;   ///< of all finished parts, on the host
};

/// Returns these bytes for one device and the host.
/// @param n_screened  plane waves of W in Σ
/// @param random  plan of the pseudobands of Σ; null: all bands are eigenstates
FirstOrderBytes bytes_of_first_order(const Deck& deck, const MeanField& field, const Plan& plan,
                                     double n_screened, const PseudobandPlan* random);

}  // namespace quasi::gw
