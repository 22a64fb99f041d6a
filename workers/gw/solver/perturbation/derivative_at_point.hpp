#pragma once

#include <cstdint>
#include <memory>
#include <span>
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
  const StateResponse* response = nullptr;  ///< null: states beyond the bands are left out
  /// Filtered pseudobands among the inner states. With null all inner states are eigenstates.
  const FilteredPseudobands* pseudobands = nullptr;

  /// Returns the number of inner states that are eigenstates. The sum over pairs has these states.
  int n_paired() const { return pseudobands != nullptr ? pseudobands->plan.kept : options.bands; }
  /// Returns the number of screened interactions W. The first one has all random vectors, and each
  /// other one lacks one block of them.
  std::size_t n_screenings() const {
    return 1 + (pseudobands != nullptr ? pseudobands->without.size() : 0);
  }
  /// Returns ε⁻¹ of one screened interaction at an irreducible q.
  const DielectricMatrix& epsilon_of(std::size_t screening, std::size_t iq) const {
    return screening == 0 ? epsilon[iq] : (*pseudobands->without[screening - 1])[iq];
  }
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

/// Selects terms of one point by a range of inner bands and a range of perturbations.
struct DerivativeRange {
  BandRange bands;
  BandRange perturbations;
};

/// Holds states, products, W and couplings of one point on one device, and calculates the
/// derivative of Σ there.
class DerivativeAtPoint {
 public:
  /// Loads the point to the device of `kernels`. `problem`, `coulomb`, `kernels` and `times` must
  /// outlive the object.
  /// @param times  receives the seconds of each step; null if they are not recorded
  DerivativeAtPoint(const DerivativeProblem& problem, const DerivativePoint& point,
                    const CoulombInteraction& coulomb, GwKernels& kernels, StepTimes* times);

  /// Calculates the terms of F_n for n in the bands of the ket, and those of F_n' for n' in these
  /// bands of the bra. The sum over all ranges is the derivative at this q.
  /// @param range  eigenstates alone with all perturbations, or pseudobands alone
  /// @return sums of each screened interaction and perturbation, Ry/Bohr, [n_screenings][n_p]
  std::vector<DerivativeSums> part(const DerivativeRange& range);

 private:
  /// Holds the states of the inner sum on one side.
  struct Inner {
    WavesAtPoint waves;
    CoupledBands bands;
  };
  Inner inner(const Vec3& k, int n_bands) const;
  StatesOfPoint states_beyond(const Vec3& k, const WavesAtPoint& outer) const;
  std::unique_ptr<PairBlock> products(const LoadedBands& outer, const LoadedBands& inner,
                                      const LoadedSphere& sphere) const;
  void load_screening(std::size_t screening);
  void add_poles(BandRange bands, std::span<DerivativeSums> sums) const;
  void add_contour(BandRange bands, std::span<DerivativeSums> sums) const;
  void add_exchange(BandRange bands, std::span<DerivativeSums> sums) const;
  const PairBlock& ket_block(const std::unique_ptr<PairBlock>& bra,
                             const std::unique_ptr<PairBlock>& ket) const {
    return one_side_ ? *bra : *ket;
  }

  const DerivativeProblem& problem_;
  const DerivativePoint point_;
  const CoulombInteraction& interaction_;
  GwKernels& kernels_;
  StepTimes* times_;
  double weight_;
  std::int64_t n_p_, n_e_, n_;
  bool one_side_;              ///< true if states and products of bra and ket are the same
  bool mirrored_;              ///< true if the terms of F_n' are the adjoints of those of F_n
  std::size_t screening_ = 0;  ///< index of the loaded screened interaction
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
