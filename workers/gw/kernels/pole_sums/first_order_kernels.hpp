#pragma once

#include <cstdint>
#include <vector>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/hamiltonian/local_coupling.hpp"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"

// First order of Σ in perturbations, by divided differences (docs/theory/gw.md 14.2).
namespace quasi::gw {

/// States of one k-point that the first order of a perturbation couples to others.
struct CoupledBands {
  std::vector<double> energy_ry;   ///< [n]
  std::vector<double> occupation;  ///< 1 or 0, [n]

  std::int64_t size() const { return static_cast<std::int64_t>(energy_ry.size()); }
};

/// The three forms in which a pair (n', n) can enter the sum.
enum class PairKind {
  kQuotient,  ///< by the difference of two factors over the difference of the energies
  kClosed,    ///< in closed form, because the energies are close
  kMultiplet  ///< in closed form, as a pair of one multiplet
};
PairKind pair_kind(const CoupledBands& bra, std::int64_t bra_index, const CoupledBands& ket,
                   std::int64_t ket_index);

/// Pair products on both sides of the perturbations, on one device.
struct FirstOrderProducts {
  const PairBlock& bra;  ///< M_ln'(G) of the outer states l, [n_l][n_bra][n_g]
  const PairBlock& ket;  ///< M_mn(G) of the outer states m, [n_m][n_ket][n_g]; may be `bra`
};

/// The pairs (n', n) of some kets n with all n'.
struct FirstOrderPairs {
  const CoupledBands& bra;        ///< n'
  const CoupledBands& ket;        ///< n
  BandRange part;                 ///< the kets
  const CouplingBlock& coupling;  ///< V_n'n of each perturbation, [n_p][n_bra][part.size()]
  double weight = 1.0;            ///< w of the q-point
};

/// Energies of Σ_c and choices of its sum.
struct FirstOrderTerms {
  View<const double, 1> energies_ry;  ///< E, [n_energies]
  bool adjoint = false;               ///< takes F†_GG' = F*_G'G for F
  bool close_pairs = true;            ///< adds the pairs that are no quotients
  /// The caller adds the adjoint of every sum, because (n', n) and (n, n') are adjoints of each
  /// other: of close pairs those with n' < n are added, and half of n' = n.
  bool mirrored = false;
};

/// Sums to which a kernel adds, Ry/Bohr; [n_p][n_energies][n_l][n_m] each.
struct FirstOrderSums {
  View<Cplx, 4> quotients;   ///< by F_n/(E_n − E_n')
  View<Cplx, 4> closed;      ///< pairs of close energies
  View<Cplx, 4> multiplets;  ///< pairs of one multiplet
};

/// The pairs of one call, apart from energies E.
struct FirstOrderPlan {
  struct ClosePair {
    std::int64_t bra = 0, ket = 0;  ///< n', and n counted from the start of the part
    PairKind kind = PairKind::kClosed;
    double weight = 1.0;  ///< w, or half of it
  };
  std::vector<double> factor;    ///< w/(E_n − E_n') of quotients, 0 else; [n_bra][part.size()]
  std::vector<ClosePair> close;  ///< in the order of n, then n'
};
FirstOrderPlan plan_first_order(const FirstOrderPairs& pairs, bool mirrored);
/// Returns −w (f_n − f_n')/(E_n − E_n'), the factors of the exchange; [n_bra][part.size()].
std::vector<double> exchange_factors(const FirstOrderPairs& pairs);

}  // namespace quasi::gw
