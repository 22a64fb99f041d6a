#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "workers/gw/solver/mean_field/pseudobands.hpp"
#include "workers/gw/solver/perturbation/contour_first_order.hpp"
#include "workers/gw/solver/perturbation/response/sternheimer.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Holds the states on both sides of the pair products of one q, on one device.
struct StatesOfPoint {
  Vec3 k{};            ///< of the inner states, reduced
  FftBox box{};        ///< of the products
  WavesAtPoint inner;  ///< states n of the sum of Σ
  CoupledBands bands;  ///< their energies and occupations
  std::unique_ptr<const LoadedBands> outer;
  std::int64_t n_outer = 0;
  std::unique_ptr<const LoadedSphere> screened, bare;  ///< plane waves of W and of the exchange
  /// Plan of the filtered pseudobands among the inner states; null: all are eigenstates.
  const PseudobandPlan* pseudobands = nullptr;
  /// Protected states and random vectors of these pseudobands; empty without them.
  WavesAtPoint kept = {}, factors = {};
  double weight = 1.0;  ///< w of the q-point
  /// x at which the closed sum over all states is subtracted (closed_x_ry()); absent: it is not.
  std::optional<double> closed_x_ry = {};
};

/// Holds the interaction of one q and the energies of Σ. One of `poles` and `contour` is set.
struct InteractionOfPoint {
  const LoadedPoleModel* poles = nullptr;
  const ContourScreening* contour = nullptr;
  bool hermitian = false;               ///< the factors F of the poles are Hermitian
  std::span<const double> coulomb;      ///< v̄(q+G) of the exchange, Ry Bohr³
  std::span<const double> energies_ry;  ///< E
};

/// Gives the screened interactions of one q: that of all random vectors, and those without one
/// block of them.
struct InteractionsOfPoint {
  std::size_t count = 1;
  /// Loads one of them. The last one becomes invalid.
  std::function<InteractionOfPoint(std::size_t screening)> load;
};

/// Calculates the terms of ∂Σ at one q and p = 0 in which the first order ψ'_n of an inner
/// state lies beyond the bands of the sum (docs/theory/gw.md 14.10):
///
///   ∂Σ_lm += w Σ_n [M'_ln F_n M†_mn + M_ln F_n M'†_mn]
///   M'_ln(G) = ⟨l|e^{i(q+G)r}|ψ'_n⟩
///
/// ψ'_n solves the Sternheimer equation. That of a pseudoband is its whole first order. The terms
/// hold all states that the sum leaves out. With a closed sum, F_n − F(x) stands for F_n.
class TermsBeyondBands {
 public:
  /// Keeps references to the perturbations and the kernels.
  /// @throws InvalidInput if a perturbation is no local potential with the period of the lattice
  TermsBeyondBands(const std::vector<Perturbation>& perturbations, const StateResponse& response,
                   const Crystal& crystal, StatesOfPoint states, GwKernels& kernels);
  TermsBeyondBands(const TermsBeyondBands&) = delete;
  TermsBeyondBands& operator=(const TermsBeyondBands&) = delete;

  /// Adds the terms of the inner states `kets`, which are eigenstates or pseudobands alone, in some
  /// of the perturbations. First orders of states serve all interactions. Those without a block of
  /// random vectors leave its bands out, and the other pseudobands count B/(B − 1) times.
  /// @param kets  eigenstates, or all pseudobands
  /// @param sums  Ry/Bohr, [interactions][perturbations.size()]; the first ones get the exchange
  /// @throws NotConverged as SternheimerEquation::solve() does
  void add(BandRange kets, BandRange perturbations, const InteractionsOfPoint& interactions,
           std::span<DerivativeSums> sums) const;

 private:
  struct Part;
  struct PoleTerms;
  Part part_of(BandRange kets) const;
  std::vector<Cplx> applied(std::span<const Perturbation> perturbations, BandRange kets) const;
  std::vector<Cplx> responses(std::span<const Perturbation> perturbations, BandRange kets) const;
  View<const std::int32_t, 1> box_index() const {
    const auto& index = states_.inner.box_index;
    return view<const std::int32_t>(index, std::ssize(index));
  }
  std::vector<Cplx> products(const LoadedBands& right, BandRange range, const LoadedSphere& sphere,
                             std::int64_t& n_g) const;
  void add_poles(const Part& part, const InteractionOfPoint& interaction,
                 std::span<DerivativeSums> sums) const;
  void add_pole_terms(const Part& part, const InteractionOfPoint& interaction,
                      const PoleTerms& terms, std::span<DerivativeSums> sums) const;
  void add_contour(const Part& part, const InteractionOfPoint& interaction,
                   std::span<DerivativeSums> sums) const;
  void add_exchange(const Part& part, std::span<const double> coulomb,
                    std::span<DerivativeSums> sums) const;

  const std::vector<Perturbation>& perturbations_;
  StatesOfPoint states_;
  GwKernels& kernels_;
  SternheimerEquation equation_;
  std::unique_ptr<const HamiltonianOperator> h_;  ///< of pseudobands; null without them
  std::unique_ptr<LoadedHamiltonian> loaded_;
};

}  // namespace quasi::gw
