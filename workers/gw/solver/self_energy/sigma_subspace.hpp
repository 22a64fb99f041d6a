#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {

/// W(ω) of one q in a subspace (docs/theory/gw.md 4.2, 6.5),
///
///   W(ω) = C inner(ω) C† + s(ω) R + diag d(ω)
///
/// M is projected on C once a pair; every frequency then costs n_b² and not n².
struct SubspaceOfW {
  std::int64_t n = 0, n_b = 0;
  std::vector<Cplx> basis;                  ///< C, [n][n_b]
  std::vector<std::vector<Cplx>> inner;     ///< [frequency][n_b][n_b]; an empty matrix is 0
  std::vector<Cplx> share;                  ///< s(ω), [frequency]
  UnsetVector<Cplx> rest;                   ///< R, [n][n]
  std::vector<std::vector<Cplx>> diagonal;  ///< d(ω), [frequency][n]; empty: none
  // Of subspace_of_w:
  std::vector<double> residual;  ///< ‖W(ω) − the above‖/‖W(ω)‖, Frobenius, [frequency]
  std::size_t worst = 0;         ///< frequency of the largest residual
  UnsetVector<Cplx> at_worst;    ///< W there, [n][n]

  bool used() const { return n_b > 0; }
};

/// W of one frequency, [n][n].
using MatrixOfFrequency = std::function<UnsetVector<Cplx>(std::size_t)>;

/// With C the eigenvectors of W(0) that carry most of it, chosen by what may be left out,
///
///   inner(ω) = C† W(ω) C,   R = W(0) − C inner(0) C†,   d = 0
///
/// and s(ω) the best fit of the rest in the Frobenius norm. One frequency of W is asked for after
/// another and none but 0 and the worst is kept.
/// @throws InvalidInput where W(0) is not Hermitian, as with the wing rule of BerkeleyGW
SubspaceOfW subspace_of_w(const MatrixOfFrequency& w, std::size_t n_frequencies,
                          const SigmaSubspaceOptions& options, GwKernels& kernels);

/// W in the subspace that ε⁻¹ is in, exactly: R = W(0), s(ω) its complement's, C = c C_ε with c of
/// roots_of_coulomb, inner what is left; d puts the diagonal, where v̄ is not c². At q → 0 the wings
/// of ε⁻¹ that averaging adds to the body are three columns more.
/// @param at_zero  W(0)
/// The result is not used() where ε⁻¹ is whole or W has another form: with the wing rule of
/// BerkeleyGW, and at q → 0 of a
/// crystal whose symmetries average it.
SubspaceOfW subspace_of_epsilon(const MeanField& field, const DielectricMatrix& epsilon,
                                const ScreeningAtQ& at, UnsetVector<Cplx> at_zero,
                                const CoulombInteraction& coulomb);

/// W of the full-frequency methods: in the subspace of Σ that `options` ask for, else in that of
/// ε⁻¹, else whole in `at`.
struct FullFrequencyW {
  ScreeningAtQ at;
  SubspaceOfW subspace;
};
FullFrequencyW full_frequency_w(const MeanField& field, const DielectricMatrix& epsilon,
                                const SigmaOptions& options, const CoulombInteraction& coulomb,
                                GwKernels& kernels);

/// Screening of one q, prepared once for all its parts.
struct PreparedScreening {
  std::size_t iq = 0;
  mutable std::weak_ptr<const LoadedPoleModel>
      loaded;  ///< on the device that had it first; SharedScreening's
  ScreeningAtQ at;
  UnsetVector<Cplx> static_w;  ///< I_GG' v̄(G')
  PlasmonPoleModel model;
  WingFactors wings;
  SubspaceOfW subspace;
};

/// The screening of each q for all devices of a process. The first device that needs it makes it,
/// with all threads; it lives as long as a device holds it.
class SharedScreening {
 public:
  SharedScreening();
  std::shared_ptr<const PreparedScreening> of(std::size_t iq,
                                              const std::function<PreparedScreening()>& make);
  /// Brings its poles to one more device: the first from the host, others from a device that still
  /// has them.
  std::shared_ptr<const LoadedPoleModel> load_poles(const PreparedScreening& made,
                                                    const PoleRules& rules, GwKernels& kernels);
  StepTimes& times() { return times_; }

 private:
  std::mutex mutex_;
  std::map<std::size_t, std::weak_ptr<const PreparedScreening>> made_;
  int threads_;
  StepTimes times_;
};

/// The screening of one q as one device has it.
struct ScreeningOnDevice {
  SharedScreening* shared = nullptr;  ///< null: this device is alone
  std::shared_ptr<const PreparedScreening> prepared;
  std::shared_ptr<const LoadedPoleModel> poles;  ///< of `prepared`; null: its method has none
  std::shared_ptr<const LoadedImaginaryPoles> imaginary_poles;  ///< null: there are none
};

/// M W(ω) M† of every pair of a block, frequency after frequency: in the subspace if
/// there is one, else in full.
class FormsOfBlock {
 public:
  /// In the subspace the products are projected: they are no longer those of plane waves.
  /// @param error_ry  [n_l], added to where the subspace is that of subspace_of_w: ½ w Σ_n |error
  /// of the form| at the frequency that the subspace describes worst; with
  ///                  |x|/π ∫ du/(x² + u²) = ½ that bounds what the integral along iu owes to it
  FormsOfBlock(const FrequencyDependentW& w, double weight, PairBlock& products,
               std::vector<double>* error_ry);
  /// [n_l][n_b]
  std::vector<Cplx> at(std::size_t frequency) const;

 private:
  std::vector<Cplx> forms_of(const Cplx* matrix, std::int64_t n) const;
  FrequencyDependentW w_;
  PairBlock& products_;
  std::vector<Cplx> of_rest_;
  std::vector<std::vector<Cplx>> of_diagonal_;  ///< [frequency][pair]
};

}  // namespace quasi::gw
