#pragma once

#include <vector>

#include "workers/gw/kernels/hamiltonian/local_coupling.hpp"

namespace quasi::gw {

/// Elements of perturbations in host memory (docs/theory/gw.md 14.1).
class CpuCouplingBlock final : public CouplingBlock {
 public:
  void load(View<const Cplx, 3> elements) override;
  void read(View<Cplx, 3> elements) const override;
  /// Sets the shape of the block; its values become undefined. @returns the first value
  Cplx* resize(std::int64_t n_p, std::int64_t n_bra, std::int64_t n_ket);
  View<const Cplx, 3> view() const { return {elements_.data(), {n_p_, n_bra_, n_ket_}}; }

 private:
  std::vector<Cplx> elements_;
};

}  // namespace quasi::gw
