#pragma once

#include <array>
#include <vector>

#include "workers/mosfet/kernels/mosfet_kernels.hpp"

namespace quasi::mosfet {

/// Begin here: one Runge–Kutta stage of the transport of one point, with arrays of the shapes of
/// TransportProblem (docs/theory/mosfet.md 5.3, 8):
///
///   out = a_new Φⁿ + b_new (Φˢ + Δt(−∂_xF − ∂_wF − ∂_φF + gain − λΦˢ)).
struct StageInput {
  const double* pdf_n = nullptr;          ///< Φⁿ; may be the output
  const double* pdf_s = nullptr;          ///< Φˢ, not the output
  const double* slope_ev_nm = nullptr;    ///< ε' [n_families][subbands][nx]
  const double* gain = nullptr;           ///< [n_states][nx][nw]
  const double* loss = nullptr;           ///< λ [n_states][nx][nw]
  const double* inflow_source = nullptr;  ///< [n_states][nw]
  const double* inflow_drain = nullptr;
  std::array<double, 2> inflow_scale{1.0, 1.0};  ///< source, drain
  double share_n = 0, share_s = 1, dt_fs = 0;
};

/// Returns the factors of the inflow of source and drain. With them, and with the electrons of
/// `pdf` that do not enter, the contact columns hold the charge of their doping.
std::array<double, 2> neutral_inflow(const TransportProblem& problem, const PointBoundary& boundary,
                                     const double* pdf);

struct StageOutput {
  double* pdf = nullptr;        ///< [n_states][nx][nw][angles]
  double* angle_sum = nullptr;  ///< Φ̃ of `pdf` [n_states][nx][nw]
  double* flux_sum = nullptr;   ///< Σ_φ F^x of Φˢ at half nodes [n_states][nx+1][nw]
};

/// Runs one stage on all threads. Every row is written by one thread, and sums over φ run from m =
/// 0 up.
void transport_stage(const TransportProblem& problem, const StageInput& in, const StageOutput& out);

/// Computes Φ̃ = Σ_φ weight Φ of a whole pdf.
void sum_angles(const TransportProblem& problem, const double* pdf, double* angle_sum);

/// Levels of one point and their couplings, as scattering needs them.
struct LevelCoupling {
  const double* energy_ev = nullptr;  ///< [n_families][subbands][nx]
  const double* overlap = nullptr;    ///< W [families·subbands][families·subbands][nx]
  const double* roughness = nullptr;  ///< F_top² + F_bottom², same shape; null for smooth
                                      ///< interfaces
};

/// Computes gain and loss of every (state, x, w) of one point (docs/theory/mosfet.md 5.4). @param
/// pdf_scale  Φ*, read with Pauli blocking
void scattering_rates(const TransportProblem& problem, const LevelCoupling& levels,
                      double pdf_scale, const double* angle_sum, double* gain, double* loss);

/// Computes W_{pp'} = ∫|ψ_p|²|ψ_p'|² dz for all pairs of (family, subband), [fp][fp][nx].
void overlaps(const TransportProblem& problem, const double* psi, double* overlap_per_nm);

/// Computes F_top² + F_bottom² of roughness_strength() for all pairs, (eV/nm)²; zero between
/// families.
void roughness_strengths(const TransportProblem& problem, const double* psi, double* strength);

/// Computes the moments of a pdf on the host.
/// @param sheet_nm2  ϱ, which becomes part of the result
/// @param angle_sum  Φ̃/Φ*, which becomes part of the result
/// @param pdf        Φ/Φ* [n_states][nx][nw][angles]
/// @param pdf_scale  Φ*
Moments moments_of(const TransportProblem& problem, double pdf_scale, std::vector<double> sheet_nm2,
                   const double* pdf, std::vector<double> angle_sum);

/// Returns the extremes of f̄ = Φ̃/(2πK s) over all cells.
Filling filling_of(const TransportProblem& problem, double pdf_scale, const double* angle_sum);

/// Computes ε' at the nodes: fourth order inside, second order next to the contacts, one-sided at
/// them.
void energy_slopes(const TransportProblem& problem, const double* energy_ev, const double* lead_ev,
                   double* slope_ev_nm);

/// Returns the maximum over points of |a¹|/Δx + |a²|/Δw + |a³|/Δφ, 1/fs. It grows with |ε'|, so the
/// largest |ε'| of each valley pair decides.
double largest_rate(const TransportProblem& problem, const double* slope_ev_nm);

}  // namespace quasi::mosfet
