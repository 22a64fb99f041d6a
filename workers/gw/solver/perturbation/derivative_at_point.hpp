#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workers/gw/solver/perturbation/contour_first_order.hpp"
#include "workers/gw/solver/perturbation/coupling_parts.hpp"
#include "workers/gw/solver/perturbation/response/terms_beyond_bands.hpp"
#include "workers/gw/solver/perturbation/screened_poles.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"
#include "workers/gw/solver/step_times.hpp"

// This file calculates the derivative of Σ at one q on one device. Begin with
// sigma_derivative.hpp.
namespace quasi::gw {

/// Holds the inputs of a derivative of Σ. They are equal for every q and every part of the bands.
struct DerivativeProblem {
  const MeanField& field;
  const std::vector<DielectricMatrix>& epsilon;
  const SigmaOptions& options;
  const std::vector<Perturbation>& perturbations;
  std::vector<double> energies_ry;  ///< E, common to all elements, [n_energies]
  FftBox box{};
  const StateResponse* response = nullptr;  ///< null: without states beyond the bands
  /// Plan of the filtered pseudobands among the inner states; null: all are eigenstates.
  const PseudobandPlan* pseudobands = nullptr;
  Wavefunctions factors = {};  ///< random vectors of pseudobands, vectors_of_filter()

  /// Returns the number of inner states that are eigenstates. Their pairs are summed.
  int n_paired() const { return pseudobands != nullptr ? pseudobands->kept : options.bands; }
  /// Returns the number of outer states on either side.
  std::int64_t n_outer() const { return options.band_max - options.band_min + 1; }
  /// Returns the plane waves of the exchange at an irreducible q.
  GSphere bare_sphere(std::size_t iq) const;
  /// Returns the outer states at k. @param k  reduced
  WavesAtPoint outer_waves(const Vec3& k) const;
};

/// Identifies a term of the sum over q of Σ at one outer k-point.
struct DerivativePoint {
  int k_index = 0;     ///< position of k in the irreducible list
  std::size_t iq = 0;  ///< position of the irreducible q
  Vec3 q{};            ///< reduced
};

/// Holds states, products, W and couplings of one point on one device, and calculates the
/// derivative of Σ there.
class DerivativeAtPoint {
 public:
  /// Loads the point to the device of `kernels`. `problem`, `kernels` and `times` must outlive the
  /// object.
  /// @param times  receives the seconds of each step; null if they are not recorded
  DerivativeAtPoint(const DerivativeProblem& problem, const DerivativePoint& point,
                    const CoulombInteraction& coulomb, GwKernels& kernels, StepTimes* times);

  /// Calculates the terms of F_n for n in `bands` of the ket, and those of F_n' for n' in `bands`
  /// of the bra. The sum over all ranges is the derivative at this q.
  /// @return the sums of each perturbation, Ry/Bohr, [n_p]
  std::vector<DerivativeSums> part(BandRange bands) const;

 private:
  /// States of the inner sum on one side.
  struct Inner {
    WavesAtPoint waves;
    CoupledBands bands;
  };
  Inner inner(const Vec3& k, int n_bands) const;
  StatesOfPoint states_beyond(const Vec3& k, const WavesAtPoint& outer) const;
  std::unique_ptr<PairBlock> products(const LoadedBands& outer, const LoadedBands& inner,
                                      const LoadedSphere& sphere) const;
  void load_screening(const DerivativePoint& point, const CoulombInteraction& coulomb);
  void add_poles(BandRange bands, std::vector<DerivativeSums>& sums) const;
  void add_contour(BandRange bands, std::vector<DerivativeSums>& sums) const;
  void add_exchange(BandRange bands, std::vector<DerivativeSums>& sums) const;
  const PairBlock& ket_block(const std::unique_ptr<PairBlock>& bra,
                             const std::unique_ptr<PairBlock>& ket) const {
    return one_side_ ? *bra : *ket;
  }

  const DerivativeProblem& problem_;
  GwKernels& kernels_;
  StepTimes* times_;
  double weight_;
  std::int64_t n_p_, n_e_, n_;
  bool one_side_;  ///< states and products of bra and ket are the same
  bool mirrored_;  ///< the terms of F_n' are the adjoints of those of F_n
  CoupledBands bra_, ket_;
  std::unique_ptr<const CouplingParts> couplings_;
  /// V of the part: V_n'n of its kets, and V*_n'n of its bras.
  std::unique_ptr<CouplingBlock> of_kets_, of_bras_;
  GSphere sphere_;                                   ///< plane waves of W at the irreducible q
  std::shared_ptr<const LoadedPoleModel> poles_;     ///< null with contour deformation
  std::unique_ptr<const ContourScreening> contour_;  ///< null with plasmon poles
  std::vector<double> coulomb_;
  /// M of both sides, on the plane waves of W and on those of the exchange; no ket if one side.
  std::unique_ptr<PairBlock> screened_bra_, screened_ket_, bare_bra_, bare_ket_;
  /// M on the vectors of the subspace of W; null without one.
  std::unique_ptr<PairBlock> projected_bra_, projected_ket_;
  std::unique_ptr<const TermsBeyondBands> beyond_;  ///< null without a response of states
};

}  // namespace quasi::gw
