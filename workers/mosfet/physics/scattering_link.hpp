#pragma once

#include <cmath>

#include "workers/backend/host_device.hpp"

/// The balanced scattering operator (and the paper's own, corrected), written for one state at a
/// time as a gather, so that no two threads add to one number.
namespace quasi::mosfet {

/// One process between a low state (ν,p) and a high state (ν',p') of one column. An electron at w_ℓ
/// of the low state goes up to Γ = w_ℓ + ε_low − ε_high + ħω, which lies θ of a cell above node
/// ℓ + shift of the high state.
struct ScatteringLink {
  double up = 0;        ///< C N: absorption, low → high
  double down = 0;      ///< C (N+1): emission, high → low
  double theta = 0;     ///< in [0, 1)
  double boltzmann_d = 0;  ///< e^{−θΔw/kT}
  double boltzmann_u = 0;  ///< e^{(1−θ)Δw/kT}
  int shift = 0;
};

/// What the operator needs of the w grid.
struct EnergyGrid {
  double dw_ev = 0;
  double alpha_per_ev = 0;
  double kt_ev = 0;
  int nw = 0;

  QUASI_HD double w(int l) const { return (l + 0.5) * dw_ev; }
  /// 1+2αw at a position counted in cells from node 0: s(w) is proportional to it.
  QUASI_HD double kane(double node) const { return 1.0 + 2.0 * alpha_per_ev * dw_ev * (node + 0.5); }
};

/// @param gap_ev    ε_low − ε_high + ħω
/// @param coupling  C = c_μ Z W, with the ½ of an elastic process
/// @param occupation  N_μ; the elastic process passes up = down = 1 as `elastic`
QUASI_HD inline ScatteringLink make_link(const EnergyGrid& grid, double gap_ev, double coupling,
                                         double occupation, bool elastic) {
  ScatteringLink link;
  link.up = coupling * (elastic ? 1.0 : occupation);
  link.down = coupling * (elastic ? 1.0 : occupation + 1.0);
  const double cells = gap_ev / grid.dw_ev;
  const double whole = floor(cells);
  link.shift = static_cast<int>(whole);
  link.theta = cells - whole;
  link.boltzmann_d = exp(-link.theta * grid.dw_ev / grid.kt_ev);
  link.boltzmann_u = exp((1.0 - link.theta) * grid.dw_ev / grid.kt_ev);
  return link;
}

/// Weights of one link end: b_d, b_u of the nodes d and d+1, zero where the link is dropped. Below
/// half a cell all weight goes to node 0; above the last node the link does not exist.
struct LinkWeights {
  double d = 0, u = 0;
};

QUASI_HD inline LinkWeights link_weights(const ScatteringLink& link, int d, int nw) {
  if (d >= 0) return d + 1 <= nw - 1 ? LinkWeights{1.0 - link.theta, link.theta} : LinkWeights{};
  if (d == -1 && link.theta >= 0.5) return {0.0, 1.0};
  return {};
}

/// Sums of one state at one w. The loss is λ = 2π(out + out_by_kane/(1+2αw)).
struct GainLoss {
  double gain = 0;         ///< per angle, in units of Φ/fs
  double out = 0;
  double out_by_kane = 0;

  QUASI_HD double loss(double kane) const {
    return 6.283185307179586476925 * (out + out_by_kane / kane);
  }
};

/// Adds the link in which (state, ℓ) is the low end, d = ℓ + shift.
///
///   gain += C(N+1) s(w_ℓ) Σ_h b_h g_h Φ̃_high(h),   λ += 2π C N s'(Γ)
///
/// Where both nodes exist the weights are the constants (1−θ, θ) and the loop over ℓ has no branch.
///
/// @param high  F = Φ̃/(1+2αw) of the high state [nw]
/// @param s_own, s_other  √(m_x m_y) of the own and of the high pair, in mass units
QUASI_HD inline void add_as_low(const EnergyGrid& grid, const ScatteringLink& link, LinkWeights weight,
                                int l, const double* high, double s_own, double s_other, GainLoss* sum) {
  const int d = l + link.shift;
  const double kane_gamma = grid.kane(d + link.theta);
  const double fed = weight.u * link.boltzmann_u * high[d + 1] +
                     weight.d * link.boltzmann_d * high[d < 0 ? 0 : d];
  sum->gain += link.down * s_own * grid.kane(l) * kane_gamma * fed;
  sum->out += link.up * s_other * kane_gamma;
}

/// Adds the link in which (state, h) is the high end and l the low node: h = d (side 0) or d+1
/// (side 1) of ℓ. Exactly two low nodes can reach a high one.
///
///   gain += C N b_h s(Γ) Φ̃_low(ℓ),   λ += 2π C(N+1) s_low(w_ℓ) b_h g_h
///
/// @param b    weight of this node
/// @param low  F of the low state [nw]
QUASI_HD inline void add_as_high(const EnergyGrid& grid, const ScatteringLink& link, int side, double b,
                                 int l, const double* low, double s_own, double s_other, GainLoss* sum) {
  const double reach = b * grid.kane(l) * grid.kane(l + link.shift + link.theta);
  sum->gain += link.up * s_own * reach * low[l];
  sum->out_by_kane += link.down * s_other * (side == 0 ? link.boltzmann_d : link.boltzmann_u) * reach;
}

/// Both roles of one state at one w: all that the links `as_low` (to the partner) and `as_high` (from
/// the partner) give it. One GPU thread's work; the CPU runs the branch-free interior instead.
QUASI_HD inline void add_links(const EnergyGrid& grid, const ScatteringLink& as_low,
                               const ScatteringLink& as_high, int l, const double* partner,
                               double s_own, double s_other, GainLoss* sum) {
  const LinkWeights weight = link_weights(as_low, l + as_low.shift, grid.nw);
  if (weight.d != 0.0 || weight.u != 0.0) add_as_low(grid, as_low, weight, l, partner, s_own, s_other, sum);
  for (int side = 0; side < 2; ++side) {
    const int low = l - as_high.shift - side;
    if (low < 0 || low >= grid.nw) continue;
    const LinkWeights reach = link_weights(as_high, l - side, grid.nw);
    const double b = side == 0 ? reach.d : reach.u;
    if (b != 0.0) add_as_high(grid, as_high, side, b, low, partner, s_own, s_other, sum);
  }
}

/// The paper's interpolation (18)–(23), corrected: exact s(Γ) in the loss, Φ̃ linear between nodes in
/// the gain, nothing for Γ < 0; constant below node 0, zero above the last node.
///
/// @param node   (Γ − w_0)/Δw
/// @param other  F = Φ̃/(1+2αw) of the other state
/// @param into  C times the occupation of the way in, @param out  of the way out
QUASI_HD inline void add_interpolated(const EnergyGrid& grid, double node, int l, double into,
                                      double out, const double* other, double s_own,
                                      double s_other, GainLoss* sum) {
  if (node < -0.5) return;
  sum->out += out * s_other * grid.kane(node);
  if (node >= grid.nw) return;
  const double whole = floor(node);
  const int d = static_cast<int>(whole);
  const double theta = node - whole;
  const double below = other[d < 0 ? 0 : d] * grid.kane(d < 0 ? 0 : d);
  const double above = d + 1 < grid.nw ? other[d + 1] * grid.kane(d + 1) : 0.0;
  sum->gain += into * s_own * grid.kane(l) * ((1.0 - theta) * below + theta * above);
}

}  // namespace quasi::mosfet
