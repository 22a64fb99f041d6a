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
/// M is projected on C once for each pair of bands. Every frequency then costs n_b² instead of n².
struct SubspaceOfW {
  std::int64_t n = 0, n_b = 0;
  std::vector<Cplx> basis;                  ///< C, [n][n_b]
  std::vector<std::vector<Cplx>> inner;     ///< [frequency][n_b][n_b]; an empty matrix is 0
  std::vector<Cplx> share;                  ///< s(ω), [frequency]
  UnsetVector<Cplx> rest;                   ///< R, [n][n]
  std::vector<std::vector<Cplx>> diagonal;  ///< d(ω), [frequency][n]; empty: none
  // The members below are set by subspace_of_w() alone.
  std::vector<double> residual;  ///< ‖W(ω) − its form above‖/‖W(ω)‖, Frobenius, [frequency]
  std::size_t worst = 0;         ///< frequency of the largest residual
  UnsetVector<Cplx> at_worst;  ///< W at that frequency, [n][n]

  bool used() const { return n_b > 0; }
};

/// W of one frequency, [n][n].
using MatrixOfFrequency = std::function<UnsetVector<Cplx>(std::size_t)>;

/// Projects W on the eigenvectors C of W(0) of largest |λ|; the options give their number or the
/// share of Σ|λ| that may be left out.
///
///   inner(ω) = C† W(ω) C,   R = W(0) − C inner(0) C†,   d = 0
///
/// s(ω) is the best fit of the rest in the Frobenius norm. The frequencies of W are made one after
/// another. Only W(0) and the W of the largest residual are kept.
/// @throws InvalidInput where W(0) is not Hermitian, as with the wing rule of BerkeleyGW
SubspaceOfW subspace_of_w(const MatrixOfFrequency& w, std::size_t n_frequencies,
                          const SigmaSubspaceOptions& options, GwKernels& kernels);

/// Writes W exactly in the subspace of ε⁻¹: R = W(0), C = c C_ε with c of roots_of_coulomb(), and
/// s(ω) the factor of the complement of ε⁻¹. inner(ω) is the difference, and d(ω) corrects the
/// diagonal, where v̄ is not c². At q → 0 three more columns hold the wings of ε⁻¹ that averaging
/// adds to the body.
///
/// The result is not used() where ε⁻¹ is stored whole or W has another form: with the wing rule of
/// BerkeleyGW, and at q → 0 of a crystal whose symmetries average ε⁻¹.
/// @param at_zero  W(0)
SubspaceOfW subspace_of_epsilon(const MeanField& field, const DielectricMatrix& epsilon,
                                const ScreeningAtQ& at, UnsetVector<Cplx> at_zero,
                                const CoulombInteraction& coulomb);

/// W of the full-frequency methods: in the subspace of Σ that the options ask for, else in the
/// subspace of ε⁻¹, else whole in `at`.
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
  /// The poles on the device that loaded them first. SharedScreening sets it.
  mutable std::weak_ptr<const LoadedPoleModel> loaded;
  ScreeningAtQ at;
  UnsetVector<Cplx> static_w;  ///< I_GG' v̄(G')
  PlasmonPoleModel model;
  WingFactors wings;
  SubspaceOfW subspace;
};

/// The screening of each q for all devices of a process. The first device that needs a q makes its
/// screening with all threads. The screening lives as long as a device holds it.
class SharedScreening {
 public:
  SharedScreening();
  /// Returns the screening of one q; `make` makes it unless a device holds it.
  std::shared_ptr<const PreparedScreening> get(std::size_t iq,
                                               const std::function<PreparedScreening()>& make);
  /// Brings the poles of a screening to one more device: from a device that still has them, else
  /// from the host.
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
  /// Poles of `prepared`, whole or one slice of them; null if the method has no poles.
  std::shared_ptr<const LoadedPoleModel> poles;
  int slice = 0;  ///< number of the slice that `poles` holds
  std::shared_ptr<const LoadedImaginaryPoles> imaginary_poles;  ///< null: no pole is imaginary
};

/// S(ω) = M W(ω) M† of every pair of a block (docs/theory/gw.md 6.5), one frequency at a time: in
/// the subspace where W has one, else with the whole W.
class FormsOfBlock {
 public:
  /// A subspace projects `products`, which then belong to its vectors instead of plane waves.
  /// @param error_ry  [n_l]; a subspace of subspace_of_w() adds ½ w Σ_n |error of the form| at the
  /// frequency of its largest residual. Because |x|/π ∫ du/(x² + u²) = ½, that bounds the error of
  /// the integral along iu.
  FormsOfBlock(const FrequencyDependentW& w, double weight, PairBlock& products,
               std::vector<double>* error_ry);
  /// S of one frequency, [n_l][n_b].
  std::vector<Cplx> at(std::size_t frequency) const;

 private:
  std::vector<Cplx> forms_of(const Cplx* matrix, std::int64_t n) const;
  FrequencyDependentW w_;
  PairBlock& products_;
  std::vector<Cplx> of_rest_;
  std::vector<std::vector<Cplx>> of_diagonal_;  ///< [frequency][pair]
};

}  // namespace quasi::gw
