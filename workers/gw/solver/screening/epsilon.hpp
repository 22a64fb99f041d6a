#pragma once

#include <atomic>
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/progress.hpp"
#include "workers/backend/unset_vector.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/model/epsilon_options.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/device_team.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/screening/coulomb/coulomb_interaction.hpp"
#include "workers/gw/solver/screening/long_wave_tensor.hpp"
#include "workers/gw/solver/step_context.hpp"
#include "workers/gw/solver/step_times.hpp"

// The folder workers/gw/solver/screening calculates ε⁻¹. Begin here: dielectric_matrices() is the
// whole step. Then read, in this order, coulomb/coulomb_interaction.hpp for v,
// polarizability/polarizability.hpp for χ, long_wave.hpp and long_wave_tensor.hpp for q → 0,
// dielectric_inversion.hpp and static_subspace.hpp for ε⁻¹ from χ, and epsilon_file.hpp for the
// files of BerkeleyGW. checkpointed_sums.hpp and epsilon_pieces.hpp store unfinished work.
namespace quasi::gw {

/// ε̃⁻¹ = v^−½ ε⁻¹ v^½ of one q in a static subspace (docs/theory/gw.md 4.2). It replaces matrices
/// between plane waves:
///
///   ε̃⁻¹(ω) = 1 + C inner(ω) C^H + share(ω) rest
///   rest = ε̃⁻¹(0) − 1 − C inner(0) C^H,   share(0) = 1
///
/// It takes 16 (n_b² + n²/n_f) bytes a frequency instead of 16 n². At q → 0 by k·p three plane
/// waves stand for G = 0, so that n exceeds the size of the sphere by 2.
struct ReducedFrequencies {
  std::int64_t n = 0, n_b = 0;
  std::vector<Cplx> basis;               ///< C, [n][n_b]
  std::vector<std::vector<Cplx>> inner;  ///< (1 − χ̃_BB(ω))⁻¹ − 1, [n_frequencies][n_b][n_b]
  std::vector<Cplx> share;  ///< ω_c²/(ω_c² − ω²), or 0 without the complement, [n_frequencies]
  UnsetVector<Cplx> rest;  ///< [n][n]
  Vec3 direction{};        ///< of q₀, Cartesian, where G = 0 stands three times

  bool used() const { return n_b > 0; }
};

/// ε⁻¹(q; ω) of one irreducible q (docs/theory/gw.md 4).
struct DielectricMatrix {
  Vec3 q{};                     ///< q₀ where `at_gamma`
  bool at_gamma = false;        ///< stands for q → 0; the sphere is then that of q = 0
  GSphere sphere;               ///< its n plane waves q+G
  std::vector<double> coulomb;  ///< v(q+G) without average, Ry Bohr³, [n]
  /// [n_frequencies][n][n]. Frequency 0 is ω = 0. With a subspace it is the only one here.
  std::vector<UnsetVector<Cplx>> inverse;
  ReducedFrequencies reduced;        ///< the frequencies other than 0, with a subspace
  std::vector<Cplx> frequencies_ry;  ///< the first is 0
  int n_real = 0;                    ///< number of frequencies on the real axis, which are the last
  int subspace_vectors = 0;          ///< size of the static subspace; 0: none
  /// ‖ε̃⁻¹(0) − its subspace part‖₂, the part that the other frequencies take from ω = 0.
  double subspace_error = 0.0;
  std::vector<Cplx> epsilon_diagonal;  ///< ε_GG(0), [n]; empty if ε⁻¹ was read from files
  /// All directions of q → 0 at each frequency, if k·p has calculated them; else empty.
  std::vector<LongWaveLimit> long_wave;
  /// ε⁻¹_00 at further short q of a slab at each frequency (head_samples.hpp); empty: none.
  std::vector<std::vector<HeadSample>> head_samples;

  std::int64_t size() const { return sphere.size(); }
  std::vector<HeadSample> samples_of(std::size_t frequency) const {
    return head_samples.empty() ? std::vector<HeadSample>{} : head_samples[frequency];
  }
  std::size_t n_frequencies() const {
    return reduced.used() ? reduced.inner.size() : inverse.size();
  }
};

/// Returns ε⁻¹ of one frequency, [n][n]: the stored matrix, or `room` after it was expanded there
/// from the subspace.
const UnsetVector<Cplx>& inverse_of(const DielectricMatrix& m, std::size_t frequency,
                                    UnsetVector<Cplx>& room);
/// Returns ε⁻¹_00 of one frequency in the direction of q₀.
Cplx head_of(const DielectricMatrix& m, std::size_t frequency);
/// Returns ε̃⁻¹ between the three plane waves that stand for G = 0.
CMat3 corner_of(const ReducedFrequencies& reduced, std::size_t frequency);

/// Seconds of the steps of ε⁻¹, and the number of pairs summed in real arithmetic.
class EpsilonProfile : public StepTimes {
 public:
  void count(std::int64_t pairs, bool real) {
    pairs_ += pairs;
    real_pairs_ += real ? pairs : 0;
  }
  std::int64_t pairs() const { return pairs_; }
  std::int64_t real_pairs() const { return real_pairs_; }

 private:
  std::atomic<std::int64_t> pairs_{0}, real_pairs_{0};
};

/// Returns the q-points of the calculation: the irreducible k-points with Γ replaced by q₀.
std::vector<Vec3> screening_points(const MeanField& field);

/// Calculates ε⁻¹ of one q (docs/theory/gw.md 4; adler1962, wiser1963). ε̃ = 1 − v½ χ v½ is
/// inverted by Cholesky at ω = 0 and on the imaginary axis, and by LU elsewhere.
/// ε⁻¹_GG' = v_G½ ε̃⁻¹_GG' v_G'^−½.
DielectricMatrix dielectric_matrix(const MeanField& field, const Vec3& q,
                                   const EpsilonOptions& options, const CoulombInteraction& coulomb,
                                   GwKernels& kernels, Progress& progress);

/// Calculates ε⁻¹ of all `points`. Each device gets whole q-points if there are enough of them.
/// Otherwise all devices share the portions of one q after the other. Finished portions and
/// matrices go into the checkpoint.
/// @param profile  gets times and counts; null: none are kept
std::vector<DielectricMatrix> dielectric_matrices(const MeanField& field,
                                                  const std::vector<Vec3>& points,
                                                  const EpsilonOptions& options,
                                                  const StepContext& context,
                                                  EpsilonProfile* profile = nullptr);

}  // namespace quasi::gw
