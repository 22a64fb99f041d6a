#pragma once

#include <cstdint>
#include <memory>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"

namespace quasi::gw {

/// Elements V_n'n of several perturbations (docs/theory/gw.md 14.1) on one device,
/// [n_p][n_bra][n_ket]. The block owns its
/// memory and keeps it for the next filling.
class CouplingBlock {
 public:
  virtual ~CouplingBlock() = default;
  std::int64_t n_p() const { return n_p_; }      ///< number of perturbations
  std::int64_t n_bra() const { return n_bra_; }  ///< number of n'
  std::int64_t n_ket() const { return n_ket_; }  ///< number of n
  std::int64_t size() const { return n_p_ * n_bra_ * n_ket_; }

  /// Replaces the block by values from the host, Ry/Bohr, [n_p][n_bra][n_ket].
  virtual void load(View<const Cplx, 3> elements) = 0;
  /// Copies the block to the host.
  virtual void read(View<Cplx, 3> elements) const = 0;

 protected:
  std::int64_t n_p_ = 0, n_bra_ = 0, n_ket_ = 0;
};

/// The input of ψ†(∂Vψ): states of one k-point, and local potentials ∂V that repeat from
/// cell to cell of the lattice.
struct LocalPotentials {
  View<const Cplx, 2> states;  ///< c_n(G), [n_states][n_pw]
  View<const std::int32_t, 2>
      source;                  ///< position of G − ΔG_d in the list of G, or −1; [n_d][n_pw]
  View<const Cplx, 2> values;  ///< ∂V_p(ΔG_d), Ry/Bohr, [n_p][n_d]
};

/// States and potentials on one device, until the object is destroyed.
class LoadedLocalPotentials {
 public:
  virtual ~LoadedLocalPotentials() = default;
  /// Fills the block with the elements between all states n' and some states n,
  ///
  ///   V_n'n = Σ_G c*_n'(G) Σ_d ∂V_p(ΔG_d) c_n(G − ΔG_d).
  virtual void couple(BandRange kets, CouplingBlock& elements) const = 0;
};

}  // namespace quasi::gw
