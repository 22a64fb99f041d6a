#pragma once

#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Solves drift and diffusion on the deck's mesh with the low-field mobility of the deck's
/// scattering (docs/theory/mosfet.md 15.4). It is a preview in seconds and the limit of long
/// devices. One quasi-Fermi level E_F(x) holds for all subbands. The flux between two columns has
/// the form of Scharfetter and Gummel [scharfetter1969], which is exact for constant flux and
/// linear levels:
///
///   I = Σ 2μ (kT/Δx) B(δ) a_i (u_i − u_{i+1}),   u = e^{E_F/kT},  a = ϱ/u,  δ = ln(a_i/a_{i+1}).
///
/// The flux equation alternates with Schrödinger–Poisson at given E_F (Gummel) until E_F moves by
/// less than 1e-8 eV. Velocity saturation is not included.
/// @throws NotConverged with the history of |δE_F|.
std::vector<PointResult> drift_diffusion_points(const Deck& deck, Progress& progress);

}  // namespace quasi::mosfet
