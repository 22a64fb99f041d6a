#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "workers/gw/solver/sigma_sum.hpp"

namespace quasi::gw {

/// W(ω) of one q in the subspace of its static form (spec 4.2, 6.5): with C the eigenvectors of W(0) that carry most of it,
///
///   W(ω) ≈ C [C† W(ω) C] C† + s(ω) R,   R = W(0) − C [C† W(0) C] C†
///
/// s(ω) fits the rest best in the Frobenius norm, s(0) = 1. M is projected on C once a pair; every frequency then costs n_b² and not n².
struct SubspaceOfW {
  std::int64_t n = 0, n_b = 0;
  std::vector<Cplx> basis;                ///< C, [n][n_b]
  std::vector<std::vector<Cplx>> inner;   ///< C† W(ω) C, [frequency][n_b][n_b]
  std::vector<Cplx> share;                ///< s(ω), [frequency]
  UnsetVector<Cplx> rest;                 ///< R, [n][n]
  std::vector<double> residual;           ///< ‖W(ω) − the above‖/‖W(ω)‖, Frobenius, [frequency]
  std::size_t worst = 0;                  ///< frequency of the largest residual

  bool used() const { return n_b > 0; }
};

/// Chosen by what may be left out. Overwrites the kernels' pair products.
/// @throws InvalidInput where W(0) is not Hermitian: the field's wing rule
SubspaceOfW subspace_of_w(const ScreeningAtQ& at, const WingFactors& wings, const SigmaSubspaceOptions& options, GwKernels& kernels);

/// What is prepared once for all parts of one q.
struct PreparedScreening {
  std::size_t iq = 0;
  mutable std::weak_ptr<const LoadedPoleModel> loaded;  ///< on the device that had it first; SharedScreening's
  ScreeningAtQ at;
  UnsetVector<Cplx> static_w;  ///< I_GG' v̄(G')
  PlasmonPoleModel model;
  WingFactors wings;
  SubspaceOfW subspace;
};

/// The screening of each q for all devices of a process: whoever needs it first makes it, with all threads, and it lives as long as
/// anyone holds it.
class SharedScreening {
 public:
  SharedScreening();
  std::shared_ptr<const PreparedScreening> of(std::size_t iq, const std::function<PreparedScreening()>& make);
  /// Brings its poles to one more device: the first from the host, others from a device that still has them.
  void load_poles(const PreparedScreening& made, const PoleRules& rules, GwKernels& kernels);
  StepTimes& times() { return times_; }

 private:
  std::mutex mutex_;
  std::map<std::size_t, std::weak_ptr<const PreparedScreening>> made_;
  int threads_;
  StepTimes times_;
};

/// What one device holds of it: the pole model of `prepared` is in its kernels.
struct ScreeningOnDevice {
  SharedScreening* shared = nullptr;  ///< null: this device is alone
  std::shared_ptr<const PreparedScreening> prepared;
};

/// M W(ω) M† of every pair of the resident block, frequency after frequency: in the subspace if there is one, else in full.
class FormsOfBlock {
 public:
  /// In the subspace the resident products are projected: they are no longer those of plane waves.
  /// @param error_ry  [n_l], added to: ½ w Σ_n |error of the form| at the frequency that the subspace describes worst; with
  ///                  |x|/π ∫ du/(x² + u²) = ½ that bounds what the integral along iu owes to it
  FormsOfBlock(const ScreeningAtQ& at, const WingFactors& wings, const SubspaceOfW& subspace, std::int64_t n_l, std::int64_t n_b, double weight,
               GwKernels& kernels, std::vector<double>* error_ry);
  /// [n_l][n_b]
  std::vector<Cplx> at(std::size_t frequency) const;

 private:
  std::vector<Cplx> forms_of(const Cplx* matrix, std::int64_t n) const;
  const ScreeningAtQ& at_;
  const WingFactors& wings_;
  const SubspaceOfW& subspace_;
  std::int64_t n_l_, n_b_;
  GwKernels& kernels_;
  std::vector<Cplx> of_rest_;
};

}  // namespace quasi::gw
