#pragma once

#include <cmath>

#include "workers/backend/host_device.hpp"
#include "workers/mosfet/physics/working_units.hpp"

/// The balanced scattering operator (and the paper's own, corrected), written for one state at a
/// time as a gather, so that no two threads add to one number.
/// See docs/theory/mosfet.md 5.4 for the equations.
namespace quasi::mosfet {

/// One process between a low state (ν,p) and a high state (ν',p') of one column. An electron at w_ℓ
/// of the low state goes up to Γ = w_ℓ + ε_low − ε_high + ħω, which lies θ of a cell above node
/// ℓ + shift of the high state. Numbers that all w share are formed once.
struct ScatteringLink {
  double up = 0;                        ///< C N: absorption, low → high
  double down = 0;                      ///< C (N+1): emission, high → low
  double up_other = 0, down_other = 0;  ///< the same times √(m_x m_y) of the partner
  double theta = 0;                     ///< in [0, 1)
  double feed_d = 0;  ///< (1−θ) e^{−θΔw/kT}: weight b_d and the ratio of Boltzmann factors
  double feed_u = 0;  ///< θ e^{(1−θ)Δw/kT}
  double edge_u = 0;  ///< e^{(1−θ)Δw/kT}: all weight on node 0
  double offset = 0;  ///< shift + θ
  int shift = 0;
  int other = 0;  ///< state of the partner, for those who keep links in a list
};

/// What the operator needs of the w grid.
struct EnergyGrid {
  double dw_ev = 0;
  double alpha_per_ev = 0;
  double kt_ev = 0;
  int nw = 0;

  QUASI_HD double w(int l) const { return (l + 0.5) * dw_ev; }
  /// Returns 1+2αw at a position counted in cells from node 0; s(w) is proportional to it.
  QUASI_HD double kane(double node) const {
    return 1.0 + 2.0 * alpha_per_ev * dw_ev * (node + 0.5);
  }
};

/// @param gap_ev    ε_low − ε_high + ħω
/// @param coupling  C = c_μ Z W, with the ½ of an elastic process
/// @param occupation  N_μ; the elastic process passes up = down = 1 as `elastic`
/// @param s_other   √(m_x m_y) of the partner of the state whose sums the link feeds, in mass units
QUASI_HD inline ScatteringLink make_link(const EnergyGrid& grid, double gap_ev, double coupling,
                                         double occupation, bool elastic, double s_other) {
  ScatteringLink link;
  link.up = coupling * (elastic ? 1.0 : occupation);
  link.down = coupling * (elastic ? 1.0 : occupation + 1.0);
  link.up_other = link.up * s_other;
  link.down_other = link.down * s_other;
  const double cells = gap_ev / grid.dw_ev;
  const double whole = floor(cells);
  link.shift = static_cast<int>(whole);
  link.theta = cells - whole;
  link.offset = whole + link.theta;
  link.feed_d = (1.0 - link.theta) * exp(-link.theta * grid.dw_ev / grid.kt_ev);
  link.edge_u = exp((1.0 - link.theta) * grid.dw_ev / grid.kt_ev);
  link.feed_u = link.theta * link.edge_u;
  return link;
}

/// A node of the w grid as an index and as a number, so that one conversion serves all links.
struct GridNode {
  int index;
  double number;
};
QUASI_HD inline GridNode node_at(int index) { return {index, static_cast<double>(index)}; }

/// Weights of one link end: b_d, b_u of the nodes d and d+1 and the same times their Boltzmann
/// ratio.
struct LinkWeights {
  double d = 0, u = 0, feed_d = 0, feed_u = 0;
};
QUASI_HD inline LinkWeights inner_weights(const ScatteringLink& link) {
  return {1.0 - link.theta, link.theta, link.feed_d, link.feed_u};
}
/// Returns the weights below half a cell, where all weight goes to node 0.
QUASI_HD inline LinkWeights edge_weights(const ScatteringLink& link) {
  return {0.0, 1.0, 0.0, link.edge_u};
}
/// Returns true if Γ lies between two nodes. Above the last node the link does not exist.
QUASI_HD inline bool is_inner(int d, int nw) { return d >= 0 && d + 1 < nw; }
QUASI_HD inline bool is_edge(const ScatteringLink& link, int d) {
  return d == -1 && link.theta >= 0.5;
}

/// Sums of one state at one w. gain = √(m_x m_y)(gain_low (1+2αw) + gain_high), per angle, in units
/// of Φ/fs; λ = 2π(out + out_by_kane/(1+2αw)). With Pauli blocking the rate into angle m is
/// gain·(1−f_m), which adds gain/(K s) to λ.
struct GainLoss {
  double gain_low = 0, gain_high = 0, out = 0, out_by_kane = 0;

