#pragma once

#include <optional>
#include <vector>

#include "workers/gw/solver/perturbation/displacement_elements.hpp"
#include "workers/gw/solver/perturbation/mode_elements.hpp"

// The folder wave_vector holds the first orders in displacements with a wave vector q other than 0
// (docs/theory/gw.md 14.13). Begin here.
namespace quasi::gw {

/// Holds the first orders ⟨l, k+q| · |m, k⟩ in displacements with one wave vector.
struct WaveVectorElements {
  Vec3 q{};                             ///< reduced, in [0, 1)
  std::vector<Vec3> k_plus_q;           ///< k + q of each k, folded into [0, 1)
  DisplacementElements elements;        ///< without acoustic sums, which q = 0 alone has
  std::optional<ModeElements> phonons;  ///< absent: no perturbation.modes_at_q
};

/// Returns the request with every wave vector moved to the nearest difference of two k-points, in
/// [0, 1). The reader of a deck with files cannot do so, because it does not know the grid of WFN.
/// @throws InvalidInput if a wave vector is no such difference, or if two of them are equal up to a
/// reciprocal vector
PerturbationRequest request_on_grid(PerturbationRequest request, const MeanField& field);

/// Calculates the first orders for every wave vector of the request, at every k of the options, on
/// the devices of the team. The energies are those of the bras at k + q and of the kets at k. The
/// checkpoint keeps finished parts. All ranks call it together.
/// @throws InvalidInput as sigma_derivatives() and zero_point_modes_at() do
std::vector<WaveVectorElements> wave_vector_elements(const DisplacedCrystal& displaced,
                                                     const MeanField& field,
                                                     const std::vector<DielectricMatrix>& epsilon,
                                                     SigmaOptions options,
                                                     const StepContext& context);

}  // namespace quasi::gw
