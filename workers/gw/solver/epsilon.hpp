#pragma once

#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "workers/backend/checkpoint.hpp"
#include "workers/backend/progress.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/coulomb_interaction.hpp"
#include "workers/gw/solver/device_team.hpp"
#include "workers/gw/solver/problem.hpp"

namespace quasi::gw {

/// ε⁻¹(q; ω) of one irreducible q.
struct DielectricMatrix {
  Vec3 q{};                       ///< q₀ where `at_gamma`
  bool at_gamma = false;          ///< stands for q → 0; its sphere is then that of q = 0
  GSphere sphere;
  std::vector<double> coulomb;    ///< plain v(q+G), Ry Bohr³ (no average), [n]
  std::vector<std::vector<Cplx>> inverse;  ///< [n_frequencies][n][n]; frequency 0 is ω = 0
  std::vector<Cplx> frequencies_ry;        ///< of `inverse`; the first is 0
  int n_real = 0;                          ///< the last so many lie on the real axis
  int subspace_vectors = 0;                ///< kept, where a subspace was used; else 0
  double subspace_error = 0.0;             ///< ‖ε̃⁻¹(0) − its subspace part‖₂: what the other frequencies owe to the complement
  std::vector<Cplx> epsilon_diagonal;      ///< ε_GG(0), [n]; empty if ε⁻¹ was read from files

  std::int64_t size() const { return sphere.size(); }
};

/// Static subspace (spec 4.2): frequencies other than 0 are calculated between the eigenvectors of χ̃(0) that screen most, and
/// the rest follows the static matrix.
struct SubspaceOptions {
  double tolerance = 0.0;       ///< vectors whose share |λ|/(1+|λ|) of δ − ε̃⁻¹(0) exceeds this are kept; 0: no subspace
  int vectors = 0;              ///< instead: so many
  bool complement = true;       ///< adds [ε̃⁻¹(0) − its subspace part] ω_c²/(ω_c² − ω²)
  double complement_ry = 2.5;   ///< ω_c
  bool wanted() const { return tolerance > 0.0 || vectors > 0; }
};

struct EpsilonOptions {
  double cutoff_ry = 10.0;
  int bands = 0;                               ///< counted from 1, multiplets complete
  std::vector<Cplx> frequencies_ry{Cplx{}};    ///< first: 0; then iu or ω + iη
  int n_real = 0;                              ///< the last so many lie on the real axis
  SubspaceOptions subspace;
  std::int64_t memory_budget_bytes = std::int64_t{4} << 30;
};

/// Where the time of ε goes: seconds by step, added up over devices, and whether real arithmetic was used.
class EpsilonProfile {
 public:
  void add(const std::string& step, double seconds) {
    const std::lock_guard lock(mutex_);
    seconds_[step] += seconds;
  }
  void count(std::int64_t pairs, bool real) {
    const std::lock_guard lock(mutex_);
    pairs_ += pairs;
    real_pairs_ += real ? pairs : 0;
  }
  const std::map<std::string, double>& seconds() const { return seconds_; }
  std::int64_t pairs() const { return pairs_; }
  std::int64_t real_pairs() const { return real_pairs_; }

 private:
  std::mutex mutex_;
  std::map<std::string, double> seconds_;
  std::int64_t pairs_ = 0, real_pairs_ = 0;
};

/// q-points of the calculation: the irreducible k-points, Γ replaced by q₀.
std::vector<Vec3> screening_points(const MeanField& field);

/// Pairs (k, v, c) that χ of one q sums, after symmetry.
std::int64_t polarizability_pairs(const MeanField& field, const Vec3& q, const EpsilonOptions& options);

/// χ(q; ω) by sum over the little group's wedge of k, rotated into the full sum; [n_frequencies][n][n].
///
///   χ_GG'(q; ω) = (4/(N_k Ω)) Σ_kvc M*_vc(G) M_vc(G') ½ [1/(Δ − ω) + 1/(Δ + ω)],  Δ = E_v,k+q − E_c,k < 0
///   M_vc(G) = ⟨v, k+q| e^{i(q+G)r} |c, k⟩                                       (spec 4)
///
/// At ω = 0 by the Hermitian product (half the flops); other frequencies by general products.
///
/// The pairs (k, block of v) are cut into portions that do not depend on the number of devices; portions are
/// added in order. A portion is what a device works at and what a checkpoint keeps.
class Polarizability {
 public:
  /// @param profile  null: no times are kept
  Polarizability(const MeanField& field, const DielectricMatrix& at, const EpsilonOptions& options, EpsilonProfile* profile = nullptr);
  std::int64_t portions() const { return portions_; }
  /// Sum of one portion, not yet rotated; [n_frequencies][n][n].
  std::vector<Cplx> portion(std::int64_t index, GwKernels& kernels, Progress& progress) const;
  /// From now on portions hold the frequencies other than 0 between the columns of `basis` [n][n_basis];
  /// [n_frequencies − 1][n_basis][n_basis].
  void project_on(std::vector<Cplx> basis) { basis_ = std::move(basis); }
  /// χ from the sum of all portions, one matrix a frequency.
  std::vector<std::vector<Cplx>> complete(std::vector<Cplx> sum) const;

 private:
  struct Unit {
    int spin = 0;
    std::size_t orbit = 0;
    BandRange valence;
  };
  /// What this sum has left on a device, so that the next portion need not bring it again.
  struct Resident {
    std::int64_t epoch = -1;
    std::size_t orbit = 0;
    int spin = 0;
  };
  Resident& resident(GwKernels& kernels) const;

  const MeanField& field_;
  const DielectricMatrix& at_;
  const EpsilonOptions& options_;
  EpsilonProfile* profile_;
  struct Residents {
    std::mutex mutex;
    std::map<const GwKernels*, Resident> of;
  };
  std::shared_ptr<Residents> residents_ = std::make_shared<Residents>();
  std::vector<int> group_;
  std::vector<Orbit> wedge_;
  std::vector<Unit> units_;
  std::vector<Cplx> basis_;
  std::int64_t portions_ = 1;
};

/// (1/|G|) Σ_S S·χ: adds to the wedge's sum what the rest of each star contributes, or makes a matrix
/// symmetric. For f = S q + g₀, (Sχ)_GG' = e^{−i(G+g₀)τ} χ_G₁G₁' e^{+i(G'+g₀)τ} with G₁ = S⁻¹(G+g₀).
std::vector<Cplx> summed_over_group(std::vector<Cplx> chi, const GSphere& sphere,
                                    const std::vector<SymmetryOperation>& operations, const std::vector<int>& group,
                                    bool at_gamma);

/// ε⁻¹ of one q: ε̃ = 1 − v½ χ v½ inverted by Cholesky at ω = 0 and on the imaginary axis, by LU
/// elsewhere; ε⁻¹_GG' = v_G½ ε̃⁻¹_GG' v_G'^−½.
DielectricMatrix dielectric_matrix(const MeanField& field, const Vec3& q, const EpsilonOptions& options,
                                   const CoulombInteraction& coulomb, GwKernels& kernels, Progress& progress);

/// ε⁻¹ of all `points`. Whole q-points go to the devices where there are enough of them, else the portions of
/// one after the other; finished portions and matrices are kept.
std::vector<DielectricMatrix> dielectric_matrices(const MeanField& field, const std::vector<Vec3>& points, const EpsilonOptions& options,
                                                  const CoulombInteraction& coulomb, DeviceTeam& team, Checkpoint& checkpoint, Progress& progress,
                                                  EpsilonProfile* profile = nullptr);

}  // namespace quasi::gw