  QUASI_HD double gain(double kane, double s_own) const {
    return s_own * (gain_low * kane + gain_high);
  }
  QUASI_HD double loss(double kane) const { return 2.0 * units::kPi * (out + out_by_kane / kane); }
  /// @param room  F of the cell filled to its capacity
  QUASI_HD double blocked_loss(double kane, double s_own, double room) const {
    return 2.0 * units::kPi * (out + (out_by_kane + gain(kane, s_own) / room) / kane);
  }
};

/// Returns F of a cell filled to f = 1, in units of the scaled pdf: 2πK√(m_x m_y)/Φ*. @param
/// root_mass  √(m_x m_y), eV fs² nm⁻² @param pdf_scale  Φ*, nm⁻² eV⁻¹ rad⁻¹
QUASI_HD inline double full_filling(double root_mass, double pdf_scale) {
  return 2.0 * units::kPi * kStates_per_ev2_fs2 * root_mass / pdf_scale;
}

/// Room that a cell always keeps, in states: a cell that the discretisation overfills has the
/// capacity f + kLeastRoom instead of 1. Conserves particles whatever f is, and leaves Fermi–Dirac
/// alone.
constexpr double kLeastRoom = 1e-9;

/// Returns r = f/(capacity − f) of a cell, with its sign; f = F/full. @param full  full_filling()
QUASI_HD inline double odds_of(double filling, double full) {
  const double f = filling / full, room = 1.0 - f;
  return f / (room > kLeastRoom ? room : kLeastRoom);
}

/// Returns F of a cell filled to its capacity.
QUASI_HD inline double capacity_of(double filling, double full) {
  const double raised = filling + kLeastRoom * full;
  return raised > full ? raised : full;
}

/// The two states that a link joins, as seen from the one whose sums are formed.
struct LinkEnds {
  const double* partner = nullptr;   ///< F = Φ̃/(1+2αw) of the partner [nw]
  const double* own_odds = nullptr;  ///< r of both [nw]; with Pauli blocking only
  const double* partner_odds = nullptr;
  const double* spectrum =
      nullptr;  ///< [nw][nw] by low and high node: a coupling that depends on w
};

/// Returns the factor of a link's coupling at low node l and Γ between the nodes d and d+1.
QUASI_HD inline double link_spectrum(const ScatteringLink& link, const LinkEnds& ends, int l, int d,
                                     int nw) {
  const double* row = ends.spectrum + static_cast<long long>(l) * nw;
  return d < 0 ? row[0] : (1.0 - link.theta) * row[d] + link.theta * row[d + 1];
}

/// 1 − f at Γ from the odds of its two neighbours, r_Γ = Σ_h b_h r_h e^{−(Γ−w_h)/kT}: Fermi–Dirac
/// stays Fermi–Dirac under it. Negative cells count as empty here, and only here.
QUASI_HD inline double vacancy_at(const LinkWeights& weight, const double* odds, int d) {
  const double u = odds[d + 1], low = odds[d < 0 ? 0 : d];
  return 1.0 /
         (1.0 + weight.feed_u * (u > 0.0 ? u : 0.0) + weight.feed_d * (low > 0.0 ? low : 0.0));
}

/// Adds the link in which (state, ℓ) is the low end, with d = ℓ + shift.
///
///   gain += C(N+1) s(w_ℓ) Σ_h b_h g_h Φ̃_high(h),   λ += 2π C N s'(Γ)
///
/// Where both nodes exist the weights are constants and the loop over ℓ has no branch. With
/// blocking, Φ̃_high(h) is divided by 1−f_h and both rates carry the vacancy 1−f_Γ.
template <bool kBlocked, bool kSpectrum>
QUASI_HD inline void add_as_low(const EnergyGrid& grid, const ScatteringLink& link,
                                const LinkWeights& weight, GridNode node, const LinkEnds& ends,
                                GainLoss* sum) {
  const int d = node.index + link.shift, below = d < 0 ? 0 : d;
  double reach = grid.kane(node.number + link.offset);
  double upper = weight.feed_u * ends.partner[d + 1];
  double lower = weight.feed_d * ends.partner[below];
  if constexpr (kSpectrum) {
    if (ends.spectrum != nullptr) reach *= link_spectrum(link, ends, node.index, d, grid.nw);
  }
  if constexpr (kBlocked) {
    upper *= 1.0 + ends.partner_odds[d + 1];
    lower *= 1.0 + ends.partner_odds[below];
    reach *= vacancy_at(weight, ends.partner_odds, d);
  }
  sum->gain_low += link.down * reach * (upper + lower);
  sum->out += link.up_other * reach;
}

/// The high node h of a link as one of the two neighbours of Γ.
struct HighNeighbour {
  int side;       ///< 0: h = d, 1: h = d + 1
  double weight;  ///< b_h
  double feed;    ///< b_h times its Boltzmann ratio
};

/// Adds the link in which (state, h) is the high end and `low` the node ℓ of the low end. Exactly
/// two low nodes can reach a high one.
///
///   gain += C N b_h s(Γ) Φ̃_low(ℓ),   λ += 2π C(N+1) s_low(w_ℓ) b_h g_h
///
/// With blocking, both are divided by 1−f_h and carry 1−f_Γ, the loss also 1−f_ℓ.
template <bool kBlocked, bool kSpectrum>
QUASI_HD inline void add_as_high(const EnergyGrid& grid, const ScatteringLink& link,
                                 const HighNeighbour& high, GridNode low, const LinkEnds& ends,
                                 GainLoss* sum) {
  const int d = low.index + link.shift;
  double reach = grid.kane(low.number) * grid.kane(low.number + link.offset),
         back = link.down_other * high.feed;
  if constexpr (kSpectrum) {
    if (ends.spectrum != nullptr) reach *= link_spectrum(link, ends, low.index, d, grid.nw);
  }
  if constexpr (kBlocked) {
    const LinkWeights weight = d < 0 ? edge_weights(link) : inner_weights(link);
    reach *= vacancy_at(weight, ends.own_odds, d) * (1.0 + ends.own_odds[d + high.side]);
    back /= 1.0 + ends.partner_odds[low.index];
  }
  sum->gain_high += link.up * high.weight * reach * ends.partner[low.index];
  sum->out_by_kane += back * reach;
}

/// Adds both roles of one state at one w: the link `as_low` to the partner and the link `as_high`
/// from the partner. A GPU thread calls this function. The CPU runs the branch-free interior
/// instead.
template <bool kBlocked, bool kSpectrum>
QUASI_HD inline void add_links(const EnergyGrid& grid, const ScatteringLink& as_low,
                               const ScatteringLink& as_high, GridNode node, const LinkEnds& ends,
                               GainLoss* sum) {
  const int l = node.index, d = l + as_low.shift;
  if (is_inner(d, grid.nw))
    add_as_low<kBlocked, kSpectrum>(grid, as_low, inner_weights(as_low), node, ends, sum);
  else if (is_edge(as_low, d))
    add_as_low<kBlocked, kSpectrum>(grid, as_low, edge_weights(as_low), node, ends, sum);
  // From the low node whose d is l, and from the one below it, whose d+1 is l.
  const int low = l - as_high.shift;
  const double low_number = node.number - (as_high.offset - as_high.theta);
  if (low >= 0 && low < grid.nw && is_inner(l, grid.nw))
    add_as_high<kBlocked, kSpectrum>(grid, as_high, {0, 1.0 - as_high.theta, as_high.feed_d},
                                     {low, low_number}, ends, sum);
  if (low >= 1 && low <= grid.nw) {
    if (l >= 1)
      add_as_high<kBlocked, kSpectrum>(grid, as_high, {1, as_high.theta, as_high.feed_u},
                                       {low - 1, low_number - 1.0}, ends, sum);
    else if (is_edge(as_high, l - 1))
      add_as_high<kBlocked, kSpectrum>(grid, as_high, {1, 1.0, as_high.edge_u},
                                       {low - 1, low_number - 1.0}, ends, sum);
  }
}

/// One link as the low end of a run of neighbouring nodes sees it: factors that all nodes share,
/// multiplied out.
struct alignas(16) LowRun {
  double feed_d = 0, feed_u = 0,
         feed_edge = 0;      ///< C(N+1) times the weights; edge: all on node 0, Γ below it
  double out = 0;            ///< C N √(m_x m_y) of the partner
  double reach = 0;          ///< 1+2αΓ for node 0
  int shift = 0, first = 0;  ///< first d that the link reaches: −1 or 0
};
QUASI_HD inline LowRun low_run(const EnergyGrid& grid, const ScatteringLink& link) {
  return {link.down * link.feed_d,   link.down * link.feed_u,
          link.down * link.edge_u,   link.up_other,
          grid.kane(link.offset),    link.shift,
          link.theta >= 0.5 ? -1 : 0};
}

/// One link as the high end of a run of neighbouring nodes sees it, likewise multiplied out.
struct alignas(16) HighRun {
  double up_d = 0, up_u = 0, up_edge = 0;        ///< C N b_h
  double back_d = 0, back_u = 0, back_edge = 0;  ///< C(N+1) √(m_x m_y) b_h g_h
  double own = 0, reach = 0;  ///< 1+2αw, 1+2αΓ of the low node that reaches from −1+θ
  int shift = 0;
};
QUASI_HD inline HighRun high_run(const EnergyGrid& grid, const ScatteringLink& link) {
  const double edge = link.theta >= 0.5 ? 1.0 : 0.0;
  return {link.up * (1.0 - link.theta),
          link.up * link.theta,
          edge * link.up,
          link.down_other * link.feed_d,
          link.down_other * link.feed_u,
          edge * link.down_other * link.edge_u,
          grid.kane(link.theta - link.offset - 1.0),
          grid.kane(link.theta - 1.0),
          link.shift};
}

/// Both links of a state and one partner, as a run of nodes sees them.
struct RunOfLinks {
  const LowRun& low;
  const HighRun& high;
};

/// Adds the sums of add_links() to each of the kRun nodes l, l+1, …, without blocking and spectrum,
/// and almost without branches: numbers that neighbours share are formed once, and where a link
/// does not exist its reach is zero. l and nw are multiples of kRun.
///
/// @param above  above(j) is F of the partner at node l + low.shift + j, j = 0 … kRun; zero outside
///               the grid
/// @param below  below(j) is F of the partner at node l − high.shift − 1 + j; zero outside the grid
template <int kRun, typename Above, typename Below>
QUASI_HD inline void add_run(const EnergyGrid& grid, const RunOfLinks& links, int l,
                             const Above& above, const Below& below, GainLoss* sums) {
  const LowRun& low = links.low;
  const HighRun& high = links.high;
  const double step = 2.0 * grid.alpha_per_ev * grid.dw_ev, along = step * l;
  {
    const int d = l + low.shift;
    const unsigned place = static_cast<unsigned>(d - low.first),
                   places = static_cast<unsigned>(grid.nw - 1 - low.first);
    const double reach_first = low.reach + along;
    double f_below = above(0);
    for (int j = 0; j < kRun; ++j) {
      const double f_above = above(j + 1);
      const double reach = place + j < places ? reach_first + j * step : 0.0;
      sums[j].gain_low += reach * (low.feed_u * f_above + low.feed_d * f_below);
      sums[j].out += low.out * reach;
      f_below = f_above;
    }
    if (d < 0 && d >= -kRun &&
        low.first < 0)  // One node's Γ lies in the lowest half cell: all weight on node 0.
      for (int j = 0; j < kRun; ++j)
        if (d + j == -1)
          sums[j].gain_low +=
              (reach_first + j * step) * ((low.feed_edge - low.feed_u) * above(j + 1));
  }
  {
    // Low node n feeds the high nodes n+shift (its d) and n+shift+1 (its u).
    const int n = l - high.shift - 1;
    const double own_first = high.own + along, high_first = high.reach + along;
    double reach = 0.0, moved = 0.0;
    for (int j = 0; j <= kRun; ++j) {
      const double reach_before = reach, moved_before = moved;
      reach = static_cast<unsigned>(n + j) < static_cast<unsigned>(grid.nw)
                  ? (own_first + j * step) * (high_first + j * step)
                  : 0.0;
      moved = reach * below(j);
      if (j == 0) continue;
      const bool bottom = j == 1 && l == 0, top = j == kRun && l + kRun == grid.nw;
      sums[j - 1].gain_high +=
          (bottom ? high.up_edge : high.up_u) * moved_before + (top ? 0.0 : high.up_d) * moved;
      sums[j - 1].out_by_kane += (bottom ? high.back_edge : high.back_u) * reach_before +
                                 (top ? 0.0 : high.back_d) * reach;
    }
  }
}

/// The other state of an interpolated process.
struct InterpolatedPartner {
  const double* filling;  ///< F = Φ̃/(1+2αw) [nw]
  double root_mass;       ///< √(m_x m_y), in mass units
};

/// Adds one process by the paper's interpolation (18)–(23), corrected: exact s(Γ) in the loss, Φ̃
/// linear between nodes in the gain, nothing for Γ < 0. Φ̃ is constant below node 0 and zero above
/// the last node.
///
/// @param node  (Γ − w_0)/Δw
/// @param into  C times the occupation of the way in
/// @param out   C times the occupation of the way out
QUASI_HD inline void add_interpolated(const EnergyGrid& grid, double node, double into, double out,
                                      const InterpolatedPartner& other, GainLoss* sum) {
  if (node < -0.5) return;
  sum->out += out * other.root_mass * grid.kane(node);
  if (node >= grid.nw) return;
  const double whole = floor(node);
  const int d = static_cast<int>(whole);
  const double theta = node - whole;
  const double below = other.filling[d < 0 ? 0 : d] * grid.kane(d < 0 ? 0 : d);
  const double above = d + 1 < grid.nw ? other.filling[d + 1] * grid.kane(d + 1) : 0.0;
  sum->gain_low += into * ((1.0 - theta) * below + theta * above);
}

}  // namespace quasi::mosfet
